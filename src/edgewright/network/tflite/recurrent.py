"""The importer of LSTM layers as converters before Keras 3 write them: unrolled over steps that share the weights.

Their states are variables, which LiteRT keeps from one call to the next; here every call begins with zeros, as after
LiteRT's reset_all_variables.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tflite

from ...errors import Unsupported
from ..operators import Binary, BinaryKind, Clamp, Concat, Dense, Op, Reshape, Slice, Unary, UnaryKind
from ..tensor import DType
from .control import MOST_ROUNDS
from .import_state import LayerImport

_GATES = "ifco"  # input, forget, cell, output: their weights, then those of the state, then biases 12 inputs on
_PEEPHOLES, _MORE = (9, 10, 11), (16, 17, 20, 21, 22, 23)  # inputs of what is not handled


def sequence_lstm(layer: LayerImport) -> None:
    options = layer.options(tflite.UnidirectionalSequenceLSTMOptions)
    if any(layer.has(i) for i in (*_PEEPHOLES, *_MORE)) or not layer.has(1):
        raise Unsupported("it has peepholes, projections, normalised or coupled gates; convert it with unroll=True")
    if options.FusedActivationFunction() != tflite.ActivationFunctionType.TANH:
        raise Unsupported(f"its activation is {options.FusedActivationFunction()}, not tanh")
    weights = [layer.value(i, "weights") for i in range(1, 9)]
    biases = [
        layer.value(12 + i, "bias") if layer.has(12 + i) else np.zeros(len(weights[i]), np.float32) for i in range(4)
    ]
    if any(values.dtype != np.float32 for values in (*weights, *biases)) or layer.tensor().dtype is not DType.FLOAT32:
        raise Unsupported("its weights are quantised; convert it with unroll=True")
    time = 0 if options.TimeMajor() else 1
    shape = layer.shape()
    if len(shape) != 3 or shape[time] > MOST_ROUNDS:
        raise Unsupported(f"{shape} has more than {MOST_ROUNDS} steps, or is no sequence; shorten it")
    both = [layer.constant(f"w_{g}", np.hstack([weights[i], weights[4 + i]])) for i, g in enumerate(_GATES)]
    added = [layer.constant(f"b_{g}", bias) for g, bias in zip(_GATES, biases, strict=True)]
    count, size = shape[1 - time], len(biases[0])
    h = c = layer.constant("zeros", np.zeros((count, size), np.float32))
    clip = float(options.CellClip())
    states = []
    for step in range(shape[time]):

        def made(op: Op, inputs: Sequence[str], tag: str, step: int = step) -> str:
            return layer.inner(op, inputs, f"{step}/{tag}", DType.FLOAT32, None)

        starts = tuple(step if axis == time else 0 for axis in range(3))
        sizes = tuple(1 if axis == time else extent for axis, extent in enumerate(shape))
        x = made(Slice(starts, sizes, (1, 1, 1)), [layer.input()], "x")
        line = made(Concat(1), [made(Reshape((count, shape[2])), [x], "row"), h], "both")
        sums = [made(Dense(), [line, w, b], f"{g}/sum") for w, b, g in zip(both, added, _GATES, strict=True)]
        kinds = [UnaryKind.TANH if g == "c" else UnaryKind.SIGMOID for g in _GATES]
        i, f, g, o = (made(Unary(k), [y], n) for k, y, n in zip(kinds, sums, _GATES, strict=True))
        kept, new = made(Binary(BinaryKind.MUL), [f, c], "kept"), made(Binary(BinaryKind.MUL), [i, g], "new")
        c = made(Binary(BinaryKind.ADD), [kept, new], "cell")
        if clip > 0:
            c = made(Clamp(-clip, clip), [c], "clipped")
        h = made(Binary(BinaryKind.MUL), [o, made(Unary(UnaryKind.TANH), [c], "shown")], "h")
        states.append(made(Reshape((1, count, size) if time == 0 else (count, 1, size)), [h], "state"))
    layer.emit(Concat(time), states)
    layer.state.builder.notes.append(f"layer '{layer.label}': every call begins with states of zero")
