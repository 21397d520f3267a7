"""One ONNX node for its importer: checked attributes, inputs as values, and methods that add layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx

from ...errors import ModelError, Unsupported
from ..kernels.scales import dequantized
from ..operators import Op, Reshape, Transpose
from ..region import Shape
from ..tensor import Array, DType, Quant, Tensor
from .context import Computed, Constant, Context, Dequantized, Value
from .tensors import read_tensor
from .wire import ByteSpan

# Largest constant that is computed while reading; larger ones go through layers like other tensors.
FOLD_LIMIT = 1 << 22

# Attributes that do not affect inference: training, memory order, other outputs, modes refused elsewhere.
HARMLESS = {
    "consumed_inputs", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "is_test", "momentum", "precision",
    "ratio", "saturate", "seed", "stash_type", "storage_order",
}  # fmt: skip

_A = onnx.AttributeProto
NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)


@dataclass(frozen=True, slots=True)
class OnnxNode:
    op_type: str
    name: str
    opset: int  # of the operator's domain
    inputs: tuple[Value | None, ...]  # None for omitted optional inputs
    outputs: tuple[str, ...]
    attributes: Mapping[str, onnx.AttributeProto]
    context: Context
    extents: Mapping[str, ByteSpan] = field(default_factory=dict)  # of large tensors among the attributes
    asked: set[str] = field(default_factory=set)  # attributes that the importer read

    def __str__(self) -> str:
        return f"{self.op_type} '{self.name}'"

    def error(self, message: str) -> ModelError:
        return ModelError(f"{self}: {message}")

    def unsupported(self, message: str) -> Unsupported:
        return Unsupported(message)

    # Attributes

    def _attribute(self, name: str, kind: int) -> onnx.AttributeProto | None:
        self.asked.add(name)
        attribute = self.attributes.get(name)
        if attribute is not None and attribute.type not in (kind, _A.UNDEFINED):
            raise self.error(f"attribute '{name}' is not of type {_A.AttributeType.Name(kind)}")
        return attribute

    def integer(self, name: str, default: int) -> int:
        attribute = self._attribute(name, _A.INT)
        return default if attribute is None else int(attribute.i)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.integer(name, int(default))
        if value not in (0, 1):
            raise self.error(f"attribute '{name}' is {value}, neither 0 nor 1")
        return value == 1

    def real(self, name: str, default: float) -> float:
        attribute = self._attribute(name, _A.FLOAT)
        value = default if attribute is None else float(attribute.f)
        if not np.isfinite(value):
            raise self.error(f"attribute '{name}' is {value}")
        return value

    def text(self, name: str, default: str) -> str:
        attribute = self._attribute(name, _A.STRING)
        return default if attribute is None else attribute.s.decode("utf-8", "replace")

    def integers(self, name: str) -> tuple[int, ...] | None:
        attribute = self._attribute(name, _A.INTS)
        return None if attribute is None else tuple(attribute.ints)

    def reals(self, name: str) -> tuple[float, ...] | None:
        attribute = self._attribute(name, _A.FLOATS)
        return None if attribute is None else tuple(attribute.floats)

    def stored(self, name: str) -> Array | None:
        """The values of a tensor attribute."""
        attribute = self._attribute(name, _A.TENSOR)
        if attribute is None:
            return None
        return read_tensor(attribute.t, self.extents.get(name), self.context.source, str(self))

    def require_all_asked(self) -> None:
        """Refuses attributes that the importer did not read: a later opset may have extended the operator."""
        if unknown := sorted(set(self.attributes) - self.asked - HARMLESS):
            raise self.unsupported(f"attribute '{unknown[0]}' is not known")

    # Inputs

    def optional(self, index: int) -> Value | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def input(self, index: int) -> Value:
        value = self.optional(index)
        if value is None:
            raise self.error(f"input {index + 1} is missing")
        return value

    def all_inputs(self) -> tuple[Value, ...]:
        if not self.inputs:
            raise self.error("has no inputs")
        return tuple(self.input(i) for i in range(len(self.inputs)))

    def array(self, value: Value, what: str) -> Array:
        """The values of an input that must be constant."""
        match value:
            case Constant(_, data) if data.size <= FOLD_LIMIT:
                return data
            case Dequantized(_, data, quant) if data.size <= FOLD_LIMIT:
                return dequantized(data, quant)
            case _:
                self.context.tensor(value)  # missing ones raise an error
                raise self.unsupported(f"{what} must be constant")

    def array_ints(self, value: Value, what: str) -> tuple[int, ...]:
        data = self.array(value, what)
        if data.ndim > 1 or not np.issubdtype(data.dtype, np.integer):
            raise self.error(f"{what} must be a list of integers, not {data.dtype.name}{list(data.shape)}")
        return tuple(int(i) for i in data.reshape(-1))

    def scalar(self, value: Value, what: str) -> float:
        data = self.array(value, what)
        if data.size != 1:
            raise self.error(f"{what} must be one number, not {data.dtype.name}{list(data.shape)}")
        return float(data.reshape(-1)[0])

    def ints_from(self, name: str, index: int, since: int) -> tuple[int, ...] | None:
        """Integers from an attribute in opsets before `since`, and from an optional input from then on."""
        if self.opset < since:
            return self.integers(name)
        value = self.optional(index)
        return None if value is None else self.array_ints(value, f"input '{name}'")

    def tensor(self, value: Value) -> Tensor:
        return self.context.tensor(value)

    def shape(self, value: Value) -> Shape:
        return self.context.shape(value)

    def axis(self, axis: int, rank: int) -> int:
        if not -rank <= axis < rank:
            raise self.error(f"axis {axis} does not exist in a tensor of rank {rank}")
        return axis % rank

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        result = tuple(self.axis(axis, rank) for axis in axes)
        if len(set(result)) < len(result):
            raise self.error(f"axes {list(axes)} name one twice")
        return result

    # Layers

    def layer(
        self,
        op: Op,
        inputs: Sequence[Value],
        tag: str = "",
        *,
        dtype: DType | None = None,
        quant: Quant | None = None,
    ) -> Computed:
        name = f"{self.name}/{tag}" if tag else self.name
        return self.context.layer(op, inputs, name, dtype=dtype, quant=quant)

    def constant(self, tag: str, data: Array) -> Constant:
        """A constant that the file does not contain, named after the node."""
        return Constant(f"{self.name}/{tag}", data)

    def number(self, tag: str, value: float) -> Constant:
        return self.constant(tag, np.array(value, np.float32))

    def transposed(self, value: Value, perm: tuple[int, ...], tag: str = "transposed") -> Value:
        """The value with its axes reordered: a view of a constant, or a layer."""
        rank = len(self.shape(value))
        if sorted(perm) != list(range(rank)):
            raise self.error(f"perm {list(perm)} does not fit a tensor of rank {rank}")
        if perm == tuple(range(rank)):
            return value
        match value:
            case Constant(name, data):
                return self.context.derived(value, perm, lambda: Constant(name, data.transpose(perm)))
            case Dequantized(name, data, quant):
                made = Dequantized(name, data.transpose(perm), quant.transposed(perm))
                return self.context.derived(value, perm, lambda: made)
            case _:
                old = self.tensor(value).quant
                return self.layer(Transpose(perm), [value], tag, quant=old and old.transposed(perm))

    def reshaped(self, value: Value, shape: Shape, tag: str = "reshaped") -> Value:
        """The value in another shape: a view of a constant, or a layer."""
        if shape == self.shape(value):
            return value
        if prod(shape) != prod(self.shape(value)):
            raise self.error(f"cannot reshape {list(self.shape(value))} to {list(shape)}")
        key = ("shape", *shape)
        match value:
            case Constant(name, data) if _reshapes(data):
                return self.context.derived(value, key, lambda: Constant(name, _reshape(data, shape)))
            case Dequantized(name, data, quant) if quant.axis is None and _reshapes(data):
                return self.context.derived(value, key, lambda: Dequantized(name, _reshape(data, shape), quant))
        return self.layer(Reshape(shape), [value], tag)


def _is_repeated(data: Array) -> bool:
    """Whether the array is one repeated value without memory (np.broadcast_to)."""
    return data.size > 1 and not any(s for s, n in zip(data.strides, data.shape, strict=True) if n > 1)


def _reshapes(data: Array) -> bool:
    return data.flags.c_contiguous or data.size <= FOLD_LIMIT or _is_repeated(data)


def _reshape(data: Array, shape: Shape) -> Array:
    return np.broadcast_to(data[(0,) * data.ndim], shape) if _is_repeated(data) else data.reshape(shape)
