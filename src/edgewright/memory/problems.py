"""Converts a network to the problems of the solvers: with views to an ordering problem, with an order to a layout
problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import accumulate

from ..network import Layer, Network
from ..program import BufferKind, FusedLayers, FusionSchedule
from .footprint import Footprint, LocalBuffer
from .layout.problem import Item, LayoutProblem, align_up
from .ordering.problem import OrderProblem, Store
from .overlap import Distance, distance, most_shared
from .row_windows import RowWindows
from .techniques import Techniques
from .views import Views

RESERVED = "reserved: for others"  # a buffer that a plan leaves to other networks


@dataclass(frozen=True)
class StageNode:
    """The layers that become one stage: one layer, or several as scheduled."""

    name: str
    layers: tuple[Layer, ...]
    footprint: Footprint | None = None


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory that only this stage needs, during some of its calls."""

    size: int  # for all lanes
    calls: tuple[int, int]
    lanes: int = 1
    kind: BufferKind = BufferKind.TENSORS
    owner: str = ""  # the layer or stage that it serves, unless tensors lie in it


@dataclass(frozen=True)
class PlanningProblem:
    """The layers that execute something, and the buffers they touch."""

    network: Network
    views: Views
    techniques: Techniques = field(default_factory=Techniques)
    alignment: int = 1
    footprints: tuple[Footprint, ...] = ()

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in self.network.layers if layer.name not in self.views.free)

    @cached_property
    def nodes(self) -> tuple[StageNode, ...]:
        """The steps of the ordering problem, in a valid order."""
        fused = {name for each in self.footprints for name in each.schedule.layers}
        nodes = [StageNode(x.name, (x,)) for x in self.layers if x.name not in fused]
        for each in self.footprints:
            layers = tuple(layer for layer in self.layers if layer.name in each.schedule.layers)
            nodes.append(StageNode(each.schedule.name, layers, each))
        return _sorted_tasks(self.network, nodes) if self.footprints else tuple(nodes)

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        return dependencies(self.network, [node.layers for node in self.nodes])

    @cached_property
    def locals(self) -> Mapping[str, LocalBuffer]:
        """The parts kept of buffers that live inside one stage."""
        return {root: local for each in self.footprints for root, local in each.locals.items()}

    def scratch(self, node: StageNode) -> Mapping[str, Scratch]:
        """The stage's own memory: windows and tiles, the plane of a depthwise layer."""
        always = (0, node.footprint.calls - 1 if node.footprint else 0)
        lanes = node.footprint.schedule.lanes if node.footprint else 1
        scratch: dict[str, Scratch] = {}

        def add(kind: BufferKind, owner: str, size: int) -> None:
            scratch[kind.name_for(owner)] = Scratch(size, always, 1, kind, owner)

        if node.footprint:
            for name, size in node.footprint.sums.items():
                add(BufferKind.SUMS, name, self._aligned(size))
            for root, local in node.footprint.locals.items():
                scratch[root] = Scratch(lanes * self._aligned(local.bytes), local.calls or always, lanes)
        elif plane := self.views.planes.get(node.name):
            add(BufferKind.PLANE, node.name, plane)
        if room := dict(self.techniques.scratch_bytes).get(node.name):
            unaligned = max(0, 8 - self.alignment)  # kernels use it from a multiple of 8 on
            add(BufferKind.ROOM, node.name, self._aligned(lanes * room + unaligned))
        return scratch

    def _aligned(self, size: int) -> int:
        return align_up(size, self.alignment)

    @cached_property
    def outside(self) -> Mapping[str, str]:
        """The roots in the caller's memory, each with its input or output."""
        return {self.views.places[name].root: name for name in sorted(self.techniques.outside)}

    @cached_property
    def stores(self) -> Mapping[str, Store]:
        """The buffers by the name of their root, with the steps that touch them; sizes in whole words.

        Buffers in the caller's memory have size 0.
        """
        writers: dict[str, list[int]] = {}
        readers: dict[str, list[int]] = {}
        places = self.views.places
        for step, node in enumerate(self.nodes):
            if node.name not in self.views.planes:  # a layer in place uses the buffer but does not start its lifetime
                for root in dict.fromkeys(places[layer.output].root for layer in node.layers):
                    writers.setdefault(root, []).append(step)
            names = (name for layer in node.layers for name in self.network.activations(layer))
            for root in dict.fromkeys(places[name].root for name in names):
                readers.setdefault(root, []).append(step)
        pulled = dict(self.techniques.pulled)
        for name in pulled:  # rows arrive while the layer runs, and do not outlive it
            writers[name] = readers[name]
        inputs = {places[name].root for name in self.network.inputs if name not in pulled}
        outputs = {places[name].root for name in self.network.outputs if name in places}
        return {
            root: Store(
                root,
                0 if root in self.outside else self._aligned(self.techniques.bytes(self.network.tensors[root])),
                tuple(writers.get(root, ())),
                tuple(readers.get(root, ())),
                root in inputs,
                root in outputs,
            )
            for root in dict.fromkeys(place.root for place in places.values())
            if root not in self.locals
        } | self._reserved

    @property
    def _reserved(self) -> dict[str, Store]:
        """The bytes reserved for other networks, as an output."""
        layer, size = self.techniques.reserved or ("", 0)
        steps = tuple(step for step, node in enumerate(self.nodes) if layer in (each.name for each in node.layers))
        return {RESERVED: Store(RESERVED, self._aligned(size), steps, (), False, True)} if steps else {}

    @cached_property
    def pairs(self) -> Mapping[tuple[int, str, str], Distance]:
        """(step, X, Y): the allowed distances of Y and X if X dies at the step; only pairs that can share bytes."""
        pairs = {}
        for step, node in enumerate(self.nodes):
            for (root, target), safe in self._distances(node).items():
                if self.stores[target].writers != (step,) or root in dict(self.techniques.pulled):
                    continue
                if root in self.outside or target in self.outside:
                    continue
                if most_shared(self.stores[root].size, self.stores[target].size, safe, self.alignment) > 0:
                    pairs[step, root, target] = safe
        return pairs

    def _distances(self, node: StageNode) -> Mapping[tuple[str, str], Distance]:
        """(X, Y): the allowed distances of an output and an input of the stage, if both fill their buffers."""
        places = self.views.places
        if node.footprint:
            read = {name for layer in node.layers for name in self.network.activations(layer)}
            made = {layer.output for layer in node.layers}
            partial = {places[name].root for name in read | made if self.filled(name) is None}
            is_shared = self.techniques.overlap and not self.techniques.no_overlap & set(node.footprint.schedule.layers)
            pairs = node.footprint.shares.items() if is_shared else ()
            return {pair: safe for pair, safe in pairs if not partial & set(pair)}
        layer = node.layers[0]
        target = self.filled(layer.output)
        if target is None or not self.techniques.allows(layer.op.grain) or layer.name in self.views.planes:
            return {}
        if layer.name in self.techniques.no_overlap:
            return {}
        distances = {}
        for source in self.network.activations(layer):
            root = self.filled(source)
            read_as = [n for n in self.network.activations(layer) if places[n].root == root]
            if root is not None and root != target and len(read_as) == 1:
                distances[root, target] = distance(self.network, layer, source)
        # Rows arrive from top to bottom only.
        if any(name in dict(self.techniques.pulled) for name in layer.inputs):
            distances = {
                (x, y): replace(safe, above=self.network.tensors[x].bytes) for (x, y), safe in distances.items()
            }
        return distances

    def row_windows(self, layers: tuple[str, ...]) -> RowWindows:
        """The layers traced row by row; computed once for each group, since it is slow."""
        if layers not in self._row_windows:
            fused = FusedLayers(self.network, FusionSchedule(layers, streamed=True), self.views.free)
            self._row_windows[layers] = RowWindows(self.views, fused).without_steps()
        return self._row_windows[layers]

    @cached_property
    def _row_windows(self) -> dict[tuple[str, ...], RowWindows]:
        return {}

    def order_problem(self) -> OrderProblem:
        index = {root: i for i, root in enumerate(self.stores)}
        savings = {
            (step, index[x], index[y]): most_shared(self.stores[x].size, self.stores[y].size, safe, self.alignment)
            for (step, x, y), safe in self.pairs.items()
        }
        scratch = tuple(_fullest_call(self.scratch(node).values()) for node in self.nodes)
        names = tuple(node.name for node in self.nodes)
        return OrderProblem(names, self.before, tuple(self.stores.values()), savings, scratch)

    def lifetimes(self, order: Sequence[int]) -> Mapping[str, tuple[int, int]]:
        """The first and last position in the order at which each buffer is needed, inclusive."""
        at = {step: position for position, step in enumerate(order)}
        end = max(0, len(order) - 1)
        spans = {}
        for root, store in self.stores.items():
            touched = [at[step] for step in (*store.writers, *store.readers)]
            first = 0 if store.is_input or not touched else min(touched)
            last = end if store.is_output or not touched else max(touched)
            spans[root] = (first, last)
        return spans

    def fullest(self, order: Sequence[int]) -> int:
        """The position in the order with the most live bytes."""
        change = [0] * (len(order) + 1)
        for root, (first, last) in self.lifetimes(order).items():
            change[first] += self.stores[root].size
            change[min(last + 1, len(order))] -= self.stores[root].size
        totals = list(accumulate(change))
        return max(range(len(order)), key=totals.__getitem__, default=0)

    def layout_problem(self, order: Sequence[int]) -> LayoutProblem:
        """Buffers with their lifetimes, and the pairs that may overlap because one dies where the other is born."""
        spans = self.lifetimes(order)
        calls = (each.calls if (each := self.nodes[step].footprint) else 1 for step in order)
        times = list(accumulate(calls, initial=0))  # start of each stage; stages with several calls take longer
        times = times if order else [0, 1]
        items = [
            Item(root, times[first], times[last + 1], self.stores[root].size)
            for root, (first, last) in spans.items()
            if root not in self.outside
        ]
        for position, step in enumerate(order):
            for name, part in self.scratch(self.nodes[step]).items():
                first, last = part.calls
                items.append(Item(name, times[position] + first, times[position] + last + 1, part.size))
        return LayoutProblem(tuple(items), self.gaps(order), self.alignment)

    def gaps(self, order: Sequence[int]) -> Mapping[tuple[str, str], tuple[int, int]]:
        """(X, Y): the least distance from X's start to Y's, or from Y's to X's, for pairs that share memory in this
        order.

        If two inputs die at once only forward sweeps are offered, so that one sweep suits both.
        """
        spans = self.lifetimes(order)
        at = {step: position for position, step in enumerate(order)}
        dying: dict[int, list[tuple[str, str, Distance]]] = {}
        for (step, x, y), safe in self.pairs.items():
            if spans[x][1] == at[step] == spans[y][0] and not self.stores[x].is_output:
                dying.setdefault(step, []).append((x, y, safe))
        gaps = {}
        for pairs in dying.values():
            for x, y, safe in pairs:
                above = safe.above if len(pairs) == 1 else self.stores[x].size
                gaps[x, y] = (above, safe.below)
        for step, node in enumerate(self.nodes):
            tails = node.footprint.tails if node.footprint and self.techniques.overlap else {}
            for (x, y), tail in tails.items():  # the last rows of Y are written after X is dead
                is_born = spans[y][0] == at[step] and self.filled(y) == y and y not in self.outside
                if is_born and tail < self.stores[y].size:
                    gaps[x, y] = (self._aligned(self.locals[x].bytes), tail)
        return gaps

    def filled(self, name: str) -> str | None:
        """The root that the tensor fills completely, if any."""
        place, tensor = self.views.places[name], self.network.tensors[name]
        fills = place.offset == 0 and self.network.tensors[place.root].bytes == tensor.bytes
        return place.root if fills and tensor.is_dense(place.strides) else None


def _fullest_call(parts: Iterable[Scratch]) -> int:
    """The most bytes of scratch needed in one call."""
    change: dict[int, int] = {}
    for part in parts:
        change[part.calls[0]] = change.get(part.calls[0], 0) + part.size
        change[part.calls[1] + 1] = change.get(part.calls[1] + 1, 0) - part.size
    return max(accumulate(change[slot] for slot in sorted(change)), default=0)


def dependencies(network: Network, nodes: Sequence[Sequence[Layer]]) -> tuple[tuple[int, ...], ...]:
    """For each stage, the stages whose output it reads, traced through free layers."""
    steps = {layer.output: step for step, layers in enumerate(nodes) for layer in layers}
    sources: dict[str, tuple[int, ...]] = dict.fromkeys((*network.inputs, *network.constants), ())
    for layer in network.layers:
        if layer.output in steps:
            sources[layer.output] = (steps[layer.output],)
        else:
            sources[layer.output] = tuple(
                dict.fromkeys(s for name in network.activations(layer) for s in sources[name])
            )
    predecessors = []
    for step, layers in enumerate(nodes):
        reads = (s for layer in layers for name in network.activations(layer) for s in sources[name])
        predecessors.append(tuple(s for s in dict.fromkeys(reads) if s != step))
    return tuple(predecessors)


def _sorted_tasks(network: Network, nodes: Sequence[StageNode]) -> tuple[StageNode, ...]:
    before = dependencies(network, [node.layers for node in nodes])
    graph = {step: set(needed) for step, needed in enumerate(before)}
    return tuple(nodes[step] for step in TopologicalSorter(graph).static_order())
