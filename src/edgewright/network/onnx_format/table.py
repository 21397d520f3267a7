"""The table of functions that read ONNX operators."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import inf

from .. import operators as ops
from ..onnx_names import COMPARISONS, REDUCTIONS, UNARY
from . import (
    constants,
    elementwise,
    fused,
    linear,
    normalise,
    picking,
    quantised,
    rearrange,
    recurrent,
    resize,
    windows,
    withdrawn,
)
from .elementwise import Importer

ADD, SUB, MUL, DIV, MIN, MAX = (ops.BinaryKind[name] for name in ("ADD", "SUB", "MUL", "DIV", "MIN", "MAX"))

STANDARD: Mapping[str, Importer] = {
    **{name: partial(elementwise.unary, kind=kind) for kind, name in UNARY.items()},
    **{name: partial(elementwise.compare, kind=kind) for kind, name in COMPARISONS.items()},
    **{name: partial(linear.reduce, kind=kind) for kind, name in REDUCTIONS.items()},
    **{kind.value.capitalize(): partial(elementwise.binary, kind=kind) for kind in (ADD, SUB, MUL, DIV)},
    **{name: partial(elementwise.chain, kind=kind) for name, kind in (("Max", MAX), ("Min", MIN), ("Sum", ADD))},
    "Affine": withdrawn.affine,
    "ArgMax": partial(linear.arg_max, least=False),
    "ArgMin": partial(linear.arg_max, least=True),
    "AveragePool": lambda node: windows.averaging(node, node.input(0)),
    "BatchNormalization": normalise.batch_norm,
    "Cast": elementwise.cast,
    "CastLike": elementwise.cast_like,
    "Clip": elementwise.clip,
    "Compress": picking.compress,
    "Concat": rearrange.concat,
    "Constant": constants.constant,
    "ConstantOfShape": constants.constant_of_shape,
    "Conv": windows.conv,
    "ConvInteger": quantised.conv_integer,
    "ConvTranspose": windows.conv_transpose,
    "Cosh": partial(elementwise.hyperbolic, kind=ADD),
    "Crop": withdrawn.crop,
    "CumSum": linear.cum_sum,
    "DepthToSpace": rearrange.depth_to_space,
    "DequantizeLinear": quantised.dequantize_linear,
    "Dropout": rearrange.dropout,
    "DynamicQuantizeLinear": quantised.dynamic_quantize_linear,
    "Einsum": linear.einsum,
    "Elu": lambda node: elementwise.parametric(node, ops.Elu, "alpha"),
    "EyeLike": constants.eye_like,
    "Expand": rearrange.expand,
    "Flatten": rearrange.flatten,
    "Gather": picking.gather,
    "GatherElements": picking.gather_elements,
    "GatherND": picking.gather_nd,
    "Gelu": elementwise.gelu,
    "GRU": recurrent.gru,
    "Gemm": linear.gemm,
    "GlobalAveragePool": partial(windows.global_pool, kind=ops.ReduceKind.MEAN),
    "GlobalMaxPool": partial(windows.global_pool, kind=ops.ReduceKind.MAX),
    "GridSample": resize.grid_sample,
    "GroupNormalization": normalise.group_norm,
    "HardSigmoid": lambda node: elementwise.parametric(node, ops.HardSigmoid, "alpha", "beta"),
    "Hardmax": elementwise.hardmax,
    "Identity": lambda node: node.input(0),
    "ImageScaler": withdrawn.image_scaler,
    "InstanceNormalization": normalise.instance_norm,
    "IsNaN": lambda node: elementwise.compared(node, ops.CompareKind.NOT_EQUAL, node.input(0), node.input(0)),
    "LRN": normalise.lrn,
    "LSTM": recurrent.lstm,
    "LayerNormalization": normalise.layer_norm,
    "LeakyRelu": lambda node: elementwise.parametric(node, ops.LeakyRelu, "alpha"),
    "LogSoftmax": partial(normalise.softmax, kind=ops.LogSoftmax),
    "LpNormalization": normalise.lp_norm,
    "MatMul": linear.matmul,
    "MatMulInteger": quantised.matmul_integer,
    "MaxPool": windows.max_pool,
    "Mean": elementwise.mean,
    "Mod": elementwise.mod,
    "Not": elementwise.negation,
    "OneHot": elementwise.one_hot,
    "PRelu": elementwise.prelu,
    "Pad": rearrange.pad,
    "Pow": elementwise.power,
    "QLinearConv": quantised.qlinear_conv,
    "QLinearMatMul": quantised.qlinear_matmul,
    "QuantizeLinear": quantised.quantize_linear,
    "RNN": recurrent.rnn,
    "Range": constants.range_,
    "ReduceLogSumExp": linear.log_sum_exp,
    "Relu": partial(elementwise.clamp, low=0.0, high=inf),
    "Reshape": rearrange.reshape,
    "Resize": resize.resize,
    "ReverseSequence": picking.reverse_sequence,
    "STFT": linear.stft,
    "ScaledTanh": withdrawn.scaled_tanh,
    "ScatterElements": picking.scatter_elements,
    "ScatterND": picking.scatter_nd,
    "Selu": elementwise.selu,
    "Shape": constants.shape_of,
    "Sinh": partial(elementwise.hyperbolic, kind=SUB),
    "Size": constants.size_of,
    "Slice": rearrange.slice_,
    "Softmax": partial(normalise.softmax, kind=ops.Softmax),
    "SpaceToDepth": rearrange.space_to_depth,
    "Split": rearrange.split,
    "Squeeze": rearrange.squeeze,
    "Tan": elementwise.tangent,
    "Tile": rearrange.tile,
    "Transpose": rearrange.transpose,
    "TopK": linear.top_k,
    "Trilu": elementwise.trilu,
    "Unsqueeze": rearrange.unsqueeze,
    "Upsample": resize.upsample,
    "Where": elementwise.where,
    "Xor": partial(elementwise.compare, kind=ops.CompareKind.NOT_EQUAL),
}

# onnxruntime's own operators: quantised ones, and those of optimised models.
MICROSOFT: Mapping[str, Importer] = {
    "BiasGelu": fused.gelu,
    "DequantizeLinear": quantised.dequantize_linear,
    "FastGelu": fused.gelu,
    "FusedConv": fused.conv,
    "FusedGemm": fused.gemm,
    "FusedMatMul": fused.matmul,
    "Gelu": elementwise.gelu,
    "QGemm": quantised.qgemm,
    "QLinearAdd": partial(quantised.qlinear_binary, kind=ADD),
    "QLinearAveragePool": quantised.qlinear_average_pool,
    "QLinearConcat": quantised.qlinear_concat,
    "QLinearGlobalAveragePool": quantised.qlinear_global_average_pool,
    "QLinearLeakyRelu": quantised.qlinear_leaky_relu,
    "QLinearMul": partial(quantised.qlinear_binary, kind=MUL),
    "QLinearSigmoid": partial(quantised.single, op=ops.Unary(ops.UnaryKind.SIGMOID)),
    "QLinearSoftmax": quantised.qlinear_softmax,
    "QuantizeLinear": quantised.quantize_linear,
    "QuickGelu": fused.quick_gelu,
    "SkipLayerNormalization": fused.skip_layer_norm,
}

OPERATORS: Mapping[str, Mapping[str, Importer]] = {"": STANDARD, "com.microsoft": MICROSOFT}

_CUT = "cut the model before it (onnx.utils.extract_model) and compute it in the application"
_SIZE = f"the size of its result depends on the data: {_CUT}"
_RANDOM = "it draws random numbers: export the model for inference"

# Advice about operators that are not supported.
ADVICE: Mapping[str, str] = {
    **dict.fromkeys(("NonMaxSuppression", "NonZero", "Unique"), _SIZE),
    **dict.fromkeys(("Col2Im", "DFT", "DeformConv", "Det", "MaxRoiPool", "MaxUnpool", "RoiAlign"), _CUT),
    **dict.fromkeys(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"), _RANDOM),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), _RANDOM),
    **dict.fromkeys(("Scan", "SequenceMap"), "unroll the loop when exporting"),
    **dict.fromkeys(
        ("SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SplitToSequence", "ConcatFromSequence"),
        "export the model with fixed shapes, where lists of tensors become Split and Concat",
    ),
}
