"""Turns a float32 model into an int8 one with ONNX Runtime; where the model comes from is left to others."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from ..errors import InputError
from ..lazy import lazy_module, load_package

quantization = lazy_module("onnxruntime.quantization", "reference")  # takes long to load, and few need it

Form = Literal["qdq", "qoperator"]
Feed = Mapping[str, npt.NDArray[Any]]

FORMATS = {"qdq": "QDQ", "qoperator": "QOperator"}
CALIBRATION_INPUTS = 16
SMALL = 100  # below the largest of every integer type, and below the rows of any real embedding


def example_inputs(model: onnx.ModelProto, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Seeded values for every input: standard normal floats, or small integers, as embeddings expect.

    An axis of unknown length counts as one.
    """
    rng = np.random.default_rng(seed)
    feed: dict[str, npt.NDArray[Any]] = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = tuple(d.dim_value or 1 for d in tensor.shape.dim)
        if tensor.elem_type == TensorProto.FLOAT:
            feed[value.name] = rng.standard_normal(shape, np.float32)
        else:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            feed[value.name] = rng.integers(SMALL, size=shape, dtype=dtype)
    return feed


def quantise(
    model: onnx.ModelProto, form: Form = "qdq", feeds: Sequence[Feed] = (), further: Sequence[str] = ()
) -> onnx.ModelProto:
    """The model with int8 activations and int8 weights, one scale per output channel.

    "qdq" wraps float operators in QuantizeLinear and DequantizeLinear, "qoperator" uses QLinearConv and its
    like. Inputs and outputs stay float. Ranges are the extremes over `feeds`, or over seeded random inputs.
    `further` are types of operators that are quantised besides those that onnxruntime chooses.
    """
    if form not in FORMATS:
        raise InputError(f"unknown quantised form {form!r}. Choose one of: {', '.join(FORMATS)}.")
    given = feeds or [example_inputs(model, seed) for seed in range(CALIBRATION_INPUTS)]
    with TemporaryDirectory(prefix="edgewright-") as folder, _without_log():
        # By file, because the quantiser moves the weights out of a model that it is handed in memory.
        source, result = Path(folder, "float32.onnx"), Path(folder, "int8.onnx")
        onnx.save(model, source)
        quantization.quantize_static(
            source,
            result,
            _CalibrationFeeds(given),
            quant_format=quantization.QuantFormat[FORMATS[form]],
            per_channel=True,
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            op_types_to_quantize=_usual_operators() + list(further) if further else None,
        )
        return onnx.load(result)


def _usual_operators() -> list[str]:
    """The types of operators that onnxruntime quantises when it is not told which."""
    registry = load_package("onnxruntime.quantization.registry", "reference")
    return [*dict.fromkeys([*registry.QLinearOpsRegistry, *registry.QDQRegistry])]


class _CalibrationFeeds:
    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)


@contextmanager
def _without_log() -> Iterator[None]:
    """No advice from the quantiser, which logs to the root logger, while the block runs."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
