"""A stage lowered to a small tree of loops and kernel calls, derived from the schedule and never stored.

The region of each call is worked out for every iteration, and then fitted by an expression over the loop variables: a
constant, an affine expression or a table. Unrolled, the tree gives back the steps of the stage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ..network import Network, Region
from .fusion import COLUMNS
from .index import AffineExpr, Bounds, IndexExpr, fit, value, variable, variables
from .plan import Plan
from .program import Stage
from .row_trace import RowTrace
from .selection import CallKey, CallKind
from .steps import ROWS, Step, Sweep, summed_axes
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
    part: int = 0  # of the layer, where a stage has several calls for it

    def key(self, stage: int) -> CallKey:
        """The key of the call, unique within a plan."""
        return CallKey(stage, self.layer, self.kind, self.part)

    def step(self, at: Mapping[str, int]) -> Step | None:
        """The step that the call computes in the iteration `at`; None if it is empty or the call finishes sums."""
        if self.kind is CallKind.FINISH:
            return None
        region = evaluated(self.region, at)
        partial = None if self.partial is None else evaluated(self.partial, at)
        is_empty = region.is_empty or (partial is not None and partial.is_empty)
        return None if is_empty else Step(self.layer, region, self.sweep, partial)


@dataclass(frozen=True)
class For:
    variable: str
    count: int
    body: tuple[Node, ...]
    lanes: int = 1  # cores that share the iterations: iteration t is that of lane t mod lanes


@dataclass(frozen=True)
class OnDemand:
    """Rows on demand: sinks are driven, and ask other chains. A body computes rows ROW to BELOW of its chain."""

    trace: RowTrace
    bodies: tuple[tuple[Node, ...], ...]  # of each chain
    band: str | None = None  # the variable of the loop over bands of rows, where there is one


Node = KernelCall | For | OnDemand


def is_one_turn(nodes: Sequence[Node]) -> bool:
    """Whether the nodes contain no point between rows or tiles at which the run could be interrupted."""
    return all(
        isinstance(node, KernelCall)
        or (isinstance(node, For) and (node.count == 1 or node.variable == CHUNK) and is_one_turn(node.body))
        for node in nodes
    )


def lower(plan: Plan, stage: Stage) -> tuple[Node, ...]:
    """The stage as a tree of loops and calls. Calls that finish running sums come at the end."""
    lowering = _Lowering(plan, stage)
    return (*lowering.nodes(), *(_finish(plan.network, name) for name in plan.program.partial(stage)))


def _finish(network: Network, name: str) -> KernelCall:
    shape = network.tensors[network.by_name[name].output].shape
    return KernelCall(name, CallKind.FINISH, Region.whole(shape).bounds, None, Sweep.FORWARD, shape)


class _Lowering:
    """The lowering of one stage in progress."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        self.plan, self.stage, self.network = plan, stage, plan.network
        self.fused = plan.program.fused(stage)
        self.origins: dict[tuple[str, int], IndexExpr] = {}  # (buffer, axis from the end)
        self.parts: Counter[tuple[str, CallKind]] = Counter()  # calls of each layer so far
        self.loops = [
            (f"tile{depth}" if depth else "tile", Tiling(self.fused, split, stage.sweep is Sweep.BACKWARD))
            for depth, split in enumerate(stage.schedule.splits)
        ]

    def nodes(self) -> tuple[Node, ...]:
        body: tuple[Node, ...]
        if self.stage.schedule.streamed:
            trace = RowTrace(self.fused)
            bodies = [tuple(self._chain(trace, index)) for index in range(len(trace.chains))]
            body = (OnDemand(trace, tuple(bodies), self.loops[0][0] if self.stage.schedule.is_banded else None),)
        else:
            steps = self.plan.program.whole_steps(self.fused)
            body = tuple(call for step in steps for call in self._call(step, ()))
        for name, tiling in reversed(self.loops):
            body = (For(name, len(tiling.split.ends), body, tiling.split.lanes),)
        return body

    def _chain(self, trace: RowTrace, index: int) -> Iterator[Node]:
        """The loop body of a chain: one call over all columns, or a loop over groups of columns."""
        chain = trace.chains[index]
        below = AffineExpr(1, ((ROW, 1),)) if chain.rows == 1 else variable(BELOW)
        rows = _Cut(ROWS, (variable(ROW), below), chain.rows)
        columns = trace.columns(index, chain.columns)
        steps = [self.fused.wholes[name] for name in chain.layers]
        if len(columns) == 1:
            part = columns[0]
            across = () if part is None else (_Cut(COLUMNS, part, part[1] - part[0]),)
            for step in steps:
                yield from self._call(step, (rows, *across))
            return
        known = [part for part in columns if part is not None]
        bounds = tuple(fit(ends, CHUNK) for ends in zip(*known, strict=True))
        cut = _Cut(COLUMNS, (bounds[0], bounds[1]), max(b - a for a, b in known))
        yield For(CHUNK, len(known), tuple(call for step in steps for call in self._call(step, (rows, cut))))

    def _call(self, step: Step, cuts: tuple[_Cut, ...]) -> Iterator[KernelCall]:
        """The call for a step, restricted by all enclosing tiles; nothing if its region is empty in every iteration."""
        layer = self.network.by_name[step.layer]
        loops = self.loops[1:] if self.stage.schedule.is_banded else self.loops
        tiles = [_Cut.of_parts(name, tiling, step.layer) for name, tiling in loops]
        region: Bounds = step.region.bounds
        most = list(step.region.shape)
        partial: Bounds | None = step.partial.bounds if step.partial else None
        may_be_empty = False
        for cut in (*tiles, *cuts):
            if partial is not None and cut.axis % len(partial) in summed_axes(self.network, layer):
                partial = _with_axis(partial, cut.axis % len(partial), cut.bounds)
            else:
                at = cut.axis % len(region)
                region = _with_axis(region, at, cut.bounds)
                most[at] = min(most[at], cut.most)
            may_be_empty |= cut.may_be_empty
        if is_always_empty(region) or (partial is not None and is_always_empty(partial)):
            return
        kind = CallKind.COMPUTE if step.partial is None else CallKind.ADD
        self._begin(layer.output, region)
        names = dict.fromkeys((*self.network.activations(layer), layer.output))
        origins = tuple(origin for name in names for origin in self._origins_of(name))
        part = self.parts[step.layer, kind]
        self.parts[step.layer, kind] += 1
        yield KernelCall(step.layer, kind, region, partial, self.stage.sweep, tuple(most), origins, may_be_empty, part)

    def _begin(self, tensor: str, region: Bounds) -> None:
        """Records where the tile begins that the tensor's buffer holds from here on."""
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
    """A restriction along one axis: the bounds that remain, and the largest number of indices between them."""

    axis: int
    bounds: tuple[IndexExpr, IndexExpr]
    most: int
    may_be_empty: bool = False

    @classmethod
    def of_parts(cls, name: str, tiling: Tiling, layer: str) -> _Cut:
        parts = tiling.intervals[layer]
        lows, highs = zip(*parts, strict=True)
        most = max(high - low for low, high in parts)
        is_ever_empty = any(high <= low for low, high in parts)
        return cls(tiling.split.axis, (fit(lows, name), fit(highs, name)), most, is_ever_empty)


def _with_axis(bounds: Bounds, axis: int, part: tuple[IndexExpr, IndexExpr]) -> Bounds:
    return (*bounds[:axis], part, *bounds[axis + 1 :])


def is_always_empty(bounds: Bounds) -> bool:
    """Whether the region is empty in every iteration."""
    return any(isinstance(a, int) and isinstance(b, int) and b <= a for a, b in bounds)


def evaluated(bounds: Bounds, at: Mapping[str, int]) -> Region:
    """The region in the iteration `at`, as plain numbers."""
    return Region(tuple((value(low, at), value(high, at)) for low, high in bounds))


def iteration_points(bounds: Bounds, counts: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """All iterations of the loops whose variables occur in these bounds."""
    names = sorted({name for pair in bounds for end in pair for name in variables(end)} & counts.keys())
    for indices in product(*(range(counts[name]) for name in names)):
        yield dict(zip(names, indices, strict=True))


def calls(
    nodes: Sequence[Node], loops: Mapping[str, int] | None = None
) -> Iterator[tuple[KernelCall, Mapping[str, int]]]:
    """All calls of a tree in program order, each with the number of times that it runs."""
    around = loops or {}
    for node in nodes:
        match node:
            case For(name, count, body):
                yield from calls(body, {**around, name: count})
            case OnDemand(bodies=bodies):
                for body in bodies:
                    yield from calls(body, around)
            case KernelCall():
                yield node, around
