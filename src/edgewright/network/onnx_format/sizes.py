"""Open sizes of an ONNX file's inputs: which are a batch, which the nodes determine, which the user must give.

ONNX's shape inference is run with probing sizes. If a node then combines sizes that do not match (a Reshape to a fixed
shape, a Concat, sum or product with a constant), bisection finds the size that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import onnx
from onnx.shape_inference import infer_shapes

from ..open_shapes import Size, is_batch
from ..region import Shape

MOST_NODES = 20_000  # larger graphs are judged by names and first layers only
MOST_SIZE = 1 << 20
MOST_CHECKS = 40  # nodes examined after a mismatch

Shapes = Mapping[str, tuple[int | None, ...]]
Check = tuple[int, ...]  # a node, and the index of its comparison
Key = str | tuple[str, int]  # an open size: its name, or input and axis if it has none


@dataclass(frozen=True, slots=True)
class KnownSizes:
    """The open sizes of a model's inputs: those that are determined, and suitable values of others."""

    known: Mapping[Key, int]
    why: Mapping[Key, str]  # for determined sizes, the explanation in a note
    fitting: Mapping[Key, int]  # other values may be accepted too

    def shape(self, name: str, sizes: Sequence[Size], *, fitting: bool = False) -> tuple[Size, ...]:
        """The sizes of an input with determined values filled in; with `fitting`, also examples of others."""
        values = {**self.known, **self.fitting} if fitting else self.known
        return tuple(
            size if isinstance(size, int) else values.get(key_of(name, axis, size), size)
            for axis, size in enumerate(sizes)
        )

    def notes(self, name: str, sizes: Sequence[Size]) -> list[str]:
        keys = [key_of(name, axis, size) for axis, size in enumerate(sizes) if isinstance(size, str)]
        return [f"input '{name}': {self.why[key]}" for key in dict.fromkeys(keys) if key in self.why]


def key_of(name: str, axis: int, size: str) -> Key:
    return size if size.isidentifier() else (name, axis)


def known_sizes(model: onnx.ModelProto, inputs: Mapping[str, Sequence[Size]], given: Mapping[str, Shape]) -> KnownSizes:
    """Determines open sizes (text) of these inputs; users gave the shapes of some."""
    determined: dict[Key, int] = {}
    why: dict[Key, str] = {}
    for name, shape in given.items():
        for axis, (size, value) in enumerate(zip(inputs.get(name, ()), shape, strict=False)):
            if isinstance(size, str) and (key := key_of(name, axis, size)) not in determined:
                determined[key], why[key] = value, f"'{size}' set to {value}, as that of '{name}'"
    open_keys: list[Key] = []
    batches = {sizes[0] for sizes in inputs.values() if sizes and isinstance(sizes[0], str) and is_batch(sizes[0], 0)}
    for name, sizes in inputs.items():
        for axis, size in enumerate(sizes):
            if isinstance(size, int):
                continue
            key = key_of(name, axis, size)
            if key in determined:
                continue
            if is_batch(size, axis) or (size.isidentifier() and size in batches):
                determined[key], why[key] = 1, f"batch size '{size}' set to 1"
            elif key not in open_keys:
                open_keys.append(key)
    if not open_keys or len(model.graph.node) > MOST_NODES:
        return KnownSizes(determined, why, {})
    search = _SizeSearch(model, inputs, determined, open_keys)
    search.run()
    return KnownSizes({**determined, **search.determined}, {**why, **search.why}, search.fitting)


class _SizeSearch:
    def __init__(
        self, model: onnx.ModelProto, inputs: Mapping[str, Sequence[Size]], known: Mapping[Key, int], keys: list[Key]
    ) -> None:
        self.inputs = inputs
        # Without stated shapes of inner tensors, because files state outdated ones.
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        graph = self.model.graph
        del graph.value_info[:]
        for output in graph.output:
            output.type.tensor_type.ClearField("shape")
        # Multiples of 32 pass most networks that halve and double; different ones tell sizes apart.
        self.values: dict[Key, int] = {**known, **{key: 32 * (2 * i + 3) for i, key in enumerate(keys)}}
        self.free = list(keys)
        self.determined: dict[Key, int] = {}
        self.why: dict[Key, str] = {}
        self.fitting: dict[Key, int] = {}

    def run(self) -> None:
        """Proceeds from one node with mismatched sizes to the next."""
        tried: set[Check] = set()
        while self.free and len(tried) < MOST_CHECKS:
            checks = self._checks(self.values)
            check = next((c for c, (a, b) in checks.items() if a != b and c not in tried), None)
            if check is None:
                return
            tried.add(check)
            self._settle(check, *checks[check])

    def _settle(self, check: Check, one: int, other: int) -> None:
        """Finds the open sizes on one side of a comparison whose other side is fixed."""
        moved: list[Key] = []
        sides = set()
        for key in self.free:
            a, b = self._checks({**self.values, key: 2 * self.values[key]}).get(check, (None, None))
            if (a, b) != (one, other):
                moved.append(key)
                sides |= {side for side, (new, old) in enumerate(((a, one), (b, other))) if new not in (None, old)}
        if not moved or len(sides) != 1:
            return
        side = sides.pop()
        wanted = (one, other)[1 - side]

        def at(size: int) -> int:
            """The value of the open side; 0 for sizes that earlier layers reject."""
            return self._checks({**self.values, **dict.fromkeys(moved, size)}).get(check, (0, 0))[side]

        least = _least(lambda size: at(size) >= wanted)
        if least is None or at(least) != wanted:
            return
        above = _least(lambda size: at(size) > wanted)
        most = MOST_SIZE if above is None else above - 1
        node = self.model.graph.node[check[0]]
        if len(moved) == 1 and least == most:
            self.determined[moved[0]] = least
            shown = moved[0] if isinstance(moved[0], str) else f"axis {moved[0][1]}"
            self.why[moved[0]] = f"'{shown}' set to {least}, as {node.op_type} '{node.name or node.output[0]}' needs it"
        else:
            aligned = -(-least // 32) * 32
            self.fitting.update(dict.fromkeys(moved, aligned if aligned <= most else least))
            least = self.fitting[moved[0]]
        for key in moved:
            self.values[key] = least
            self.free.remove(key)

    def _checks(self, values: Mapping[Key, int]) -> dict[Check, tuple[int, int]]:
        """The pairs of sizes that nodes require to be equal, for inputs of these sizes."""
        graph = self.model.graph
        for value in graph.input:
            if value.name in self.inputs:
                shape = value.type.tensor_type.shape
                del shape.dim[:]
                for axis, size in enumerate(self.inputs[value.name]):
                    key = key_of(value.name, axis, str(size))
                    shape.dim.add().dim_value = size if isinstance(size, int) else values[key]
        try:
            inferred = infer_shapes(self.model, data_prop=True).graph
        except Exception:  # of ONNX's own kinds; the model's errors are reported when it is read
            return {}
        shapes: dict[str, tuple[int | None, ...]] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        for value in (*inferred.input, *inferred.value_info, *inferred.output):
            tensor = value.type.tensor_type
            if tensor.HasField("shape") and value.name not in shapes:
                shapes[value.name] = tuple(
                    dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim
                )
        return {
            (i, *which): (a, b)
            for i, node in enumerate(graph.node)
            for which, a, b in _compared(node, shapes)
            if a is not None and b is not None
        }


def _least(holds: Callable[[int], bool]) -> int | None:
    """The smallest size from which on this holds; None if it never does."""
    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
        if high > MOST_SIZE:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


_BROADCAST = {
    "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod",
    "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
}  # fmt: skip


def _compared(node: onnx.NodeProto, shapes: Shapes) -> Iterator[tuple[Check, int | None, int | None]]:
    """Sizes that must be equal for the node to be valid, each pair with its own number."""
    given = [shapes.get(name) for name in node.input]
    numbers = {attribute.name: attribute.i for attribute in node.attribute if attribute.type == attribute.INT}
    kind, first = node.op_type, given[0] if given else None
    if first is None:
        return
    if kind == "Reshape":
        yield (), _count(first), _count(shapes.get(node.output[0]) if node.output else None)
    elif kind in _BROADCAST:
        for (i, a), (j, b) in combinations(enumerate(given), 2):
            for axis, (x, y) in enumerate(zip(reversed(a or ()), reversed(b or ()), strict=False)):
                if x != 1 and y != 1:
                    yield (i, j, axis), x, y
    elif kind == "Concat":
        for i, other in enumerate(given):
            if other is not None and len(first) == len(other):
                joined = numbers.get("axis", 1) % max(len(other), 1)
                yield from (((i, axis), first[axis], other[axis]) for axis in range(len(other)) if axis != joined)
    elif len(given) > 1 and first and given[1]:
        w = given[1]
        if kind == "MatMul" and len(w) > 1:
            yield (), first[-1], w[-2]
        elif kind == "Gemm" and len(first) == len(w) == 2:
            yield (), first[0 if numbers.get("transA") else 1], w[1 if numbers.get("transB") else 0]
        elif kind == "Conv" and len(first) == len(w) > 2:
            yield (), first[1], None if w[1] is None else w[1] * max(numbers.get("group", 1), 1)
        elif kind in ("LSTM", "GRU", "RNN") and len(first) == len(w) == 3:
            yield (), first[2], w[2]
        elif kind in ("BatchNormalization", "InstanceNormalization") and len(first) > 1:
            yield (), first[1], w[0]


def _count(shape: Sequence[int | None] | None) -> int | None:
    sizes = [size for size in shape or () if size is not None]
    return None if shape is None or len(sizes) < len(shape) else prod(sizes)


def expected_sizes(graph: onnx.GraphProto, name: str) -> tuple[Size, ...] | None:
    """The sizes for which the layer reading an input has weights, '?' for any; None if unknown."""
    weights = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    readers = {name}
    for node in graph.node:
        if not node.input or node.input[0] not in readers:
            continue
        if node.op_type in ("QuantizeLinear", "DequantizeLinear", "Cast", "Identity", "Mul", "Sub", "Add", "Div"):
            readers.update(node.output)  # same shape
        shape = weights.get(node.input[1], ()) if len(node.input) > 1 else ()
        if node.op_type == "Conv" and len(shape) > 2:
            groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
            return ("?", shape[1] * max(groups, 1), *("?" for _ in shape[2:]))
        if node.op_type in ("Gemm", "MatMul") and len(shape) == 2:
            is_turned = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            return ("?", shape[1] if is_turned else shape[0])
    return None
