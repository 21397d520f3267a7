"""The table of functions that read TFLite operators."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from ...errors import Unsupported
from .. import operators as ops
from ..operators import BinaryKind, Clamp, CompareKind, ReduceKind, ResizeMode, Unary, UnaryKind
from ..operators.custom import DESCRIBE, find_custom, to_json
from . import arithmetic, control, convolution, detection, rearrange, recurrent, shapes, states
from .import_state import LayerImport

Importer = Callable[[LayerImport], None]

_AND, _OR, _MIN, _MAX = CompareKind.AND, CompareKind.OR, BinaryKind.MIN, BinaryKind.MAX
_SAME_NAME = (
    "ABS", "CEIL", "COS", "EXP", "FLOOR", "HARD_SWISH", "LOG", "NEG", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT", "SQUARE",
    "TANH",
)  # fmt: skip

# Operators of one input and no options.
_FUNCTIONS: dict[str, ops.Op] = {
    **{name: Unary(UnaryKind[name]) for name in _SAME_NAME},
    "LOGISTIC": Unary(UnaryKind.SIGMOID),
    "RELU": Clamp(0.0),
    "RELU6": Clamp(0.0, 6.0),
    "RELU_N1_TO_1": Clamp(-1.0, 1.0),
    "RELU_0_TO_1": Clamp(0.0, 1.0),
    "ELU": ops.Elu(),
    "LOG_SOFTMAX": ops.LogSoftmax(-1),
}

IMPORTERS: dict[str, Importer] = {
    # windows and matrices
    "CONV_2D": convolution.conv,
    "DEPTHWISE_CONV_2D": convolution.depthwise_conv,
    "TRANSPOSE_CONV": convolution.transpose_conv,
    "FULLY_CONNECTED": convolution.fully_connected,
    "BATCH_MATMUL": convolution.batch_matmul,
    "AVERAGE_POOL_2D": partial(convolution.pool, kind=ops.AvgPool2d),
    "MAX_POOL_2D": partial(convolution.pool, kind=ops.MaxPool2d),
    "SPACE_TO_BATCH_ND": convolution.space_to_batch,
    "BATCH_TO_SPACE_ND": convolution.batch_to_space,
    # two operands
    **{kind.name: partial(arithmetic.binary, kind=kind) for kind in BinaryKind if kind not in (_MIN, _MAX)},
    "MINIMUM": partial(arithmetic.binary, kind=_MIN),
    "MAXIMUM": partial(arithmetic.binary, kind=_MAX),
    "ADD_N": arithmetic.add_n,
    "FLOOR_DIV": arithmetic.floor_div,
    "FLOOR_MOD": arithmetic.floor_mod,
    # comparisons
    **{kind.name: partial(arithmetic.compare, kind=kind) for kind in CompareKind if kind not in (_AND, _OR)},
    "LOGICAL_AND": partial(arithmetic.compare, kind=_AND),
    "LOGICAL_OR": partial(arithmetic.compare, kind=_OR),
    "LOGICAL_NOT": arithmetic.logical_not,
    "SELECT": arithmetic.select,
    "SELECT_V2": arithmetic.select,
    # functions
    **{name: partial(arithmetic.elementwise, op=op) for name, op in _FUNCTIONS.items()},
    "LEAKY_RELU": arithmetic.leaky_relu,
    "PRELU": arithmetic.prelu,
    "GELU": arithmetic.gelu,
    # normalisation
    "SOFTMAX": arithmetic.softmax,
    "L2_NORMALIZATION": arithmetic.l2_normalization,
    "LOCAL_RESPONSE_NORMALIZATION": arithmetic.local_response_normalization,
    # reductions
    "MEAN": partial(arithmetic.reduce, kind=ReduceKind.MEAN),
    "SUM": partial(arithmetic.reduce, kind=ReduceKind.SUM),
    **{f"REDUCE_{name}": partial(arithmetic.reduce, kind=ReduceKind[name]) for name in ("MAX", "MIN", "PROD")},
    "REDUCE_ANY": partial(arithmetic.reduce_bool, kind=ReduceKind.MAX),
    "REDUCE_ALL": partial(arithmetic.reduce_bool, kind=ReduceKind.MIN),
    "CUMSUM": arithmetic.cum_sum,
    "TOPK_V2": arithmetic.top_k,
    "ARG_MAX": partial(arithmetic.arg_max, least=False),
    "ARG_MIN": partial(arithmetic.arg_max, least=True),
    "ONE_HOT": arithmetic.one_hot,
    # detectors
    "custom operator 'TFLite_Detection_PostProcess'": detection.detection_postprocess,
    "NON_MAX_SUPPRESSION_V4": detection.non_max_suppression,
    "NON_MAX_SUPPRESSION_V5": detection.non_max_suppression,
    # element types
    "QUANTIZE": arithmetic.quantize,
    "DEQUANTIZE": arithmetic.dequantize,
    "CAST": arithmetic.cast,
    # shapes
    "RESHAPE": shapes.reshape,
    "SQUEEZE": shapes.squeeze,
    "EXPAND_DIMS": shapes.expand_dims,
    "SHAPE": shapes.shape,
    "RANK": shapes.rank,
    "FILL": shapes.fill,
    "RANGE": shapes.range_,
    "ZEROS_LIKE": shapes.zeros_like,
    "DENSIFY": shapes.densify,
    # control flow
    "WHILE": control.while_,
    "IF": control.if_,
    "CALL_ONCE": control.call_once,
    # states
    "VAR_HANDLE": states.var_handle,
    "READ_VARIABLE": states.read_variable,
    "ASSIGN_VARIABLE": states.assign_variable,
    "SVDF": states.svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": recurrent.sequence_lstm,
    # indices
    "TRANSPOSE": rearrange.transpose,
    "CONCATENATION": rearrange.concatenation,
    "PACK": rearrange.pack,
    "UNPACK": rearrange.unpack,
    "SPLIT": rearrange.split,
    "SPLIT_V": rearrange.split_v,
    "SLICE": rearrange.slice_,
    "WHERE": rearrange.where,
    "REVERSE_V2": rearrange.reverse,
    "STRIDED_SLICE": rearrange.strided_slice,
    "PAD": rearrange.pad,
    "PADV2": rearrange.pad,
    "MIRROR_PAD": rearrange.mirror_pad,
    "TILE": rearrange.tile,
    "BROADCAST_TO": rearrange.broadcast_to,
    "GATHER": rearrange.gather,
    "GATHER_ND": rearrange.gather_nd,
    "REVERSE_SEQUENCE": rearrange.reverse_sequence,
    "EMBEDDING_LOOKUP": rearrange.embedding_lookup,
    "SPACE_TO_DEPTH": partial(rearrange.blocks, kind=ops.SpaceToDepth),
    "DEPTH_TO_SPACE": partial(rearrange.blocks, kind=ops.DepthToSpace),
    "RESIZE_NEAREST_NEIGHBOR": partial(rearrange.resize, mode=ResizeMode.NEAREST),
    "RESIZE_BILINEAR": partial(rearrange.resize, mode=ResizeMode.LINEAR),
}

_SIZE = "the size of its result depends on the data; convert the model without it and compute it in the application"
_ROUNDS = "it is a layer of an old converter; convert it with unroll=True, or with TensorFlow 2.16 or later"
_PLAIN = "it needs TensorFlow itself; convert the model with TFLITE_BUILTINS alone"

# Advice about unsupported operators; those not listed should be removed.
_ADVICE: dict[str, str] = {
    "UNIQUE": _SIZE,
    **dict.fromkeys(
        ("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"), _ROUNDS
    ),
}


def advice(kind: str) -> str:
    """Advice about an unsupported operator, besides removing it."""
    if kind.startswith("custom operator 'Flex"):
        return _PLAIN
    return DESCRIBE if kind.startswith("custom operator") else _ADVICE.get(kind, "")


_CUSTOM = re.compile(r"custom operator '(.*)'", re.S)


def importer_of(kind: str) -> Importer | None:
    """The function that reads an operator: ours, or one for a custom operator of the user's."""
    if kind in IMPORTERS:
        return IMPORTERS[kind]
    named = _CUSTOM.fullmatch(kind)
    return partial(_custom, name=named[1]) if named and find_custom(named[1]) else None


def _custom(layer: LayerImport, name: str) -> None:
    if len(layer.outputs) != 1 or layer.result().quant is not None:
        raise Unsupported("a custom operator has one output, of plain numbers")
    inputs = [layer.input(i) for i in range(len(layer.operator.inputs))]
    layer.emit(ops.Custom(name, to_json({"options": layer.operator.custom})), inputs)
