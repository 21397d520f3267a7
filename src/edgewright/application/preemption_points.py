"""Where a network may be interrupted: at the ends of stages and between their rows; and the waiting time of each
choice.

Live bytes at a point must not be overwritten by the interrupting network. So points with few live bytes are cheap in
RAM, but far apart: a choice of points trades RAM against the waiting time of the more urgent network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from ..fusion.timing import TimedPlan
from ..memory.joint.liveness import Liveness, Span
from ..network import Shape
from ..program import CHANNELS, COLUMNS, ROWS, FusedLayers, Plan, Split, Stage, Sweep, even_ends, faults
from ..program.deployment import Deployment, InterruptionPoints, Relation, RelationKind
from ..program.legal import problems
from .description import PreemptionPoints
from .draft import Application

PIECE = 0.01  # of a run: the largest share between two rows, if layers have rows
LEAST_CHANNELS = 4  # of a piece, because kernels compute this many together
MOST = 16  # choices of points examined
SHARES = (0.85, 0.0)  # share of a buffer's live bytes above which points are left out


@dataclass(frozen=True)
class RunPieces:
    """The times of a run between possible preemption points."""

    stages: tuple[tuple[float, ...], ...]  # of each stage: turn by turn, and the rest

    @classmethod
    def of(cls, timed: TimedPlan, scale: float) -> RunPieces:
        count = len(timed.plan.program.stages)
        return cls(tuple(tuple(piece * scale for piece in timed.pieces(n)) for n in range(count)))

    @property
    def total(self) -> float:
        return sum(map(sum, self.stages))

    def between(self, points: InterruptionPoints) -> tuple[float, ...]:
        """Times from each point to the next; the longest is the worst wait of a more urgent network."""
        times, now = [], 0.0
        for n, stage in enumerate(self.stages):
            for turn, piece in enumerate(stage):
                now += piece
                if n in points.after if turn == len(stage) - 1 else (n, turn) in points.rows:
                    times.append(now)
                    now = 0.0
        return (*times, now) if now else tuple(times)


def with_points(
    application: Application, deployment: Deployment, chosen: Mapping[str, InterruptionPoints]
) -> Deployment:
    """The deployment whose parts may be interrupted as the file says, those in `chosen` only at these points."""

    def placed(relation: Relation) -> Relation:
        if relation.kind is not RelationKind.PREEMPTS:
            return relation
        low, kind = relation.parts[1], application.preempting(relation).points
        if kind is PreemptionPoints.ANYWHERE:
            return replace(relation, points=None)
        points = _every(deployment.plans[low], kind)
        if low in chosen:
            points = InterruptionPoints(points.after & chosen[low].after, points.rows & chosen[low].rows)
        return replace(relation, points=points)

    return replace(deployment, relations=tuple(map(placed, deployment.relations)))


def _every(plan: Plan, kind: PreemptionPoints) -> InterruptionPoints:
    """All points of a kind (stages or rows)."""
    return Liveness(plan).points if kind is PreemptionPoints.ROWS else Liveness(plan).stage_ends


def choices(plan: Plan, kind: PreemptionPoints, pieces: RunPieces) -> Mapping[float, InterruptionPoints]:
    """Sets of preemption points, keyed by the longest wait for the next point.

    The first set has all points. Each further one drops points at which a buffer of the fullest stage has many live
    bytes: less memory must be kept during a preemption, and the wait is longer. The buffer and the points are chosen
    to lengthen the wait least.
    """
    live, every = Liveness(plan), _every(plan, kind)
    now = [InterruptionPoints(frozenset((n,))) for n in sorted(every.after)]
    now += [InterruptionPoints(rows=frozenset((place,))) for place in sorted(every.rows)]
    spans = {point: live.spans(point) for point in now}
    points: dict[float, InterruptionPoints] = {}
    while now and len(points) < MOST:
        wait, (stage, most) = _wait(pieces, now), _fullest(plan, spans, now)
        points[wait] = _joined(now)
        trials = []
        for buffer in (b.name for b in plan.buffers if b.first <= stage <= b.last):
            largest = max((_size(spans[point], buffer) for point in now), default=0)
            for share in SHARES:
                rest = [point for point in now if _size(spans[point], buffer) <= share * largest]
                saved = most - _fullest(plan, spans, rest)[1]
                if rest and saved > 0:
                    trials.append(((_wait(pieces, rest), -saved), rest))
        now = min(trials, key=lambda trial: trial[0])[1] if trials else []
    return points


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
    """The stage with the most bytes in use that are live at some of the points, and their number."""
    alive = {b.name: max((_size(spans[point], b.name) for point in points), default=0) for b in plan.buffers}
    sizes = [
        sum(alive[b.name] for b in plan.buffers if b.first <= n <= b.last) for n in range(len(plan.program.stages))
    ]
    return sizes.index(max(sizes)), max(sizes)


def turns_needed(plan: Plan, timed: TimedPlan, piece: float = PIECE) -> Mapping[str, int]:
    """By layer, the number of pieces so that none takes a larger share of a run."""
    most = max(1.0, timed.total * piece)
    stages = zip(plan.program.stages, timed.stages, strict=True)
    return {stage.schedule.layers[-1]: ceil(time / most) for stage, time in stages}


def with_turns(plan: Plan, needed: Mapping[str, int]) -> Plan:
    """The plan with long layers computed a few rows or channels at a time, if that changes nothing else."""
    pulled = [name for name in plan.network.inputs if plan.views[name].window]
    stages: dict[int, Stage] = {}
    for n, stage in enumerate(plan.program.stages):
        schedule, parts = stage.schedule, needed[stage.schedule.layers[-1]]
        shape = plan.network.tensors[plan.network.by_name[schedule.layers[-1]].output].shape
        if not schedule.is_whole or len(schedule.layers) > 1 or len(shape) != 4 or parts < 2:
            continue
        split = _split(shape, stage.sweep, parts)
        if len(split.ends) < 2:
            continue
        schedule = replace(schedule, splits=(split,))
        is_summed = FusedLayers(plan.network, schedule, plan.free).partial
        if not is_summed and next(problems(plan.network, schedule, plan.free, pulled), None) is None:
            stages[n] = replace(stage, schedule=schedule)
    return _with_sound(plan, stages)


def _split(shape: Shape, sweep: Sweep, parts: int) -> Split:
    """An image's rows; its channels if they are computed one after the other."""
    if sweep is Sweep.CHANNELS:
        return Split(CHANNELS, even_ends(shape[CHANNELS], parts, LEAST_CHANNELS))
    rows = 1 + shape[COLUMNS] % 2  # an even number of pixels: kernels compute pairs
    return Split(ROWS, even_ends(shape[ROWS], parts, rows))


def _with_sound(plan: Plan, divided: Mapping[int, Stage]) -> Plan:
    """The plan with those divided stages that keep its promises: outputs may overlap their inputs."""
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
