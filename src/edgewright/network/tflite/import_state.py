"""The network under construction while a TFLite file is read: names of its tensors, and collected problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import tflite

from ...errors import ModelError, Unsupported
from ..builder import Builder
from ..kernels import compute_whole
from ..kernels.tflite import has_tflite_kernel, needs_one_scale
from ..kernels.tflite_lines import difference_scale
from ..network import Arithmetic, Origin
from ..operators import Clamp, Conv2d, ConvTranspose2d, Dense, LogSoftmax, Op, Reshape, Softmax, Transpose
from ..region import Perm, Shape
from ..stray_numbers import require_numbers
from ..tensor import MOST_ELEMENTS, Array, DType, Quant, Tensor
from .file import FileOperator, FileTensor, ModelFile, distinct


def require_size(name: str, shape: Shape) -> None:
    if prod(shape) > MOST_ELEMENTS:
        raise ModelError(f"tensor '{name}' would have {prod(shape)} elements (shape {shape})")
    if min(shape, default=1) < 1:
        raise ModelError(f"tensor '{name}' has no elements (shape {shape})")


def require_kernel(op: Op, tensors: Sequence[Tensor], result: Tensor) -> None:
    """Refuses quantised layers of types that our kernels do not support; TFLite does not run most of them either."""
    quantised = [tensor for tensor in (*tensors, result) if tensor.quant is not None]
    if not quantised:
        return
    single: Sequence[Tensor] = quantised
    if isinstance(op, Conv2d | ConvTranspose2d | Dense):
        single = (tensors[0], result)  # weights and bias may have a scale per channel
    if any(tensor.quant is not None and tensor.quant.is_per_channel for tensor in single):
        raise Unsupported("elements are quantised per channel")
    dtype = quantised[0].dtype
    if not has_tflite_kernel(op, dtype):
        raise Unsupported(f"there is no kernel for quantised {dtype.value}")
    if needs_one_scale(op, dtype):
        pairs = {(tensor.quant.scale, tensor.quant.zero) for tensor in quantised if tensor.quant is not None}
        least, most = min(pairs), max(pairs)
        if most[0][0] - least[0][0] > 1e-6 * most[0][0] or len({zero for _, zero in pairs}) > 1:
            raise Unsupported("the scales of inputs and output differ, which TFLite does not convert here")
    if isinstance(op, Softmax | LogSoftmax) and dtype is not DType.INT16:
        difference_scale(op.beta if isinstance(op, Softmax) else 1.0, tensors[0])


_MOST_FOLDED = 1 << 20  # elements; larger layers of constants are left to run

_FUSED = {
    tflite.ActivationFunctionType.NONE: None,
    tflite.ActivationFunctionType.RELU: Clamp(0.0),
    tflite.ActivationFunctionType.RELU_N1_TO_1: Clamp(-1.0, 1.0),
    tflite.ActivationFunctionType.RELU6: Clamp(0.0, 6.0),
}


@dataclass
class Variables:
    """Values that a model keeps from one call to the next, by the names that its graphs share."""

    begun: dict[str, Array] = field(default_factory=dict)  # initial values, from CALL_ONCE
    values: dict[str, str] = field(default_factory=dict)  # the tensor that holds each one now
    inputs: dict[str, str] = field(default_factory=dict)  # the input that holds the value of the previous call
    assigned: dict[str, int] = field(default_factory=dict)  # the file's tensor that was assigned last
    # The states' tensors in the file: before the call and after it.
    origins: dict[str, Origin] = field(default_factory=dict)


# Reads the operators of a graph; returns unsupported ones, each with layer names.
ReadOperators = Callable[["ImportState"], dict[str, list[str]]]


class ImportState:
    """The names of the file's tensors in the network, and the state of its operators."""

    def __init__(
        self, file: ModelFile, builder: Builder, read: ReadOperators, outer: ImportState | None = None
    ) -> None:
        self.file = file
        self.builder = builder
        self.read = read
        self.depth: int = outer.depth + 1 if outer else 0  # nesting depth of loops and branches
        # Inside loops: the parts of joined tensors along the first axis, by network names.
        self.joined: dict[str, tuple[str, ...]] = outer.joined if outer else {}
        self.names: dict[int, str] = {}  # by index of the file's tensor, once it is in the network
        self.labels = distinct([_label(file, index) for index in range(len(file.operators))])
        self.done: set[int] = set()  # operators read as part of another
        self.spread: dict[int, tuple[int, int]] = {}  # see `convolution.space_to_batch`
        self._derived: dict[tuple[int, str], str] = {}
        # (tensor, leading axes, asymmetric) -> its dynamically quantised form: see `_emit_product`
        self.dynamic: dict[tuple[str, int, bool], tuple[str, str]] = {}
        self.variables: Variables = Variables() if outer is None else outer.variables
        self.handles: dict[int, str] = {}  # tensors that represent variables -> the variables' names
        self.readers: dict[int, list[int]] = {}
        for index, operator in enumerate(file.operators):
            for tensor in dict.fromkeys(operator.inputs):
                self.readers.setdefault(tensor, []).append(index)

    def take_constants(self, other: ImportState) -> None:
        """Reuses the constants that another reading of the same graph made."""
        stored = {i: name for i, name in other.names.items() if other.file.tensors[i].data is not None}
        self.names.update(stored)
        self._derived = other._derived

    def sole_reader(self, tensor: int) -> int | None:
        """The only operator that reads a tensor of the file; None if there are several or it is an output."""
        readers = self.readers.get(tensor, [])
        return readers[0] if len(readers) == 1 and tensor not in self.file.outputs else None

    def name_of(self, tensor: int) -> str:
        """The network's name of a tensor of the file; constants are added on first use."""
        if tensor not in self.names:
            entry = self.file.tensors[tensor]
            if entry.data is None:
                raise ModelError(f"tensor '{entry.name}' is read but never written")
            self.names[tensor] = self.add_constant(entry.name, entry.data, entry.quant)
        return self.names[tensor]

    def add_constant(self, name: str, value: Array, quant: Quant | None = None) -> str:
        return self.builder.constant(name, value, quant)

    def derived(self, tensor: int, how: str, value: Array, quant: Quant | None) -> str:
        """A constant derived from a constant of the file, added once for all layers that read it."""
        if self.builder.constants.get(self.names.get(tensor, "")) is value:
            return self.names[tensor]
        if (tensor, how) not in self._derived:
            self._derived[tensor, how] = self.add_constant(self.file.tensors[tensor].name, value, quant)
        return self._derived[tensor, how]

    def add_layer(
        self, op: Op, inputs: Sequence[str], name: str, output: str, dtype: DType, quant: Quant | None
    ) -> str:
        """The output of a layer; evaluated if all its inputs are constant and small."""
        shapes = [self.builder.shape(i) for i in inputs]
        for i, size in zip(inputs, shapes, strict=True):
            require_size(i, size)
        shape = self.builder.output_shape(op, inputs, name)
        require_size(output, shape)
        tensors, result = [self.builder.tensors[i] for i in inputs], Tensor(output, shape, dtype, quant)
        require_kernel(op, tensors, result)
        values = [self.builder.constants[i] for i in inputs if i in self.builder.constants]
        for i, value in zip([i for i in inputs if i in self.builder.constants], values, strict=True):
            require_numbers(op, i, value)
        if len(values) == len(inputs) and max(prod(s) for s in (*shapes, shape)) <= _MOST_FOLDED:
            return self.add_constant(output, compute_whole(op, values, tensors, result, Arithmetic.TFLITE), quant)
        return self.builder.layer(op, inputs, name, output=output, dtype=dtype, quant=quant)


class LayerImport:
    """One operator of the file for its importer, with its operands."""

    def __init__(self, state: ImportState, index: int, operator: FileOperator | None = None) -> None:
        self.state = state
        self.number = index
        self.operator = operator or state.file.operators[index]
        self.label = state.labels[index]
        self.outputs = self.operator.outputs

    def error(self, message: str) -> ModelError:
        return ModelError(f"layer '{self.label}': {message}")

    # Reading

    def options(self, schema: Any) -> Any:
        return self.operator.options(schema)

    def has(self, position: int) -> bool:
        return position < len(self.operator.inputs) and self.operator.inputs[position] >= 0

    def index(self, position: int) -> int:
        if not self.has(position):
            raise ModelError(f"layer '{self.label}' ({self.operator.kind}) lacks its input {position}")
        return self.operator.inputs[position]

    def input(self, position: int = 0) -> str:
        return self.state.name_of(self.index(position))

    def shape(self, position: int = 0) -> Shape:
        return self.tensor(position).shape

    def tensor(self, position: int = 0) -> Tensor:
        """Shape and type of an input; does not add a constant to the network."""
        index = self.index(position)
        stored = self.state.file.tensors[index]
        if index not in self.state.names and stored.data is not None:
            return Tensor(stored.name, stored.shape, stored.dtype, stored.quant)
        return self.state.builder.tensors[self.input(position)]

    def is_constant(self, position: int = 0) -> bool:
        index = self.index(position)
        if index not in self.state.names:
            return self.state.file.tensors[index].data is not None
        return self.state.names[index] in self.state.builder.constants

    def value(self, position: int, what: str) -> Array:
        """The value of an input that must be constant; `what` names it in the error."""
        index = self.index(position)
        stored = self.state.file.tensors[index].data
        if index not in self.state.names and stored is not None:
            return stored
        name = self.input(position)
        if name not in self.state.builder.constants:
            raise Unsupported(f"the {what} ('{name}') is computed at run time")
        return self.state.builder.constants[name]

    def integers(self, position: int, what: str) -> tuple[int, ...]:
        value = self.value(position, what)
        if not np.issubdtype(value.dtype, np.integer) or value.size > 64:
            raise self.error(f"the {what} is {value.dtype}{list(value.shape)}")
        return tuple(int(v) for v in value.reshape(-1))

    def axis(self, axis: int, rank: int) -> int:
        if not -rank <= axis < rank:
            raise self.error(f"axis {axis} of a tensor of rank {rank}")
        return axis % rank

    def axes(self, position: int, what: str = "axes") -> tuple[int, ...]:
        """Axes of the first input that another input names, sorted, without duplicates."""
        return tuple(sorted({self.axis(axis, len(self.shape())) for axis in self.integers(position, what)}))

    def result(self, position: int = 0) -> FileTensor:
        if position >= len(self.outputs):
            raise ModelError(f"layer '{self.label}' ({self.operator.kind}) lacks its output {position}")
        return self.state.file.tensors[self.outputs[position]]

    # Writing

    def constant(self, suffix: str, value: Array, quant: Quant | None = None) -> str:
        return self.state.add_constant(f"{self.label}/{suffix}", value, quant)

    def inner(
        self, op: Op, inputs: Sequence[str], suffix: str, dtype: DType | None = None, quant: Quant | None = None
    ) -> str:
        """The output of an intermediate layer that the file does not contain.

        Without `dtype` it has the type and scale of the first input.
        """
        name, first = f"{self.label}/{suffix}", self.state.builder.tensors[inputs[0]]
        if dtype is None:
            dtype, quant = first.dtype, first.quant
        return self.state.add_layer(op, inputs, name, name, dtype, quant)

    def emit(self, op: Op, inputs: Sequence[str], position: int = 0) -> None:
        """Adds the layer that writes an output of this operator, with the type in the file."""
        result = self.result(position)
        name = self.label if position == 0 else f"{self.label}:{position}"
        made = self.state.add_layer(op, inputs, name, result.name, result.dtype, result.quant)
        self.state.names[self.outputs[position]] = made

    def move(self, op: Op, inputs: Sequence[str] | None = None, position: int = 0) -> None:
        """`emit` for an operator of one input that only moves elements."""
        self.same_type(0, position=position)
        self.emit(op, inputs or [self.input()], position)

    def fused(self, code: int) -> Clamp | None:
        """The activation folded into this operator."""
        if code not in _FUSED:
            raise Unsupported(f"the activation {code} is folded in")
        return _FUSED[code]

    def emit_constant(self, value: Array, quant: Quant | None = None) -> None:
        self.state.names[self.outputs[0]] = self.state.add_constant(self.result().name, value, quant)

    def same_type(self, *inputs: int, position: int = 0) -> None:
        """Checks that these inputs and the output have one element type, and that all or none are quantised."""
        result = self.result(position)
        for number in inputs:
            tensor = self.tensor(number)
            is_alike = tensor.dtype is result.dtype and (tensor.quant is None) == (result.quant is None)
            if not is_alike:
                raise ModelError(
                    f"layer '{self.label}' ({self.operator.kind}) turns {_type(tensor.dtype, tensor.quant)} "
                    f"'{tensor.name}' into {_type(result.dtype, result.quant)} '{result.name}'"
                )


@dataclass(frozen=True, slots=True)
class InnerLayers:
    """The intermediate layers of an operator, for `decompositions`."""

    importer: LayerImport

    def layer(self, op: Op, inputs: Sequence[str], tag: str, *, dtype: DType | None = None) -> str:
        return self.importer.inner(op, inputs, tag, dtype)

    def constant(self, tag: str, data: Array) -> str:
        return self.importer.constant(tag, data)

    def shape(self, value: str) -> Shape:
        return self.importer.state.builder.shape(value)

    def reshaped(self, value: str, shape: Shape, tag: str) -> str:
        return self.layer(Reshape(shape), [value], tag)

    def transposed(self, value: str, perm: Perm, tag: str) -> str:
        return self.layer(Transpose(perm), [value], tag)


def _label(file: ModelFile, index: int) -> str:
    """A short name for an operator: that of its first output, or its kind and number."""
    operator = file.operators[index]
    fallback = f"{operator.kind.lower()}_{index}"
    return tidy(file.tensors[operator.outputs[0]].name) if operator.outputs else fallback


def tidy(name: str) -> str:
    """A readable tensor name: of a fused layer's joined names, the first.

    >>> tidy("model/relu/Relu;model/bn/FusedBatchNormV3;model/conv/Conv2D")
    'model/relu/Relu'
    """
    first = name[:400].split(";")[0].strip()[:80]
    return "".join(c if c.isprintable() else "?" for c in first) or "layer"


def _type(dtype: DType, quant: Quant | None) -> str:
    return dtype.value if quant is None else f"quantised {dtype.value}"
