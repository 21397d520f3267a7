"""A stage as a small tree of loops and kernel calls: derived from the schedule, never stored.

What a tile or a row needs is worked out for every one of them, and then said once: as numbers, as straight lines over
the loop's variable, or as a table. Written out again (`unrolled`) the tree gives the steps of the stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ..network import Interval, Network, Region
from .index import AffineExpr, Bounds, IndexExpr, fit, value, variable, variables
from .plan import Plan
from .selection import CallKind
from .shares import summed_axes
from .steps import Item, Loop, Stage, Step, Stream, Sweep, Tiles
from .stream import Flow
from .tiling import Tiling

ROW, BELOW = "row", "below"  # the rows that a chain computes in its turn; of one row just the first is named
CHUNK = "chunk"  # which of their columns, where a few are computed after the other


@dataclass(frozen=True)
class KernelCall:
    layer: str
    kind: CallKind
    region: Bounds  # of the output
    partial: Bounds | None  # of the first input, where it is summed over part by part
    sweep: Sweep
    most: tuple[int, ...]  # indices along each axis of the region, at most
    origins: tuple[tuple[str, int, IndexExpr], ...] = ()  # (tensor, axis, where the tile that memory holds begins)
    may_be_empty: bool = False  # in some tile nothing is left of it


@dataclass(frozen=True)
class For:
    variable: str
    count: int
    body: tuple[Node, ...]


@dataclass(frozen=True)
class PixelChain:
    """Layers that hand pixels on, a few rows in each turn; `body` computes the rows from ROW to BELOW."""

    index: int  # place in the stream
    body: tuple[Node, ...]


@dataclass(frozen=True)
class OnDemand:
    """Rows on demand: the last chains are driven, the others asked for rows."""

    flow: Flow
    chains: tuple[PixelChain, ...]


Node = KernelCall | For | OnDemand


def lower(plan: Plan, stage: Stage) -> tuple[Node, ...]:
    """The stage's body as loops and calls; complete sums become output at its end."""
    body = _Lowering(plan).nodes(stage.body, _Around())
    return (*body, *(_finish(plan.network, name) for name in stage.summing))


def _finish(network: Network, name: str) -> KernelCall:
    shape = network.tensors[network.by_name[name].output].shape
    return KernelCall(name, CallKind.FINISH, Region.whole(shape).bounds, None, Sweep.FORWARD, shape)


@dataclass(frozen=True)
class _Around:
    """What lies around an item: how many loops, and what they cut each layer to."""

    depth: int = 0
    counters: tuple[tuple[str, int], ...] = ()  # of plain loops, with their counts
    cuts: Mapping[str, tuple[tuple[int, str, tuple[Interval, ...]], ...]] | None = None  # axis, variable, parts


@dataclass
class _Lowering:
    plan: Plan

    def __post_init__(self) -> None:
        self.origins: dict[tuple[str, int], IndexExpr] = {}  # (buffer, axis from the end)

    @property
    def network(self) -> Network:
        return self.plan.network

    def nodes(self, body: Sequence[Item], around: _Around) -> Iterator[Node]:
        for item in body:
            match item:
                case Step():
                    yield from self._call(item, around, self._moved(item, around), ())
                case Loop(count, inner):
                    name = f"part{around.depth}"
                    counters = (*around.counters, (name, count))
                    inside = replace(around, depth=around.depth + 1, counters=counters)
                    yield For(name, count, tuple(self.nodes(inner, inside)))
                case Tiles():
                    yield self._tiles(item, around)
                case Stream():
                    yield self._stream(item, around)

    def _tiles(self, tiles: Tiles, around: _Around) -> For:
        tiling, name = Tiling(self.network, tiles), f"tile{around.depth}" if around.depth else "tile"
        before = around.cuts or {}
        cuts = {
            layer: (*before.get(layer, ()), (tiles.axis, name, intervals))
            for layer, intervals in tiling.intervals.items()
        }
        inside = replace(around, depth=around.depth + 1, cuts={**before, **cuts})
        return For(name, tiling.count, tuple(self.nodes(tiles.body, inside)))

    def _stream(self, stream: Stream, around: _Around) -> OnDemand:
        flow = Flow(self.network, stream)
        chains = []
        for index in range(len(stream.units)):
            chains.append(PixelChain(index, tuple(self._chain(flow, index, around))))
        return OnDemand(flow, tuple(chains))

    def _chain(self, flow: Flow, index: int, around: _Around) -> Iterator[Node]:
        """A chain's turn: all columns at once, or a few after the other."""
        below = AffineExpr(1, ((ROW, 1),)) if flow.rows[index] == 1 else variable(BELOW)
        rows = _Cut(flow.stream.axis, (variable(ROW), below), flow.rows[index])
        columns = flow.columns(index)
        steps = flow.stream.units[index].steps
        if len(columns) == 1:
            part = columns[0]
            across = () if part is None else (_Cut(flow.stream.axis + 1, part, part[1] - part[0]),)
            for step in steps:
                yield from self._call(step, around, self._moved(step, around), (rows, *across))
            return
        known = [part for part in columns if part is not None]
        bounds = tuple(fit(ends, CHUNK) for ends in zip(*known, strict=True))
        cut = _Cut(flow.stream.axis + 1, (bounds[0], bounds[1]), max(b - a for a, b in known))
        body = [
            node for step in steps for node in self._call(step, around, self._moved(step, around), (rows, cut))
        ]
        yield For(CHUNK, len(known), tuple(body))

    def _moved(self, step: Step, around: _Around) -> Bounds:
        """The step's region with the loops around it, clipped to the tensor."""
        shape = self.network.tensors[self.network.by_name[step.layer].output].shape
        moves = step.moves or ((0,) * len(shape),) * len(around.counters)
        bounds = []
        for axis, (ends, size) in enumerate(zip(step.region.bounds, shape, strict=True)):
            terms = tuple(
                (name, move[axis])
                for (name, count), move in zip(around.counters, moves, strict=True)
                if move[axis] and count > 1
            )
            low, high = (AffineExpr(end, terms, (0, size)) if terms else min(max(end, 0), size) for end in ends)
            bounds.append((low, high))
        return tuple(bounds)

    def _call(self, step: Step, around: _Around, region: Bounds, cuts: tuple[_Cut, ...]) -> Iterator[KernelCall]:
        """The call for a step, cut by all that lies around it, unless nothing is ever left of it."""
        layer = self.network.by_name[step.layer]
        tiles = [_Cut.of_parts(*cut) for cut in (around.cuts or {}).get(step.layer, ())]
        shape = self.network.tensors[layer.output].shape
        most = list(map(min, step.region.shape, shape))
        partial: Bounds | None = step.share.bounds if step.share else None
        counts = dict(around.counters)
        may_be_empty = any(settled(region, at).is_empty for at in standings(region, counts))
        for cut in (*tiles, *cuts):
            if partial is not None and cut.axis % len(partial) in summed_axes(self.network, layer):
                partial = _with_axis(partial, cut.axis % len(partial), cut.bounds)
            else:
                at = cut.axis % len(region)
                region = _with_axis(region, at, cut.bounds)
                most[at] = min(most[at], cut.most)
            may_be_empty |= cut.may_be_empty
        if cut_off(region) or (partial is not None and cut_off(partial)):
            return
        kind = CallKind.COMPUTE if step.share is None else CallKind.ADD
        self._begin(layer.output, region)
        names = dict.fromkeys((*self.network.activations(layer), layer.output))
        origins = tuple(found for name in names for found in self._origins_of(name))
        yield KernelCall(step.layer, kind, region, partial, step.sweep, tuple(most), origins, may_be_empty)

    def _begin(self, tensor: str, region: Bounds) -> None:
        """Notes where the tile begins that the tensor's memory holds from now on."""
        view = self.plan.views[tensor]
        for axis in view.tiled:
            self.origins[view.buffer, axis - len(region)] = region[axis][0]

    def _origins_of(self, tensor: str) -> Iterator[tuple[str, int, IndexExpr]]:
        view = self.plan.views.get(tensor)
        if view is not None:
            rank = len(self.network.tensors[tensor].shape)
            for axis in view.tiled:
                yield tensor, axis, self.origins.get((view.buffer, axis - rank), 0)


@dataclass(frozen=True)
class _Cut:
    """What is left along an axis, of how many indices at most."""

    axis: int
    bounds: tuple[IndexExpr, IndexExpr]
    most: int
    may_be_empty: bool = False

    @classmethod
    def of_parts(cls, axis: int, name: str, parts: Sequence[Interval]) -> _Cut:
        lows, highs = zip(*parts, strict=True)
        most = max(high - low for low, high in parts)
        is_ever_empty = any(high <= low for low, high in parts)
        return cls(axis, (fit(lows, name), fit(highs, name)), most, is_ever_empty)


def _with_axis(bounds: Bounds, axis: int, part: tuple[IndexExpr, IndexExpr]) -> Bounds:
    return (*bounds[:axis], part, *bounds[axis + 1 :])


def cut_off(bounds: Bounds) -> bool:
    """Whether nothing is left wherever the loops stand."""
    return any(isinstance(a, int) and isinstance(b, int) and b <= a for a, b in bounds)


def settled(bounds: Bounds, at: Mapping[str, int]) -> Region:
    """The region where the loops stand there."""
    return Region(tuple((value(low, at), value(high, at)) for low, high in bounds))


def standings(bounds: Bounds, counts: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """Every place where the loops that these bounds depend on can stand."""
    names = sorted({name for pair in bounds for end in pair for name in variables(end)} & counts.keys())
    for indices in product(*(range(counts[name]) for name in names)):
        yield dict(zip(names, indices, strict=True))


def calls(
    nodes: Sequence[Node], loops: Mapping[str, int] | None = None
) -> Iterator[tuple[KernelCall, Mapping[str, int]]]:
    """The calls of a tree in the order in which they are written, each with how often the loops around it run."""
    around = loops or {}
    for node in nodes:
        match node:
            case For(name, count, body):
                yield from calls(body, {**around, name: count})
            case OnDemand(_, chains):
                for chain in chains:
                    yield from calls(chain.body, around)
            case KernelCall():
                yield node, around


def unrolled(nodes: Sequence[Node], at: Mapping[str, int] | None = None) -> Iterator[Step]:
    """The steps that the tree stands for, in the order in which they run."""
    here = dict(at or {})
    for node in nodes:
        match node:
            case For(name, count, body):
                for i in range(count):
                    yield from unrolled(body, {**here, name: i})
            case OnDemand(flow, chains):
                for index, done in flow.order():
                    rows = flow.rows[index]
                    stands = {ROW: done * rows, BELOW: min((done + 1) * rows, flow.heights[index])}
                    yield from unrolled(chains[index].body, {**here, **stands})
            case KernelCall(kind=CallKind.FINISH):
                continue
            case KernelCall():
                region = settled(node.region, here)
                partial = None if node.partial is None else settled(node.partial, here)
                if not region.is_empty and not (partial is not None and partial.is_empty):
                    yield Step(node.layer, region, node.sweep, share=partial)
