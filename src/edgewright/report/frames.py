"""What lies in memory of each feature map of a fusion group over time, derived from the plan's steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..network import Array, Interval, Layer, Region, Shape
from ..program import Plan, RowTrace, Stage, Step, View

MOST_FRAMES = 36
Image = tuple[int, int, int]  # height, width, channels


@dataclass(frozen=True, slots=True)
class Extent:
    """A box of a feature map: rows, columns, channels."""

    rows: Interval
    columns: Interval
    channels: Interval

    @property
    def is_empty(self) -> bool:
        return any(stop <= start for start, stop in (self.rows, self.columns, self.channels))

    def __or__(self, other: Extent) -> Extent:
        """The bounding box of both."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        pairs = zip((self.rows, self.columns, self.channels), (other.rows, other.columns, other.channels), strict=True)
        rows, columns, channels = ((min(a, c), max(b, d)) for (a, b), (c, d) in pairs)
        return Extent(rows, columns, channels)


NOTHING = Extent((0, 0), (0, 0), (0, 0))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one feature map at one moment."""

    kept: Extent  # in memory
    now: Extent  # computed by this step, or read if the map comes from outside
    fresh: Extent  # the part of `now` that is computed for the first time; the rest is halo


@dataclass(frozen=True)
class Map:
    """A tensor of the group and its states over time."""

    tensor: str
    layer: Layer | None  # the layer that computes it; None for an input of the group
    image: Image
    snapshots: tuple[Snapshot, ...]
    is_summed: bool = False  # computed as partial sums


@dataclass(frozen=True)
class Animation:
    """The states of a group from its first step to its last."""

    maps: tuple[Map, ...]
    captions: tuple[str, ...]  # one for each moment


def image(shape: Shape) -> Image:
    """Height, width and channels of a tensor; missing axes count as 1."""
    *front, channels = shape or (1,)
    if len(front) >= 3:
        return front[-2], front[-1], channels
    return (front[-1] if front else 1), 1, channels


def part(region: Region) -> Extent:
    """A region as rows, columns and channels."""
    *front, channels = region.bounds or ((0, 1),)
    if len(front) >= 3:
        return Extent(front[-2], front[-1], channels)
    return Extent(front[-1] if front else (0, 1), (0, 1), channels)


def animate(plan: Plan, stage: Stage, most: int = MOST_FRAMES) -> Animation:
    """The states of the group at evenly spaced moments at which its last layer has advanced."""
    recorder = _Recorder(plan, stage)
    steps = list(plan.program.steps(stage))
    recorder.look_ahead(steps)
    ends = _moment_ends(plan, stage, steps)
    every = {*ends}
    chosen = {ends[i * (len(ends) - 1) // (most - 1)] for i in range(most)} if len(ends) > most else every
    captions = []
    for at, step in enumerate(steps):
        recorder.execute(at, step)
        if at in chosen:
            recorder.record(at)
            captions.append(_caption(plan, step))
        if at in every:
            recorder.next_moment()
    return Animation(recorder.maps(), tuple(captions))


def _moment_ends(plan: Plan, stage: Stage, steps: Sequence[Step]) -> list[int]:
    """The steps that end a moment: those of the last layer, where a row computed in several column ranges counts
    once."""
    last, has_width = _sink(plan, stage)
    own = [at for at, step in enumerate(steps) if step.layer == last]
    return [
        at
        for at, follower in zip(own, [*own[1:], None], strict=True)
        if not has_width or follower is None or not _continues(steps[at], steps[follower])
    ]


def _continues(step: Step, other: Step) -> bool:
    """Whether the second step computes the next columns of the same rows."""
    a, b = part(step.partial or step.region), part(other.partial or other.region)
    return a.rows == b.rows and a.channels == b.channels and a.columns[1] == b.columns[0]


def _sink(plan: Plan, stage: Stage) -> tuple[str, bool]:
    """The last of the driven layers, and whether it computes rows in several column ranges."""
    fused = plan.program.fused(stage)
    last = fused.sinks[-1]
    chains = RowTrace(fused).chains if stage.schedule.streamed else ()
    return last, any(chain.columns for chain in chains if chain.last == last)


def _caption(plan: Plan, step: Step) -> str:
    """The progress of the last layer."""
    layer = plan.network.by_name[step.layer]
    at = part(step.partial or step.region)
    shape = plan.network.tensors[layer.inputs[0] if step.partial else layer.output].shape
    sizes = dict(zip(("rows", "columns", "channels"), image(shape), strict=True))
    spans = dict(zip(sizes, (at.rows, at.columns, at.channels), strict=True))
    told = [_span_words(name, span, sizes[name]) for name, span in spans.items() if span[1] - span[0] < sizes[name]]
    return ", ".join(told) or "all of it"


def _span_words(name: str, span: Interval, size: int) -> str:
    start, stop = span
    return (
        f"{name.removesuffix('s')} {start} of {size}" if stop == start + 1 else f"{name} {start}–{stop - 1} of {size}"
    )


class _Recorder:
    """Replays the steps and records the memory contents of every map on request."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        self.plan, self.network = plan, plan.network
        self.summing = {self.network.by_name[name].output for name in plan.program.partial(stage)}
        self.layers = [self.network.by_name[name] for name in stage.layers]
        made = {layer.output for layer in self.layers}
        read = (name for layer in self.layers for name in self.network.activations(layer))
        self.given = tuple(dict.fromkeys(name for name in read if name not in made and name in plan.views))
        self.names = (*self.given, *(layer.output for layer in self.layers))
        self.now: dict[str, Extent] = {}
        self.fresh: dict[str, Extent] = {}
        self.recent: dict[str, Extent] = {}  # the latest part of each map
        self.done: dict[str, Extent] = {}  # all computed parts so far
        self.masks: dict[tuple[str, Interval], Array] = {}
        self.snapshots: dict[str, list[Snapshot]] = {name: [] for name in self.names}
        self.reads: list[tuple[tuple[str, Extent], ...]] = []  # for each step, the reads from outside the group
        # After each step, the first row of a map that will still be read.
        self.waiting: list[Mapping[str, int]] = []

    def look_ahead(self, steps: Sequence[Step]) -> None:
        """What each step reads from outside the group, and the first row that is still needed afterwards."""
        given = set(self.given)
        for step in steps:
            layer = self.network.by_name[step.layer]
            if given.isdisjoint(layer.inputs):
                self.reads.append(())
                continue
            needs = zip(layer.inputs, self.plan.program.needs(step), strict=True)
            self.reads.append(tuple((name, part(region)) for name, region in needs if name in given))
        first: Mapping[str, int] = {name: image(self.network.tensors[name].shape)[0] for name in given}
        for reads in reversed(self.reads):
            self.waiting.append(first)
            for name, needed in reads:
                first = {**first, name: min(first[name], needed.rows[0])}
        self.waiting.reverse()

    def execute(self, at: int, step: Step) -> None:
        name, region = self.network.by_name[step.layer].output, part(step.region)
        for source, needed in self.reads[at]:
            self.now[source] = self.now.get(source, NOTHING) | needed
            self.fresh[source] = self.now[source]
        self.recent[name] = region
        self.done[name] = self.done.get(name, NOTHING) | region
        self.now[name] = self.now.get(name, NOTHING) | region
        self.fresh[name] = self.fresh.get(name, NOTHING) | (region if step.partial else self._unseen(name, region))

    def next_moment(self) -> None:
        self.now.clear()
        self.fresh.clear()

    def record(self, at: int) -> None:
        for name in self.names:
            now = self.now.get(name, NOTHING)
            self.snapshots[name].append(Snapshot(self._kept(name, at), now, self.fresh.get(name, NOTHING)))

    def maps(self) -> tuple[Map, ...]:
        return tuple(
            Map(
                name,
                self.network.producers[name] if name not in self.given else None,
                image(self.network.tensors[name].shape),
                tuple(self.snapshots[name]),
                name in self.summing,
            )
            for name in self.names
        )

    def _unseen(self, name: str, region: Extent) -> Extent:
        """The part of the region that no step has computed before. It is a box, because tiles advance in order."""
        height, width, _ = image(self.network.tensors[name].shape)
        mask = self.masks.setdefault((name, region.channels), np.zeros((height, width), bool))
        cut = mask[slice(*region.rows), slice(*region.columns)]
        rows, columns = np.flatnonzero(~cut.all(axis=1)), np.flatnonzero(~cut.all(axis=0))
        cut[...] = True
        if not len(rows):
            return NOTHING
        y, x = region.rows[0], region.columns[0]
        return Extent((y + rows[0], y + rows[-1] + 1), (x + columns[0], x + columns[-1] + 1), region.channels)

    def _kept(self, name: str, at: int) -> Extent:
        """The contents of the buffer: a window of rows, the current tile, or all computed parts that are still
        needed."""
        view, size = self.plan.views[name], image(self.network.tensors[name].shape)
        if name in self.given:
            rows = (self.waiting[at][name], size[0]) if view.window is None else self._rolled(view, self.now.get(name))
            return Extent(rows, (0, size[1]), (0, size[2]))
        if name not in self.recent:
            return NOTHING
        recent, done = self.recent[name], self.done[name]
        tiled = self._tiled(name, view)
        rows = recent.rows if 0 in tiled else done.rows
        rows = self._rolled(view, recent) if view.window else rows
        return Extent(
            rows, recent.columns if 1 in tiled else done.columns, recent.channels if 2 in tiled else done.channels
        )

    def _rolled(self, view: View, recent: Extent | None) -> Interval:
        """The rows in a rolling window whose last rows are these."""
        if view.window is None or recent is None or recent.is_empty:
            return (0, 0)
        return max(0, recent.rows[1] - view.window[1]), recent.rows[1]

    def _tiled(self, name: str, view: View) -> set[int]:
        """The axes of rows (0), columns (1) and channels (2) along which only the current tile is kept."""
        rank = len(self.network.tensors[name].shape)
        behind = rank - 3 if rank >= 4 else rank - 2
        return {2 if axis == rank - 1 else axis - behind for axis in view.tiled}


def fusion_groups(plan: Plan) -> Iterator[tuple[int, Stage]]:
    """The stages that run in parts, with their indices."""
    for at, stage in enumerate(plan.program.stages):
        if not stage.schedule.is_undivided:
            yield at, stage
