"""The CNN as trained: layers joined by tensors, CNN(L, E) of M 2.1, without memory or hardware.

Everything is frozen: a pass returns a new network.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from heapq import heapify, heappop, heappush

from ..errors import ModelError
from .operators import Op
from .region import Region, Shape
from .tensor import Array, Tensor


class Arithmetic(Enum):
    """The rounding rules of quantised layers."""

    TFLITE = "tflite"  # fixed-point multipliers, as in LiteRT's reference kernels
    ONNX = "onnx"  # float scales, round half to even: as the layers between Dequantize and Quantize say
    QLINEAR = "qlinear"  # as in onnxruntime's kernels for QLinearAdd and the like, if a file uses those


@dataclass(frozen=True, slots=True)
class Origin:
    """A tensor of the file with the same numbers: ours is its transposition by `axes`, in our shape.

    `shape`, if set, is applied first: for example the image before it was flattened.
    """

    tensor: str | int  # its name, or its number if names are not unique
    axes: tuple[int, ...]
    shape: tuple[int, ...] | None = None

    def of(self, value: Array, shape: tuple[int, ...]) -> Array:
        """Our tensor of this shape, from the file's."""
        seen = value if self.shape is None else value.reshape(self.shape)
        return seen.transpose(self.axes).reshape(shape)

    def back(self, value: Array, shape: tuple[int, ...]) -> Array:
        """The file's tensor of this shape, from ours."""
        seen = self.shape or shape
        inverse = sorted(range(len(self.axes)), key=self.axes.__getitem__)
        return value.reshape([seen[axis] for axis in self.axes]).transpose(inverse).reshape(shape)


@dataclass(frozen=True, slots=True)
class Layer:
    """One operator applied to tensors. All operators are wired the same way; `op` holds what differs."""

    name: str
    op: Op
    inputs: tuple[str, ...]  # activations and constants, in the order given in the operator's docstring
    output: str


@dataclass(frozen=True)
class Network:
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    layers: tuple[Layer, ...]  # in a valid order of execution
    tensors: Mapping[str, Tensor]  # all tensors, including constants
    constants: Mapping[str, Array]  # values; views of the file if possible, never written to
    arithmetic: Arithmetic = Arithmetic.ONNX
    # Axis order of reordered inputs and outputs: our tensor = the file's tensor, transposed by this.
    layouts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # assumptions made by the reader, for people
    # Inputs and outputs that the caller converts to or from stored integers: the tensor in the file.
    file_tensors: Mapping[str, Tensor] = field(default_factory=dict)
    # Inputs that hold an output of the previous call: the states of a model.
    states: Mapping[str, str] = field(default_factory=dict)
    # Where to find inner tensors in the file; incomplete, and not stored in plans.
    origins: Mapping[str, Origin] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        return (
            f"Network('{self.name}', {len(self.layers):,} layers, {self.total_macs:,} MACs, "
            f"{self.weight_bytes:,} B of weights)"
        )

    @cached_property
    def producers(self) -> Mapping[str, Layer]:
        """The layer that writes each computed tensor."""
        return {layer.output: layer for layer in self.layers}

    @cached_property
    def readers(self) -> Mapping[str, tuple[Layer, ...]]:
        """The layers that read each tensor, in order, without duplicates."""
        readers: dict[str, list[Layer]] = {name: [] for name in self.tensors}
        for layer in self.layers:
            for name in dict.fromkeys(layer.inputs):
                readers[name].append(layer)
        return {name: tuple(layers) for name, layers in readers.items()}

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The index of each layer."""
        return {layer.name: at for at, layer in enumerate(self.layers)}

    @cached_property
    def by_name(self) -> Mapping[str, Layer]:
        return {layer.name: layer for layer in self.layers}

    def shapes(self, layer: Layer) -> tuple[Shape, ...]:
        """The shapes of a layer's inputs."""
        shapes = self._shapes.get(layer.inputs)
        if shapes is None:
            shapes = self._shapes[layer.inputs] = tuple(self.tensors[name].shape for name in layer.inputs)
        return shapes

    @cached_property
    def _shapes(self) -> dict[tuple[str, ...], tuple[Shape, ...]]:
        return {}

    def activations(self, layer: Layer) -> tuple[str, ...]:
        """The layer's inputs that are computed or given at run time, without duplicates."""
        if (names := self._activations.get(layer.inputs)) is None:
            names = tuple(dict.fromkeys(name for name in layer.inputs if name not in self.constants))
            self._activations[layer.inputs] = names
        return names

    @cached_property
    def _activations(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        return {}

    def sole_reader(self, tensor: str) -> Layer | None:
        """The only layer that reads `tensor`; None if there are several, or if it is an output."""
        readers = self.readers[tensor]
        return readers[0] if len(readers) == 1 and tensor not in self.outputs else None

    def macs(self, layer: Layer) -> int:
        return layer.op.macs(Region.whole(self.tensors[layer.output].shape), self.shapes(layer))

    @cached_property
    def total_macs(self) -> int:
        return sum(self.macs(layer) for layer in self.layers)

    @cached_property
    def is_real(self) -> bool:
        """Whether most of its MACs are on real numbers."""
        work = {True: 0, False: 0}
        for layer in self.layers:
            work[self.tensors[(*layer.inputs, layer.output)[0]].dtype.is_float] += self.macs(layer)
        return work[True] > work[False] or (
            not self.total_macs and any(self.tensors[name].dtype.is_float for name in self.inputs)
        )

    @property
    def weight_bytes(self) -> int:
        """Bytes of all constants that layers read at run time, or that are outputs."""
        used = {name for layer in self.layers for name in layer.inputs if name in self.constants}
        used |= {name for name in self.outputs if name in self.constants}
        return sum(self.tensors[name].bytes for name in used)

    def with_layers(
        self, layers: Iterable[Layer], tensors: Iterable[Tensor] = (), constants: Mapping[str, Array] | None = None
    ) -> Network:
        """This network with other layers; adds `tensors` and `constants`, and drops what is unused."""
        kept = tuple(layers)
        pool = {**self.tensors, **{tensor.name: tensor for tensor in tensors}}
        values = {**self.constants, **(constants or {})}
        used = {*self.inputs, *self.outputs}
        for layer in kept:
            used.update(layer.inputs)
            used.add(layer.output)
        return replace(
            self,
            layers=kept,
            tensors={name: tensor for name, tensor in pool.items() if name in used},
            constants={name: value for name, value in values.items() if name in used},
            origins={name: origin for name, origin in self.origins.items() if name in used},
        )


def check(network: Network) -> Network:
    """The network itself, after a check that every tensor is written once, before it is read, and has its stated
    shape."""
    ready = {*network.inputs, *network.constants}
    if len({layer.name for layer in network.layers}) != len(network.layers):
        raise ModelError(f"network '{network.name}' has two layers of the same name")
    for layer in network.layers:
        if missing := [name for name in layer.inputs if name not in ready]:
            raise ModelError(f"layer '{layer.name}' reads {missing} before it is written")
        if layer.output in ready:
            raise ModelError(f"layer '{layer.name}' writes '{layer.output}' a second time")
        ready.add(layer.output)
        title = f"layer '{layer.name}' ({type(layer.op).__name__})"
        try:
            shape = layer.op.output_shape(network.shapes(layer))
            needs = layer.op.needs(Region.whole(shape), network.shapes(layer))
        except (ValueError, ArithmeticError) as error:
            raise ModelError(f"{title}: {error}") from error
        except IndexError as error:
            raise ModelError(f"{title} has too few inputs, or inputs of too low a rank") from error
        if len(needs) != len(layer.inputs):
            raise ModelError(f"{title} has {len(layer.inputs)} inputs instead of {len(needs)}")
        for name, need, read in zip(layer.inputs, needs, network.shapes(layer), strict=True):
            if len(need.bounds) != len(read):
                raise ModelError(f"{title} cannot take '{name}' of shape {read} in that place")
        declared = network.tensors[layer.output].shape
        if shape != declared:
            raise ModelError(f"layer '{layer.name}' gives shape {shape}, but '{layer.output}' is said to be {declared}")
    if missing := [name for name in network.outputs if name not in ready]:
        raise ModelError(f"outputs {missing} are never written")
    return network


def leading_to(layers: Sequence[Layer], outputs: Iterable[str]) -> tuple[list[Layer], set[str]]:
    """The layers that one of these outputs depends on, in order, and all tensors that they use."""
    wanted, kept = set(outputs), []
    for layer in reversed(layers):
        if layer.output in wanted:
            wanted.update(layer.inputs)
            kept.append(layer)
    return kept[::-1], wanted


def execution_order(before: Sequence[Collection[int]]) -> list[int]:
    """Indices, each after those in its `before`; in the given order if possible (Kahn 1962).

    Members of a cycle, and whatever depends on one, are missing.
    """
    waiting = [len(set(those)) for those in before]
    after: list[list[int]] = [[] for _ in before]
    for index, those in enumerate(before):
        for earlier in set(those):
            after[earlier].append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    heapify(ready)
    order: list[int] = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for later in after[index]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heappush(ready, later)
    return order
