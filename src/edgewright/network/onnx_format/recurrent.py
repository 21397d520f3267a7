"""Importers of LSTM, GRU and RNN: unrolled over their steps, which share the weights.

Weights of the input and of the state are joined, so that a gate is one Dense of both with its activation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from .. import operators as ops
from ..operators import Activation, Binary, BinaryKind, Dense
from ..tensor import Array, DType
from .context import Constant, Value
from .elementwise import NAMED
from .node import OnnxNode

MOST_STEPS = 200  # each adds a dozen layers, and planning time grows faster than linearly
_PLAIN = {name.lower(): function for name, function in NAMED.items()}


@dataclass(frozen=True, slots=True)
class RecurrentGate:
    """The weights of a gate for input and state, joined; its bias and its activation."""

    weights: Constant
    bias: Constant
    activation: Activation


@dataclass(frozen=True, slots=True)
class RecurrentSteps:
    """The data shared by all steps of one direction."""

    node: OnnxNode
    name: str  # of the direction
    clip: float
    gates: tuple[RecurrentGate, ...]

    def layer(self, op: ops.Op, inputs: Sequence[Value], tag: str) -> Value:
        return self.node.layer(op, inputs, f"{self.name}{tag}")

    def dense(self, gate: RecurrentGate, x: Value, tag: str) -> Value:
        y = self.layer(Dense(), [x, gate.weights, gate.bias], f"{tag}/sum")
        return self.activated(gate, y, tag)

    def activated(self, gate: RecurrentGate, y: Value, tag: str) -> Value:
        if self.clip < inf:
            y = self.layer(ops.Clamp(-self.clip, self.clip), [y], f"{tag}/clip")
        return self.layer(gate.activation, [y], tag)

    def pair(self, kind: BinaryKind, a: Value, b: Value, tag: str) -> Value:
        return self.layer(Binary(kind), [a, b], tag)


State = tuple[Value, ...]  # h, and c of an LSTM
Step = Callable[[RecurrentSteps, Value, State, str], State]


def lstm(node: OnnxNode) -> tuple[Value, ...]:
    """Gates in the order input, output, forget, cell."""
    if node.flag("input_forget") or node.optional(7) is not None:
        raise node.unsupported("coupled gates and peepholes")
    return _unrolled(node, "iofc", ("Sigmoid", "Tanh", "Tanh"), (0, 0, 0, 1, 2), _lstm_step, states=2)


def gru(node: OnnxNode) -> tuple[Value, ...]:
    """Gates in the order update, reset, hidden. The state's sums are reset before or after their product."""
    step = _gru_step_after if node.flag("linear_before_reset") else _gru_step_before
    return _unrolled(node, "zrh", ("Sigmoid", "Tanh"), (0, 0, 1), step, states=1)


def rnn(node: OnnxNode) -> tuple[Value, ...]:
    return _unrolled(node, "i", ("Tanh",), (0,), _rnn_step, states=1)


def _lstm_step(steps: RecurrentSteps, x: Value, state: State, tag: str) -> State:
    h, c = state
    both = steps.layer(ops.Concat(1), [x, h], f"{tag}/both")
    i, o, f, g = (steps.dense(gate, both, f"{tag}/{name}") for gate, name in zip(steps.gates[:4], "iofc", strict=True))
    kept = steps.pair(BinaryKind.MUL, f, c, f"{tag}/kept")
    added = steps.pair(BinaryKind.MUL, i, g, f"{tag}/added")
    c = steps.pair(BinaryKind.ADD, kept, added, f"{tag}/cell")
    shown = steps.layer(steps.gates[4].activation, [c], f"{tag}/shown")
    return steps.pair(BinaryKind.MUL, o, shown, f"{tag}/h"), c


def _gru_step_before(steps: RecurrentSteps, x: Value, state: State, tag: str) -> State:
    update, reset, hidden = steps.gates
    both = steps.layer(ops.Concat(1), [x, state[0]], f"{tag}/both")
    z, r = steps.dense(update, both, f"{tag}/z"), steps.dense(reset, both, f"{tag}/r")
    kept = steps.pair(BinaryKind.MUL, r, state[0], f"{tag}/reset")
    n = steps.dense(hidden, steps.layer(ops.Concat(1), [x, kept], f"{tag}/rest"), f"{tag}/n")
    return _mixed(steps, z, n, state[0], tag)


def _gru_step_after(steps: RecurrentSteps, x: Value, state: State, tag: str) -> State:
    """The hidden gate is split into two, for input and state, because the reset comes between them."""
    update, reset, of_input, of_state = steps.gates
    both = steps.layer(ops.Concat(1), [x, state[0]], f"{tag}/both")
    z, r = steps.dense(update, both, f"{tag}/z"), steps.dense(reset, both, f"{tag}/r")
    new = steps.layer(Dense(), [x, of_input.weights, of_input.bias], f"{tag}/new")
    old = steps.layer(Dense(), [state[0], of_state.weights, of_state.bias], f"{tag}/old")
    kept = steps.pair(BinaryKind.MUL, r, old, f"{tag}/reset")
    n = steps.activated(of_input, steps.pair(BinaryKind.ADD, new, kept, f"{tag}/sum"), f"{tag}/n")
    return _mixed(steps, z, n, state[0], tag)


def _mixed(steps: RecurrentSteps, z: Value, n: Value, h: Value, tag: str) -> State:
    """z * h + (1 - z) * n."""
    moved = steps.pair(BinaryKind.MUL, z, steps.pair(BinaryKind.SUB, h, n, f"{tag}/way"), f"{tag}/moved")
    return (steps.pair(BinaryKind.ADD, n, moved, f"{tag}/h"),)


def _rnn_step(steps: RecurrentSteps, x: Value, state: State, tag: str) -> State:
    both = steps.layer(ops.Concat(1), [x, state[0]], f"{tag}/both")
    return (steps.dense(steps.gates[0], both, f"{tag}/h"),)


def _unrolled(
    node: OnnxNode, gates: str, functions: tuple[str, ...], which: tuple[int, ...], step: Step, states: int
) -> tuple[Value, ...]:
    """Y (steps, directions, batch, hidden), and the last states; `which` names each gate's function."""
    last = node.flag("layout")
    x = node.input(0)
    if len(node.shape(x)) != 3 or node.tensor(x).dtype is not DType.FLOAT32:
        raise node.error(f"needs three axes of floats, not {node.tensor(x)}")
    if last:
        x = node.transposed(x, (1, 0, 2), "steps")
    count, batch, features = node.shape(x)
    if not 0 < count <= MOST_STEPS:
        raise node.unsupported(f"{count} steps: cut the sequence to at most {MOST_STEPS}, and hand the state on")
    directions = {"forward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}.get(node.text("direction", "forward"))
    if directions is None:
        raise node.error(f"direction '{node.text('direction', '')}' is not known")
    hidden = node.shape(node.input(2))[-1]
    if node.integer("hidden_size", hidden) != hidden:
        raise node.error(f"hidden_size is {node.integer('hidden_size', 0)}, the weights have {hidden}")
    _require_all_steps(node, count, batch)
    stated = _activations(node, functions, len(directions))
    rows = node.reshaped(x, (count * batch, features), "rows")
    clip = node.real("clip", inf) if "clip" in node.attributes else inf
    ends: list[State] = []
    lines: list[Value] = []
    for d, direction in enumerate(directions):
        made = _gates(node, gates, d, (features, hidden), stated[d], which)
        steps = RecurrentSteps(node, "" if len(directions) == 1 else ("forward/", "back/")[d], clip, made)
        state = tuple(_initial(node, 5 + i, d, (len(directions), batch, hidden)) for i in range(states))
        outputs = []
        for t in range(count)[::direction]:
            part = ops.Slice((t * batch, 0), (batch, features), (1, 1))
            state = step(steps, steps.layer(part, [rows], f"{t}/x") if count > 1 else rows, state, str(t))
            outputs.append(state[0])
        ends.append(state)
        lines.append(_line(node, steps, outputs[::direction], (count, 1, batch, hidden)))
    y = lines[0] if len(lines) == 1 else node.layer(ops.Concat(1), lines, "y")
    finals = [_final(node, [state[i] for state in ends], (batch, hidden), f"last{i}") for i in range(states)]
    if last:
        return (node.transposed(y, (2, 0, 1, 3), "y_last"), *(node.transposed(f, (1, 0, 2), "last") for f in finals))
    return (y, *finals)


def _line(node: OnnxNode, steps: RecurrentSteps, outputs: list[Value], shape: tuple[int, ...]) -> Value:
    joined = outputs[0] if len(outputs) == 1 else steps.layer(ops.Concat(0), outputs, "line")
    return node.layer(ops.Reshape(shape), [joined], f"{steps.name}all")


def _final(node: OnnxNode, parts: list[Value], shape: tuple[int, ...], tag: str) -> Value:
    """The last states of the directions, joined."""
    joined = parts[0] if len(parts) == 1 else node.layer(ops.Concat(0), parts, f"{tag}/both")
    return node.layer(ops.Reshape((len(parts), *shape)), [joined], tag)


def _require_all_steps(node: OnnxNode, count: int, batch: int) -> None:
    lengths = node.optional(4)
    if lengths is None:
        return
    stated = node.array_ints(lengths, "sequence_lens")
    if stated != (count,) * batch:
        raise node.unsupported(f"sequences of {list(stated)} steps in a tensor of {count}")


def _activations(node: OnnxNode, functions: tuple[str, ...], directions: int) -> list[tuple[Activation, ...]]:
    """The functions of each direction; those with parameters take them from two lists in order."""
    node.asked.update(("activations", "activation_alpha", "activation_beta"))
    stated = node.attributes.get("activations")
    names = [s.decode("utf-8", "replace") for s in stated.strings] if stated is not None else [*functions] * directions
    if len(names) != len(functions) * directions:
        raise node.error(f"has {len(names)} activations instead of {len(functions) * directions}")
    alphas, betas = list(node.reals("activation_alpha") or ()), list(node.reals("activation_beta") or ())
    activations: list[Activation] = []
    for name in names:
        match name.lower():
            case "leakyrelu":
                activations.append(ops.LeakyRelu(alphas.pop(0) if alphas else 0.01))
            case "elu":
                activations.append(ops.Elu(alphas.pop(0) if alphas else 1.0))
            case "hardsigmoid":
                activations.append(ops.HardSigmoid(alphas.pop(0) if alphas else 0.2, betas.pop(0) if betas else 0.5))
            case plain if plain in _PLAIN:
                activations.append(_PLAIN[plain])
            case _:
                raise node.unsupported(f"the activation '{name}'")
    return [tuple(activations[i : i + len(functions)]) for i in range(0, len(activations), len(functions))]


def _gates(
    node: OnnxNode,
    names: str,
    d: int,
    sizes: tuple[int, int],
    functions: tuple[Activation, ...],
    which: tuple[int, ...],
) -> tuple[RecurrentGate, ...]:
    """The gates of a direction: constants that all its steps share."""
    features, hidden = sizes
    w = _weights(node, 1, "weights", d, (len(names) * hidden, features))
    r = _weights(node, 2, "weights of the state", d, (len(names) * hidden, hidden))
    if node.optional(3) is None:
        b: Array = np.zeros((2, len(names) * hidden), np.float32)
    else:
        b = _weights(node, 3, "bias", d, (2 * len(names) * hidden,)).reshape(2, -1)
    made = []
    for i, name in enumerate(names):
        part = slice(i * hidden, (i + 1) * hidden)
        if node.op_type == "GRU" and name == "h" and node.flag("linear_before_reset"):
            pairs = [("new", w[part], b[0, part]), ("old", r[part], b[1, part])]
        else:
            pairs = [(name, np.concatenate((w[part], r[part]), axis=1), b[0, part] + b[1, part])]
        for tag, weights, bias in pairs:
            stored = node.constant(f"{tag}{d}", weights), node.constant(f"{tag}{d}/bias", bias)
            made.append(RecurrentGate(*stored, functions[which[i]]))
    if len(which) > len(names):  # an LSTM's output has an activation without weights
        made.append(RecurrentGate(made[0].weights, made[0].bias, functions[which[-1]]))
    return tuple(made)


def _weights(node: OnnxNode, index: int, what: str, d: int, shape: tuple[int, ...]) -> Array:
    data = node.array(node.input(index), what)
    if data.ndim < 1 or d >= data.shape[0] or data.shape[1:] != shape or data.dtype != np.float32:
        raise node.error(f"{what} are {data.dtype.name}{list(data.shape)}, not {list(shape)} for each direction")
    return data[d]


def _initial(node: OnnxNode, index: int, d: int, shape: tuple[int, int, int]) -> Value:
    """The state before the first step: given, or zero."""
    given = node.optional(index)
    directions, batch, hidden = shape
    if given is None:
        return node.constant(f"state{index}", np.broadcast_to(np.float32(0), (batch, hidden)))
    if node.flag("layout"):
        given = node.transposed(given, (1, 0, 2), f"initial{index}")
    if node.shape(given) != shape:
        raise node.error(f"a first state of shape {list(node.shape(given))} instead of {list(shape)}")
    flat = node.reshaped(given, (directions * batch, hidden), f"state{index}")
    if directions == 1:
        return flat
    return node.layer(ops.Slice((d * batch, 0), (batch, hidden), (1, 1)), [flat], f"state{index}/{d}")
