"""Where a network may be interrupted: at the ends of stages and between their rows; what each choice costs in waiting.

What is alive at a point must not be overlaid by whoever interrupts there. So points with little alive are cheap in
RAM, and far between: a choice of points trades RAM against the time that the more urgent network waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import ceil

from ..fusion.timing import TimedPlan
from ..program import ROWS, Buffer, FusedLayers, Plan, Split, Stage, Step, Sweep, even_ends, faults, sums_name
from ..program.deployment import InterruptionPoints
from ..program.legal import problems
from ..program.steps import has_rows
from .description import PreemptionPoints

PIECES = 100  # of a run: no piece between two rows shall take longer than such a part, where layers have rows
MOST = 16  # choices of points that are looked at
SHARES = (0.85, 0.0)  # of a buffer that may be alive where points with more of it are left out

Span = tuple[int, int]  # bytes of a buffer


@dataclass(frozen=True)
class Liveness:
    """Which bytes of a plan's buffers are alive where it may be interrupted."""

    plan: Plan

    def points(self, kind: PreemptionPoints) -> InterruptionPoints:
        """Every place of the kind."""
        after = frozenset(range(len(self.plan.program.stages) - 1))
        return InterruptionPoints(after, frozenset() if kind is PreemptionPoints.STAGES else frozenset(self._rows))

    def spans(self, points: InterruptionPoints) -> Mapping[str, Span]:
        """Of each buffer the bytes that are alive at one of the points, with all between them."""
        found: dict[str, Span] = {}
        alive = [{b.name: (0, b.size) for b in self.plan.buffers if b.first <= n < b.last} for n in points.after]
        for spans in (*alive, *(self._rows[place] for place in points.rows)):
            for name, (low, high) in spans.items():
                before = found.get(name, (low, high))
                found[name] = min(low, before[0]), max(high, before[1])
        return found

    @cached_property
    def _rows(self) -> Mapping[tuple[int, int], Mapping[str, Span]]:
        """By (stage, turn), of stages of several turns: what is alive after it."""
        found = {}
        for n, stage in enumerate(self.plan.program.stages):
            if stage.schedule.is_whole or stage.schedule.lanes > 1:
                continue
            turns = list(self.plan.program.turns(stage))
            for turn, spans in enumerate(self._stage(n, turns) if len(turns) > 1 else ()):
                found[n, turn] = spans
        return found

    def _stage(self, n: int, turns: Sequence[Sequence[Step]]) -> Iterator[Mapping[str, Span]]:
        """After each turn: outputs as far as they are written, inputs that die here as far as they are to be read."""
        sums = {sums_name(name) for name in self.plan.program.partial(self.plan.program.stages[n])}
        tensors = {view.buffer for view in self.plan.views.values()}
        held = [b for b in self.plan.buffers if b.first <= n <= b.last and b.name in tensors | sums]
        progress = {b.name: self._progress(b, n, turns) for b in held}
        for turn in range(len(turns)):
            spans = {b.name: progress[b.name][turn] for b in held}
            yield {name: (low, high) for name, (low, high) in spans.items() if low < high}

    def _progress(self, buffer: Buffer, n: int, turns: Sequence[Sequence[Step]]) -> Sequence[Span]:
        """What is alive of a buffer after each turn; all of it, unless it holds one tensor that goes row by row."""
        network, stage, whole = self.plan.network, self.plan.program.stages[n], [(0, buffer.size)] * len(turns)
        inside = [name for name, view in self.plan.views.items() if view.buffer == buffer.name]
        if len(inside) != 1 or not self._is_by_rows(inside[0]):
            return whole
        name, view = inside[0], self.plan.views[inside[0]]
        rows = network.tensors[name].shape[ROWS]
        makers = {layer for layer in stage.layers if network.by_name[layer].output == name}
        if makers and not makers & set(self.plan.program.partial(stage)) and buffer.first == n:
            ends = [max((s.region.bounds[ROWS][1] for s in turn if s.layer in makers), default=0) for turn in turns]
            return [(0, view.offset + view.strides[ROWS] * end) for end in accumulate(ends, max)]
        if not makers and buffer.last == n and name not in network.outputs:
            begins = [self._first_read(turn, name) for turn in turns]
            rest = [*([*accumulate(reversed(begins), min)][::-1][1:]), rows]
            return [(view.offset + view.strides[ROWS] * begin, buffer.size) for begin in rest]
        return whole

    def _is_by_rows(self, name: str) -> bool:
        view, tensor = self.plan.views[name], self.plan.network.tensors[name]
        return has_rows(tensor.shape) and view.window is None and not view.tiled and view.strides == tensor.strides

    def _first_read(self, turn: Sequence[Step], name: str) -> int:
        """The first row of a tensor that a turn reads; one beyond all where it reads none."""
        found = [self.plan.network.tensors[name].shape[ROWS]]
        for step in turn:
            layer = self.plan.network.by_name[step.layer]
            needs = zip(layer.inputs, self.plan.program.needs(step), strict=True)
            found += [needed.bounds[ROWS][0] for read, needed in needs if read == name]
        return min(found)


@dataclass(frozen=True)
class RunPieces:
    """The times of a run between the places where it might be interrupted."""

    stages: tuple[tuple[float, ...], ...]  # of each stage: turn by turn, and the rest

    @classmethod
    def of(cls, timed: TimedPlan, scale: float) -> RunPieces:
        count = len(timed.plan.program.stages)
        return cls(tuple(tuple(piece * scale for piece in timed.pieces(n)) for n in range(count)))

    @property
    def total(self) -> float:
        return sum(map(sum, self.stages))

    def between(self, points: InterruptionPoints) -> tuple[float, ...]:
        """Times from each point to the next; the longest is how long a more urgent network waits at worst."""
        found, now = [], 0.0
        for n, stage in enumerate(self.stages):
            for turn, piece in enumerate(stage):
                now += piece
                if n in points.after if turn == len(stage) - 1 else (n, turn) in points.rows:
                    found.append(now)
                    now = 0.0
        return (*found, now) if now else tuple(found)


def choices(plan: Plan, kind: PreemptionPoints, pieces: RunPieces) -> Mapping[float, InterruptionPoints]:
    """Sets of points by how long they make wait, each within the one before it, and with less alive at its points.

    From one to the next, points are left out at which much of some buffer is alive that is in use in the fullest
    stage: of the buffer, and as many of its points, that the least waiting is added.
    """
    live = Liveness(plan)
    every = live.points(kind)
    now = [InterruptionPoints(frozenset((n,))) for n in sorted(every.after)]
    now += [InterruptionPoints(rows=frozenset((place,))) for place in sorted(every.rows)]
    spans = {point: live.spans(point) for point in now}
    found: dict[float, InterruptionPoints] = {}
    while now and len(found) < MOST:
        wait, (stage, most) = _wait(pieces, now), _fullest(plan, spans, now)
        found[wait] = _joined(now)
        trials = []
        for buffer in (b.name for b in plan.buffers if b.first <= stage <= b.last):
            largest = max((_size(spans[point], buffer) for point in now), default=0)
            for share in SHARES:
                rest = [point for point in now if _size(spans[point], buffer) <= share * largest]
                saved = most - _fullest(plan, spans, rest)[1]
                if rest and saved > 0:
                    trials.append(((_wait(pieces, rest), -saved), rest))
        now = min(trials, key=lambda trial: trial[0])[1] if trials else []
    return found


def _joined(points: Sequence[InterruptionPoints]) -> InterruptionPoints:
    after = frozenset[int]().union(*(point.after for point in points))
    return InterruptionPoints(after, frozenset[tuple[int, int]]().union(*(point.rows for point in points)))


def _wait(pieces: RunPieces, points: Sequence[InterruptionPoints]) -> float:
    return max(pieces.between(_joined(points)))


def _size(spans: Mapping[str, Span], buffer: str) -> int:
    low, high = spans.get(buffer, (0, 0))
    return high - low


def _fullest(
    plan: Plan, spans: Mapping[InterruptionPoints, Mapping[str, Span]], points: Sequence[InterruptionPoints]
) -> tuple[int, int]:
    """The stage in which most bytes are in use that are alive at some of the points, and how many they are."""
    alive = {b.name: max((_size(spans[point], b.name) for point in points), default=0) for b in plan.buffers}
    sizes = [
        sum(alive[b.name] for b in plan.buffers if b.first <= n <= b.last) for n in range(len(plan.program.stages))
    ]
    return sizes.index(max(sizes)), max(sizes)


def with_rows(plan: Plan, timed: TimedPlan) -> Plan:
    """The plan with long layers computed a few rows at a time, where that changes nothing else."""
    most = max(1.0, timed.total / PIECES)
    pulled = [name for name in plan.network.inputs if plan.views[name].window]
    found: dict[int, Stage] = {}
    for n, stage in enumerate(plan.program.stages):
        shape = plan.network.tensors[plan.network.by_name[stage.schedule.layers[-1]].output].shape
        parts = ceil(timed.stages[n] / most)
        is_one = stage.schedule.is_whole and len(stage.schedule.layers) == 1 and stage.sweep is Sweep.FORWARD
        if not is_one or len(shape) != 4 or shape[ROWS] < 2 or parts < 2:
            continue
        schedule = replace(stage.schedule, splits=(Split(ROWS, even_ends(shape[ROWS], parts)),))
        is_summed = FusedLayers(plan.network, schedule, plan.free).partial
        if not is_summed and next(problems(plan.network, schedule, plan.free, pulled), None) is None:
            found[n] = replace(stage, schedule=schedule)
    return _with_sound(plan, found)


def _with_sound(plan: Plan, divided: Mapping[int, Stage]) -> Plan:
    """The plan with those of the divided stages that keep to what it promises: outputs may trail their inputs."""
    if not divided:
        return plan
    stages = [divided.get(n, stage) for n, stage in enumerate(plan.program.stages)]
    trial = replace(plan, program=replace(plan.program, stages=tuple(stages)))
    if next(faults(trial), None) is None:
        return trial
    if len(divided) == 1:
        return plan
    half = sorted(divided)[len(divided) // 2]
    lower = _with_sound(plan, {n: stage for n, stage in divided.items() if n < half})
    return _with_sound(lower, {n: stage for n, stage in divided.items() if n >= half})
