"""The importer of LSTM layers as written by converters before Keras 3: unrolled over steps that share the weights.

LiteRT keeps their states in variables from call to call; here every call begins with zeros, as after LiteRT's
reset_all_variables.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp

import numpy as np
import tflite

from ...errors import Unsupported
from .. import operators as ops
from ..operators import Binary, BinaryKind, Concat, Conv2d, Dense, LstmPart, LstmStep, Reshape, Slice
from ..region import Shape
from ..tensor import Array, DType, Quant
from .control import MOST_ROUNDS
from .import_state import LayerImport
from .states import ONE

_GATES = 4  # input, forget, cell, output: their weights, then the state's, then biases 12 inputs later
_PEEPHOLES, _MORE = (9, 10, 11), (16, 17, 20, 21, 22, 23)  # unsupported inputs
_SUMS = Quant.of(2.0**-12)  # of gate sums in 16 bits

Step = Callable[[str, str | None, str | None, str], tuple[str, str]]  # (x, h, c, tag) -> the next h and c


def sequence_lstm(layer: LayerImport) -> None:
    options = layer.options(tflite.UnidirectionalSequenceLSTMOptions)
    if any(layer.has(i) for i in (*_PEEPHOLES, *_MORE)) or not layer.has(1):
        raise Unsupported("it has peepholes, projections, normalised or coupled gates; convert it with unroll=True")
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.TANH:
        raise Unsupported(f"its activation is {options.FusedActivationFunction()}, not tanh")
    time = 0 if options.TimeMajor() else 1
    shape = layer.shape()
    if len(shape) != 3 or shape[time] > MOST_ROUNDS:
        raise Unsupported(f"{shape} has more than {MOST_ROUNDS} steps, or is no sequence; shorten it")
    x, result, size = layer.tensor(), layer.result(), layer.shape(5)[-1]
    clip = float(options.CellClip()) if options.CellClip() > 0 else None
    rows = (1, shape[1], 1) if time == 0 else (shape[0], 1, 1)
    weights = [_weights(layer, 1, (size, shape[2])), _weights(layer, 5, (size, size))]
    types = {x.dtype.value, result.dtype.value}, {values.dtype.name for values in weights}
    if types == ({"int8"}, {"int8"}):
        step = _stored_step(layer, weights, clip)
    elif types == ({"float32"}, {"float32"}):
        step = _real_step(layer, weights, rows, clip)
    elif types == ({"float32"}, {"int8"}):
        step = _dynamic_step(layer, weights, rows, clip, bool(options.AsymmetricQuantizeInputs()))
    else:
        raise Unsupported(f"its elements are {x.dtype.value}, its weights {weights[0].dtype}")
    # As an image with one row or column per step; stored numbers are used as they are.
    image = (*shape[:2], 1, shape[2])
    counted = None if x.quant is None else Quant.of(1.0, x.quant.zero[0])
    seen = layer.inner(Reshape(image), [layer.input()], "image", x.dtype, counted)
    h: str | None = None
    c: str | None = None
    states = []
    for number in range(shape[time]):
        starts = tuple(number if axis == time else 0 for axis in range(4))
        sizes = tuple(1 if axis == time else extent for axis, extent in enumerate(image))
        row = layer.inner(Slice(starts, sizes, (1, 1, 1, 1)), [seen], f"{number}/x", x.dtype, counted)
        h, c = step(row, h, c, f"{number}/")
        states.append(h)
    quant = layer.state.builder.tensors[states[0]].quant
    joined = layer.inner(Concat(time), states, "states", result.dtype, quant) if len(states) > 1 else states[0]
    layer.emit(Reshape((*shape[:2], size)), [joined])
    layer.state.builder.notes.append(f"layer '{layer.label}': every call begins with states of zero")


def _weights(layer: LayerImport, first: int, shape: Shape) -> Array:
    """The weights of all gates, stacked."""
    values = [layer.value(first + i, "weights") for i in range(_GATES)]
    if any(value.shape != shape or value.dtype != values[0].dtype for value in values):
        raise layer.error(f"weights of shapes {[value.shape for value in values]}, where {shape} are due")
    return np.concatenate(values)


def _bias(layer: LayerImport, size: int, dtype: type) -> Array:
    values = [layer.value(12 + i, "bias") if layer.has(12 + i) else np.zeros(size, dtype) for i in range(_GATES)]
    if any(value.shape != (size,) or value.dtype != dtype for value in values):
        raise layer.error(f"biases of shapes {[value.shape for value in values]}, where {size} numbers are due")
    return np.concatenate(values)


def _scales(layer: LayerImport, first: int, size: int) -> Array:
    """The scales of all gates' weights, one for each row."""
    quants = [layer.tensor(first + i).quant for i in range(_GATES)]
    if any(quant is None or quant.is_per_channel or any(quant.zero) for quant in quants):
        raise Unsupported("its weights have no scale, or several, or a zero point")
    return np.repeat(np.array([quant.scale[0] for quant in quants if quant is not None], np.float32), size)


def _real_step(layer: LayerImport, weights: list[Array], rows: Shape, clip: float | None) -> Step:
    size = weights[1].shape[1]
    both = layer.constant("weights", np.hstack(weights))
    bias = layer.constant("bias", _bias(layer, size, np.float32))
    zeros = layer.constant("zeros", np.broadcast_to(np.float32(0), (*rows, size)))

    def step(x: str, h: str | None, c: str | None, tag: str) -> tuple[str, str]:
        line = layer.inner(Concat(3), [x, h or zeros], f"{tag}both")
        gates = layer.inner(Dense(), [line, both, bias], f"{tag}gates")
        cell = layer.inner(LstmStep(LstmPart.CELL, clip), [gates, c or zeros], f"{tag}cell")
        return layer.inner(LstmStep(LstmPart.HIDDEN), [gates, cell], f"{tag}h"), cell

    return step


def _dynamic_step(layer: LayerImport, weights: list[Array], rows: Shape, clip: float | None, asymmetric: bool) -> Step:
    """A step with stored weights and dynamically quantised activations."""
    size = weights[1].shape[1]
    stored = [layer.constant(name, w) for name, w in zip(("input", "recurrent"), weights, strict=True)]
    scales = [layer.constant(f"scale_{i}", _scales(layer, i, size)) for i in (1, 5)]
    added = [_bias(layer, size, np.float32), np.zeros(_GATES * size, np.float32)]
    biases = [layer.constant("bias", values) for values in added]
    zeros = layer.constant("zeros", np.broadcast_to(np.float32(0), (*rows, size)))

    def product(which: int, x: str, tag: str) -> str:
        span = layer.inner(ops.DynamicRange(3, asymmetric), [x], f"{tag}range")
        small = layer.inner(ops.DynamicQuantize(asymmetric), [x, span], f"{tag}stored", DType.INT8)
        inputs = [small, stored[which], scales[which], biases[which], span]
        return layer.inner(ops.DynamicProduct(Dense(), asymmetric), inputs, f"{tag}sum", DType.FLOAT32)

    def step(x: str, h: str | None, c: str | None, tag: str) -> tuple[str, str]:
        gates = product(0, x, f"{tag}x/")
        if h is not None:
            gates = layer.inner(Binary(BinaryKind.ADD), [gates, product(1, h, f"{tag}h/")], f"{tag}gates")
        cell = layer.inner(LstmStep(LstmPart.CELL, clip), [gates, c or zeros], f"{tag}cell")
        return layer.inner(LstmStep(LstmPart.HIDDEN), [gates, cell], f"{tag}h"), cell

    return step


def _stored_step(layer: LayerImport, weights: list[Array], clip: float | None) -> Step:
    """A step in integers: gates and cell have 16 bits. Scales of products are combined in float32, as in LiteRT."""
    size, x, result = weights[1].shape[1], layer.tensor(), layer.result()
    tensors = layer.state.file.tensors
    state, cell_state = (tensors[layer.index(i)].quant for i in (18, 19))
    hidden = tensors[layer.operator.intermediates[4]].quant if len(layer.operator.intermediates) > 4 else None
    if x.quant is None or result.quant is None or state is None or cell_state is None or hidden is None:
        raise Unsupported("scales of its states are missing")
    fraction, exponent = frexp(cell_state.scale[0])
    if fraction != 0.5 or not 0 <= exponent + 14 <= 6:
        raise Unsupported(f"the scale {cell_state.scale[0]} of its cells is no power of two that LiteRT takes")

    def constants(name: str, values: Array, first: int, scale: float) -> str:
        scales = _scales(layer, first, size) * np.float32(scale)
        quant = Quant(tuple(map(float, scales)), (0,) * len(scales), 0)
        return layer.constant(name, values.reshape(len(values), 1, 1, -1), quant)

    of_input = constants("input", weights[0], 1, x.quant.scale[0])
    of_state = constants("recurrent", weights[1], 5, state.scale[0])
    bias = layer.constant("bias", _bias(layer, size, np.int32), ONE)
    counted = Quant.of(1.0, state.zero[0])
    # LiteRT truncates a clip rather than rounding it.
    clip = None if clip is None else int(clip / cell_state.scale[0]) * cell_state.scale[0]

    def add_layer(op: ops.Op, inputs: list[str], tag: str, quant: Quant, dtype: DType = DType.INT16) -> str:
        return layer.inner(op, inputs, tag, dtype, quant)

    def step(row: str, h: str | None, c: str | None, tag: str) -> tuple[str, str]:
        gates = add_layer(Conv2d(), [row, of_input, bias], f"{tag}x/sum", _SUMS)
        shape = (*layer.state.builder.shape(row)[:3], size)
        if h is not None:
            steps = add_layer(Reshape(shape), [h], f"{tag}h/steps", counted, DType.INT8)
            sums = add_layer(Conv2d(), [steps, of_state], f"{tag}h/sum", _SUMS)
            gates = add_layer(Binary(BinaryKind.ADD), [gates, sums], f"{tag}gates", _SUMS)
        before = c or layer.constant(f"{tag}zeros", np.broadcast_to(np.int16(0), shape), cell_state)
        cell = add_layer(LstmStep(LstmPart.CELL, clip), [gates, before], f"{tag}cell", cell_state)
        return add_layer(LstmStep(LstmPart.HIDDEN), [gates, cell], f"{tag}h", hidden, DType.INT8), cell

    return step
