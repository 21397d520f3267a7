"""A step at the place where it runs, as kernels are asked about it: the layer, the largest region, and its tensors'
strides.

It holds no C, no free memory and no library under construction: an offer of a kernel depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..network import Arithmetic, Array, DType, Interval, Layer, Network, Shape, Tensor
from ..network.operators import Activation, Conv2d, DynamicProduct, Op
from ..platform.target import Family, Target
from ..program import Sweep
from ..program.nesting import SPLIT, Nesting
from ..program.options import Options
from .strided_tensor import StridedTensor, dense_strides

Found = TypeVar("Found")
OfKind = TypeVar("OfKind")


@dataclass(frozen=True)
class LayerFacts:
    """A layer on a target, with a cache of what has been computed about it."""

    network: Network
    layer: Layer
    target: Target
    options: Options
    exact: bool = True  # whether multipliers are searched for; else all layers are taken to have them
    nesting: Nesting | None = None  # of the networks of one library
    known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    shared: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)  # by all layers of the network

    def once(self, key: Any, find: Callable[[], Found]) -> Found:
        """The result of `find`, computed once per key and layer."""
        return _once(self.known, key, find)

    @property
    def whole(self) -> LayerFacts | None:
        """The layer of which this one is a slice."""
        return self.once("whole", self._whole)

    def _whole(self) -> LayerFacts | None:
        weights = self.network.constants.get(self.layer.inputs[1]) if len(self.layer.inputs) > 1 else None
        found = self.nesting.whole(weights) if self.nesting and weights is not None else None
        return LayerFacts(found.network, found.layer, self.target, self.options) if found else None

    def of_network(self, key: Any, find: Callable[[], Found]) -> Found:
        """The result of `find`, computed once per key and network."""
        return _once(self.shared, key, find)


def _once(known: dict[Any, Any], key: Any, find: Callable[[], Found]) -> Found:
    if key not in known:
        known[key] = find()
    found: Found = known[key]
    return found


def unwrap(found: Found | None) -> Found:
    """What was found at a site, where a kernel's offer has made sure of it."""
    assert found is not None
    return found


@dataclass(frozen=True)
class ChannelRange:
    """Channels that a call computes, for which weights are packed."""

    channels: Interval  # of the output
    partial: Interval | None = None  # of the input: those that the call sums over, where it adds to running sums

    @property
    def count(self) -> int:
        return self.channels[1] - self.channels[0]


@dataclass(frozen=True)
class Site:
    facts: LayerFacts
    most: Shape  # indices along each axis of the output that a call computes at most
    bounds: tuple[Interval | None, ...]  # of the output along each axis, where they are the same in every call
    ranges: tuple[ChannelRange, ...]  # of all calls, in the order in which they are packed; none where unknown
    sweep: Sweep
    inputs: tuple[StridedTensor, ...]
    output: StridedTensor
    plane: int  # sweep CHANNELS: bytes that the plan reserves for one channel plane
    linked_kernels: frozenset[str]  # kernels that other calls of the library use
    dynamic: DynamicProduct | None  # the operator is its product, of numbers stored as they came

    @property
    def whole(self) -> Site | None:
        """The layer of which this one is a slice, wherever its tensors lie."""
        facts = self.facts.whole
        if facts is None:
            return None
        tensors = [facts.network.tensors[name] for name in (*facts.layer.inputs, facts.layer.output)]
        *inputs, output = (StridedTensor(tensor, dense_strides(tensor)) for tensor in tensors)
        return replace(self, facts=facts, inputs=tuple(inputs), output=output)

    @property
    def network(self) -> Network:
        return self.facts.network

    @property
    def layer(self) -> Layer:
        return self.facts.layer

    @property
    def target(self) -> Target:
        return self.facts.target

    @property
    def options(self) -> Options:
        return self.facts.options

    @property
    def op(self) -> Op:
        return self.layer.op

    def op_as(self, kind: type[OfKind]) -> OfKind:
        """The operator, which is one of this class: a kernel is asked about its own operators alone."""
        assert isinstance(self.op, kind)
        return self.op

    @property
    def arithmetic(self) -> Arithmetic:
        return self.network.arithmetic

    @property
    def activation(self) -> Activation | None:
        """The activation folded into the layer."""
        found: Activation | None = getattr(self.op, "activation", None)
        return found

    @property
    def weights(self) -> Array:
        """The values of the second input, which is a constant."""
        return self.network.constants[self.inputs[1].tensor.name]

    @property
    def result(self) -> Tensor:
        return self.output.tensor

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All inputs, and the result."""
        return (*(place.tensor for place in self.inputs), self.result)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return self.network.shapes(self.layer)

    @property
    def is_whole(self) -> bool:
        """Whether every call computes the whole output."""
        return self.bounds == tuple((0, size) for size in self.result.shape)

    @property
    def is_quantised(self) -> bool:
        """Whether stored integers stand for real numbers, so that a runtime's rounding rules apply."""
        return any(t.quant is not None and not t.dtype.is_float for t in self.tensors)

    @property
    def is_backward(self) -> bool:
        return self.sweep is Sweep.BACKWARD

    def shares(self, which: int = 0) -> bool:
        """Whether input `which` and the output may have bytes in common."""
        return self.inputs[which].meets(self.output)


def is_split(site: Site) -> bool:
    """Whether the weights of a convolution's window are split by channels, since slices of the layer have fewer."""
    nesting, op = site.facts.nesting, site.op
    if nesting is None or not isinstance(op, Conv2d) or op.groups > 1 or site.target.family is Family.HELIUM:
        return False  # vectors would take too long to gather fours of bytes
    _, *window, depth = site.shapes[1]
    is_large = window != [1, 1] and depth >= SPLIT and site.inputs[0].tensor.dtype is DType.INT8
    return is_large and site.facts.once("split", lambda: nesting.is_split(site.weights))
