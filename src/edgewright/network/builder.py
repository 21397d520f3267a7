"""Builds a network layer by layer and computes shapes on the way; used by readers and tests."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import chain, count

import numpy as np

from ..errors import ModelError
from .network import Arithmetic, Layer, Network, check, leading_to
from .operators import Op
from .region import Shape
from .tensor import MOST_ELEMENTS, MOST_REPEATED, Array, DType, Quant, Tensor


class Builder:
    """A network under construction.

    >>> b = Builder("tiny")
    >>> x = b.input("x", (1, 4, 4, 3))
    >>> from edgewright.network.operators import Clamp
    >>> net = b.build([b.layer(Clamp(0.0), [x], "relu")])
    >>> net.tensors["relu"].shape
    (1, 4, 4, 3)
    """

    def __init__(self, name: str, arithmetic: Arithmetic = Arithmetic.ONNX) -> None:
        self.name = name
        self.arithmetic = arithmetic
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.inputs: list[str] = []
        self.layers: list[Layer] = []
        self.notes: list[str] = []
        self.states: dict[str, str] = {}  # inputs that hold an output of the previous call
        self._layer_names: set[str] = set()

    def fresh(self, name: str) -> str:
        """The name, with a number added if a tensor already has it."""
        return unused_name(name, self.tensors)

    def input(self, name: str, shape: Shape, dtype: DType = DType.FLOAT32, quant: Quant | None = None) -> str:
        self._add(Tensor(name, tuple(shape), dtype, quant))
        self.inputs.append(name)
        return name

    def constant(self, name: str, value: Array, quant: Quant | None = None) -> str:
        if value.size > MOST_REPEATED and 0 in value.strides:
            raise ModelError(f"constant '{name}' repeats a value to {value.size:,} elements, which no memory holds")
        name = self.fresh(name)
        self._add(Tensor(name, tuple(value.shape), DType(value.dtype.name), quant))
        self.constants[name] = value
        return name

    def layer(
        self,
        op: Op,
        inputs: Sequence[str],
        name: str,
        *,
        output: str | None = None,
        dtype: DType | None = None,
        quant: Quant | None = None,
    ) -> str:
        """Adds a layer and returns the name of its output (`output`, or the layer's own name).

        Element type and quantisation are those of the first input unless given.
        """
        first, shape = self.tensors[inputs[0]], self.output_shape(op, inputs, name)
        name = unused_name(name, self._layer_names)
        self._layer_names.add(name)
        output = self.fresh(output or name)
        if dtype is None:
            dtype, quant = first.dtype, quant or first.quant
        self._add(Tensor(output, shape, dtype, quant))
        self.layers.append(Layer(name, op, tuple(inputs), output))
        return output

    def output_shape(self, op: Op, inputs: Sequence[str], name: str) -> Shape:
        """The output shape of the layer with this name."""
        try:
            return op.output_shape([self.tensors[i].shape for i in inputs])
        except (ValueError, IndexError, TypeError, ArithmeticError) as error:
            raise ModelError(f"layer '{name}' ({type(op).__name__}): {error}") from error

    def shape(self, tensor: str) -> Shape:
        return self.tensors[tensor].shape

    def build(self, outputs: Sequence[str]) -> Network:
        """The finished network, checked; layers that lead to no output and unread inputs are dropped."""
        kept, wanted = leading_to(self.layers, outputs)
        inputs = [name for name in self.inputs if name in wanted]
        notes = [f"input '{name}' is never used and was dropped" for name in self.inputs if name not in wanted]
        network = Network(
            name=self.name,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            layers=(),
            tensors=self.tensors,
            constants=self.constants,
            arithmetic=self.arithmetic,
            notes=(*self.notes, *notes),
            states={name: after for name, after in self.states.items() if name in inputs and after in outputs},
        )
        return check(network.with_layers(kept))

    def _add(self, tensor: Tensor) -> None:
        if tensor.name in self.tensors:
            raise ModelError(f"tensor '{tensor.name}' is defined twice")
        if tensor.size > MOST_ELEMENTS:
            raise ModelError(
                f"tensor '{tensor.name}' claims {tensor.size:.3g} elements ({'x'.join(map(str, tensor.shape))}); "
                f"no real network has such a tensor, so the file is broken"
            )
        self.tensors[tensor.name] = tensor


def unused_name(name: str, *taken: Container[str]) -> str:
    """The name, with a number added if it is already used."""
    names = chain([name], (f"{name}_{i}" for i in count(1)))
    return next(free for free in names if not any(free in others for others in taken))


def random_inputs(network: Network, seed: int = 0) -> dict[str, Array]:
    """Seeded values for the network's inputs: normal for floats, the whole range for small integers.

    Indices (int32, int64) are kept small, since they may address an embedding.
    """
    rng = np.random.default_rng(seed)
    values: dict[str, Array] = {}
    for name in network.inputs:
        tensor = network.tensors[name]
        if tensor.dtype.is_float:
            values[name] = rng.standard_normal(tensor.shape).astype(tensor.dtype.numpy)
        elif tensor.dtype is DType.BOOL:
            values[name] = rng.integers(0, 2, tensor.shape).astype(bool)
        elif tensor.dtype in (DType.INT32, DType.INT64):
            values[name] = rng.integers(0, 10, tensor.shape).astype(tensor.dtype.numpy)
        else:
            info = np.iinfo(tensor.dtype.numpy)
            values[name] = rng.integers(info.min, info.max + 1, tensor.shape).astype(tensor.dtype.numpy)
        if name in network.states and tensor.dtype is DType.INT16:
            values[name] >>= (
                8  # far from the ends of the range, as in practice: sums of 16-bit products may overflow there
            )
    return values
