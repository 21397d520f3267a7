"""The data for a writer: the layer, its operands in the requested form, and where nodes are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..network import Layer
from ..operators import Op
from ..region import Perm, Shape
from ..tensor import DType, Tensor
from .graph import GraphWriter


@dataclass(frozen=True, slots=True)
class NodeWriter:
    graph: GraphWriter
    layer: Layer
    op: Op  # for operands in this form
    form: Perm | None  # of operands; None: the plain one

    def tensor(self, i: int) -> Tensor:
        return self.graph.network.tensors[self.layer.inputs[i]]

    @property
    def count(self) -> int:
        return len(self.layer.inputs)

    @property
    def result(self) -> Tensor:
        return self.graph.network.tensors[self.layer.output]

    @property
    def dtype(self) -> DType:
        """The element type in which the layer computes: stored integers are computed as real numbers."""
        first = self.tensor(0)
        return DType.FLOAT32 if first.quant is not None else first.dtype

    def shape(self, i: int = 0) -> Shape:
        """The shape of an operand as the node sees it."""
        shape = self.tensor(i).shape
        return shape if self.form is None else tuple(shape[axis] for axis in self.form)

    def input(self, i: int = 0) -> str:
        """An operand as real numbers, its rank extended with ones if a form needs that."""
        name, tensor = self.layer.inputs[i], self.tensor(i)
        if self.form is None or len(tensor.shape) == len(self.form):
            return self.graph.real(name, self.form)
        assert name in self.graph.network.constants, f"'{name}' has no form {self.form}"
        value = self.graph.network.constants[name]
        missing = len(self.form) - value.ndim
        turned = value.reshape((1,) * missing + value.shape).transpose(self.form)
        stored = self.graph.constant(turned, name)
        if tensor.quant is None:
            return stored
        axis = None if tensor.quant.axis is None else self.form.index(tensor.quant.axis + missing)
        return self.graph.dequantized(stored, tensor, tensor.quant, axis)

    def inputs(self) -> list[str]:
        return [self.input(i) for i in range(self.count)]

    def add(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        return self.graph.node(kind, inputs, self.layer.name, **attributes)

    def integers(self, values: Sequence[int], what: str) -> str:
        return self.graph.integers(values, f"{self.layer.name}_{what}")

    def number(self, value: float, what: str, dtype: DType | None = None) -> str:
        return self.graph.number(value, dtype or self.dtype, f"{self.layer.name}_{what}")
