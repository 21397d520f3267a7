"""The network under construction while an ONNX graph is read: layers, names, and constants that become operands.

Importers decide which layers stand for an ONNX operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...errors import Unsupported
from .. import operators as ops
from ..builder import Builder, unused_name
from ..network import Layer
from ..region import Shape
from ..stray_numbers import require_numbers, takes_infinities
from ..tensor import Array, DType, Quant, Tensor
from .tensors import ModelBytes, check_shape


class AbsentInput(Exception):
    """A node cannot be read because an earlier one was not."""

    def __init__(self, value: Absent) -> None:
        super().__init__(value)
        self.value = value


class Context:
    """The state to which importers add layers. Names of the file are kept; helper tensors never take them."""

    def __init__(self, builder: Builder, source: ModelBytes, written: set[str], given: set[str]) -> None:
        self.builder = builder
        self.source = source
        self.written = written  # names written by nodes of the file's main graph
        self.reserved = written | given  # and the names of its inputs and initializers
        self._operands: dict[tuple[object, ...], str] = {}
        self._derived: dict[tuple[object, ...], Value] = {}
        self.shifted: set[str] = set()  # uint16 tensors, stored as int16 with a shifted zero point
        self._checked: set[tuple[str, bool]] = set()  # constants that were checked, with or without infinities
        self._alive: list[Value] = []  # keeps the objects alive whose ids are keys

    # Properties of values

    def tensor(self, value: Value) -> Tensor:
        """Shape, element type and quantisation; for a constant, those it would have as an operand."""
        match value:
            case Computed(name):
                return self.builder.tensors[name]
            case Constant(name, data):
                return Tensor(name, data.shape, plain_dtype(data, name))
            case Dequantized(name, data):
                return Tensor(name, data.shape, DType.FLOAT32)
            case Absent():
                raise AbsentInput(value)

    def shape(self, value: Value) -> Shape:
        if isinstance(value, Constant | Dequantized):
            return tuple(value.data.shape)
        return self.tensor(value).shape

    # Layers

    def layer(
        self,
        op: ops.Op,
        inputs: Sequence[Value],
        name: str,
        *,
        dtype: DType | None = None,
        quant: Quant | None = None,
    ) -> Computed:
        """Adds a layer and returns its output; its size is checked."""
        operands = [self.operand(value) for value in inputs]
        for operand in operands:
            self._check_quant(op, operand, name)
            if operand in self.builder.constants:
                self._check_numbers(op, operand)
        shape = check_shape(self.builder.output_shape(op, operands, name), f"layer '{name}'")
        if prod(shape) == 0:
            raise Unsupported(f"layer '{name}' gives an empty tensor {list(shape)}")
        output = self.unused_name(name)
        if not self.shifted.isdisjoint(operands):
            self._move_shifted(op, operands, name, output)
        return Computed(self.builder.layer(op, operands, name, output=output, dtype=dtype, quant=quant))

    def _move_shifted(self, op: ops.Op, operands: Sequence[str], name: str, output: str) -> None:
        if _keeps_values(op, operands) or isinstance(op, ops.Concat):
            self.shifted.add(output)
        elif not isinstance(op, ops.Dequantize):
            raise Unsupported(f"layer '{name}' computes with stored uint16; put a DequantizeLinear before it")

    def _check_numbers(self, op: ops.Op, constant: str) -> None:
        key = constant, takes_infinities(op)
        if key not in self._checked:
            require_numbers(op, constant, self.builder.constants[constant], self.source.release)
            self._checked.add(key)

    def _check_quant(self, op: ops.Op, operand: str, name: str) -> None:
        quant = self.builder.tensors[operand].quant
        moves = isinstance(op, ops.Reshape | ops.Slice | ops.Expand | ops.Tile)
        if moves and quant is not None and quant.axis is not None:
            raise Unsupported(f"layer '{name}' moves elements of '{operand}', quantised along axis {quant.axis}")

    def operand(self, value: Value) -> str:
        """The network's tensor for a value; constants are added on first use."""
        match value:
            case Computed(name):
                return name
            case Absent():
                raise AbsentInput(value)
            case Constant(name, data):
                return self.constant(name, data, None, (id(value),), value)
            case Dequantized(name, data, quant):
                stored = self.constant(name, data, quant, (id(value), "stored"), value)
                key = (id(value), "real")
                if key not in self._operands:
                    real = f"{name}/dequantized"
                    self._operands[key] = self.builder.layer(
                        ops.Dequantize(), [stored], real, output=self.unused_name(real), dtype=DType.FLOAT32
                    )
                return self._operands[key]

    def constant(self, name: str, data: Array, quant: Quant | None, key: tuple[object, ...], owner: Value) -> str:
        """The network's tensor for these values, added once for each key (which starts with the owner's id)."""
        if key not in self._operands:
            plain_dtype(data, name)
            is_free = name not in self.builder.tensors and name not in self.written
            spare = name if is_free else self.unused_name(name)
            self._operands[key] = self.builder.constant(spare, data, quant)
            self._alive.append(owner)
        return self._operands[key]

    def derived(self, value: Value, key: tuple[object, ...], make: Callable[[], Value]) -> Value:
        """The result derived from a constant under this key, computed once so that layers share it."""
        key = (id(value), *key)
        if key not in self._derived:
            self._derived[key] = make()
            self._alive.append(value)
        return self._derived[key]

    # Names

    def unused_name(self, name: str) -> str:
        """The name, or a variant used by neither the network nor the file's main graph."""
        return unused_name(name, self.builder.tensors, self.reserved)

    def rename(self, old: str, new: str, first_layer: int) -> None:
        """Gives a tensor written at or after `first_layer` its name in the file."""
        builder = self.builder
        assert new not in builder.tensors
        builder.tensors[new] = replace(builder.tensors.pop(old), name=new)
        if old in self.shifted:
            self.shifted.add(new)
        for i, layer in enumerate(builder.layers[first_layer:], first_layer):
            inputs = tuple(new if name == old else name for name in layer.inputs)
            output = new if layer.output == old else layer.output
            builder.layers[i] = Layer(layer.name, layer.op, inputs, output)

    # Quantisation

    def assume_quant(self, value: Computed, quant: Quant) -> bool:
        """Whether the tensor may have this quantisation; records it there and for all tensors with the same elements.

        ONNX states the scale where a tensor is read, not where it is written: an integer input of the network, or a
        tensor moved from it, has none until its first reader is reached.
        """
        tensors, name = self.builder.tensors, value.tensor
        if tensors[name].quant is not None:
            return tensors[name].quant == quant
        producers = {layer.output: layer for layer in self.builder.layers}
        while name not in self.builder.inputs:
            if not _keeps_values(producers[name].op, producers[name].inputs) or quant.axis is not None:
                return False
            name = producers[name].inputs[0]
        moved = {name}  # the input, and all tensors with its elements
        for layer in self.builder.layers:
            if moved.isdisjoint(layer.inputs):
                continue
            if not _keeps_values(layer.op, layer.inputs) or quant.axis is not None:
                return False  # reads the stored integers as such
            moved.add(layer.output)
        for name in moved:
            tensors[name] = replace(tensors[name], quant=quant)
        return True


def _keeps_values(op: ops.Op, inputs: Sequence[str]) -> bool:
    """Whether the layer keeps stored values, so that a quantisation after it also holds before it."""
    return op.moves and len(inputs) == 1


def plain_dtype(data: Array, name: str) -> DType:
    """The element type of a constant, if networks support it."""
    try:
        return DType(data.dtype.name)
    except ValueError:
        raise Unsupported(f"tensor '{name}': element type {data.dtype.name} is not supported") from None


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value known while reading: an initializer, or one computed from constants."""

    name: str
    data: Array


@dataclass(frozen=True, slots=True, eq=False)
class Dequantized:
    """A quantised constant after DequantizeLinear, kept in stored form: real = scale * (data - zero)."""

    name: str
    data: Array
    quant: Quant


@dataclass(frozen=True, slots=True)
class Computed:
    """A tensor of the network: an input, or the output of a layer."""

    tensor: str


@dataclass(frozen=True, slots=True)
class NodeProblem:
    """The reason why a node cannot be read."""

    operator: str
    node: str
    reason: str = ""  # empty if the operator is not supported at all


@dataclass(frozen=True, slots=True)
class Absent:
    """A tensor that is missing because its node, or an earlier one, is not supported."""

    problem: NodeProblem


Value = Constant | Dequantized | Computed | Absent
