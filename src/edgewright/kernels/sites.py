"""The sites of a plan: one for each call of its lowered stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..network import Interval, Network
from ..platform.target import Target
from ..program import Plan
from ..program.index import AffineExpr, Bounds, IndexExpr, variables
from ..program.lower import KernelCall, evaluated, iteration_points
from ..program.nesting import Nesting
from ..program.options import Options
from ..program.plan import scratch_name
from .site import ChannelRange, LayerFacts, Site
from .strided_tensor import StridedTensor, dense_strides

Loops = Mapping[str, int]  # how often the loops around a call run, by their variables


@dataclass(frozen=True)
class NetworkFacts:
    """A network on a target, with one cache of computed facts per layer."""

    network: Network
    target: Target
    options: Options = field(default_factory=Options)
    exact: bool = True  # whether multipliers are searched for; else all layers are taken to have them
    nesting: Nesting | None = None  # with the other networks of the library

    @cached_property
    def _layers(self) -> dict[str, LayerFacts]:
        return {}

    @cached_property
    def _shared(self) -> dict[Any, Any]:
        return {}

    def of(self, layer: str) -> LayerFacts:
        if layer not in self._layers:
            found, how = self.network.by_name[layer], (self.target, self.options, self.exact, self.nesting)
            self._layers[layer] = LayerFacts(self.network, found, *how, shared=self._shared)
        return self._layers[layer]


@dataclass(frozen=True)
class Sites:
    """The sites of a plan on a target."""

    plan: Plan
    facts: NetworkFacts

    def placement(self, name: str) -> StridedTensor:
        """Where a tensor lies."""
        network = self.facts.network
        tensor = network.tensors[name]
        if name in network.constants:
            return StridedTensor(tensor, dense_strides(tensor))
        view = self.plan.views[name]
        buffer = self.plan.buffer_named[view.buffer]
        start = buffer.offset + view.offset
        size = list(tensor.shape)
        if view.window:
            size[view.window[0]] = min(size[view.window[0]], view.window[1])
        reach = sum((n - 1) * s for n, s in zip(size, view.strides, strict=True)) + tensor.dtype.bytes
        reach = min(reach, buffer.part - view.offset)  # of a tiled tensor no more is there
        strides = tuple(s // tensor.dtype.bytes for s in view.strides)
        return StridedTensor(tensor, strides, view.window, buffer.memory, start, start + reach)

    def site(self, call: KernelCall, loops: Loops, linked_kernels: frozenset[str] = frozenset()) -> Site:
        """The site of a call, for all iterations of the loops around it."""
        layer = self.facts.network.by_name[call.layer]
        plane = self.plan.buffer_named.get(scratch_name(call.layer))
        return Site(
            facts=self.facts.of(call.layer),
            most=call.most,
            bounds=tuple(map(_known, call.region)),
            ranges=channel_ranges(call, loops)[0],
            sweep=call.sweep,
            inputs=tuple(map(self.placement, layer.inputs)),
            output=self.placement(layer.output),
            plane=plane.size if plane else 0,
            linked_kernels=linked_kernels,
            dynamic=None,
        )


def _known(bounds: tuple[IndexExpr, IndexExpr]) -> Interval | None:
    low, high = bounds
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def channel_ranges(call: KernelCall, loops: Loops) -> tuple[tuple[ChannelRange, ...], IndexExpr]:
    """All ranges of channels that a call computes over the iterations of its loops, and the index of the current one.

    No ranges where they are not known at compile time.
    """
    if not call.region:
        return (), 0
    ends: Bounds = (call.region[-1], *(call.partial[-1:] if call.partial else ()))
    names = sorted({name for pair in ends for end in pair for name in variables(end)})
    if any(name not in loops for name in names):
        return (), 0
    found = [evaluated(ends, at).bounds for at in iteration_points(ends, loops)]
    full = [bounds for bounds in found if all(low < high for low, high in bounds)]
    ranges = tuple(ChannelRange(*(bounds if bounds in full else full[0])) for bounds in found)
    if len(set(ranges)) == 1:
        return ranges[:1], 0
    terms, step = [], 1
    for name in reversed(names):
        terms.append((name, step))
        step *= loops[name]
    return ranges, AffineExpr(0, tuple(reversed(terms)))
