"""Row FIFOs of pipelines: what crosses from one partition to the next as a ring of rows instead of whole frames.

The producer's last stage makes rows from top to bottom and stops while the ring is full; the reader's first stage pulls
them out of it. Both are at work on the same frame then, and the producer begins the next one when the reader lets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from ..errors import Infeasible
from ..memory.row_windows import pullable
from ..network import Layer, Network
from ..network.operators import MaxPool2d
from ..program import ROWS, FusionSchedule, Plan, Stage, Step, Sweep, faults
from .members import Application, CrossingTensor
from .relations import Relations

FRAMES = 8  # of a simulation; the second half counts
LOSS = 0.01  # of the best pace with a ring that a small one may cost
# Of the slower partition's own pace that may be lost by a small ring, and where partitions wait for each other, which
# lets them have memory in common.
SMALL, SHARED = 0.02, 0.04
NEVER = float("inf")


def with_rings(application: Application) -> Application | None:
    """The application with rows in place of frames wherever a pipeline can have that; None where none can."""
    found = tuple(
        replace(one, slots=1, rows=one.height) if _can_be_ring(application, one) else one
        for one in application.crossings
    )
    return replace(application, crossings=found) if found != application.crossings else None


def _can_be_ring(application: Application, crossing: CrossingTensor) -> bool:
    """Whether two partitions meet in this one tensor, and nobody counts on where they stand between two runs."""
    entry, members = application.file.network(crossing.owner), application.members_of(crossing.owner)
    if entry.plain or entry.phases or entry.period is not None or len(members) != 2:
        return False
    source, reader = (member.network for member in members)
    if crossing.height < 2 or source.outputs != (crossing.source[1],) or reader.inputs != (crossing.readers[0][1],):
        return False
    names = {member.name for member in members}
    is_interrupting = any(names & set(pair) for pair in Relations(application).preemptions)
    return not is_interrupting and crossing.tensor not in application.networks[crossing.owner].outputs


def ring_ends(application: Application, member: str) -> tuple[str | None, str | None]:
    """The input of a member that it pulls out of a ring, and the output that it pushes into one."""
    rings = [one for one in application.crossings if one.rows]
    pulled = next((dict(one.readers)[member] for one in rings if member in dict(one.readers)), None)
    return pulled, next((one.source[1] for one in rings if one.source[0] == member), None)


def reading_rows(network: Network, tensor: str) -> Network:
    """The network with one layer that reads the input, so that its rows can be pulled: a 1×1 pool, which copies."""
    if tensor in pullable(network):
        return network
    copy = f"{tensor}:rows"
    first = Layer(copy, MaxPool2d((1, 1)), (tensor,), copy)
    others = [
        replace(layer, inputs=tuple(copy if name == tensor else name for name in layer.inputs))
        for layer in network.layers
    ]
    return network.with_layers([first, *others], [replace(network.tensors[tensor], name=copy)])


def pushing_rows(plan: Plan, tensor: str) -> Plan:
    """The plan with a last stage that makes rows of this output one after the other; an error where it cannot."""
    *before, last = plan.program.stages
    schedule = FusionSchedule(last.layers, streamed=True) if last.schedule.is_whole else last.schedule
    stage = Stage(last.name, schedule)
    trial = replace(plan, program=replace(plan.program, stages=(*before, stage)))
    maker = plan.network.producers[tensor].name
    is_stream = schedule.streamed and not schedule.splits and last.sweep is Sweep.FORWARD
    if not is_stream or trial.program.fused(stage).sinks != (maker,) or maker in trial.program.partial(stage):
        raise Infeasible(f"'{tensor}' does not come row by row: it cannot cross in a ring")
    if (fault := next(faults(trial), None)) is not None:
        raise Infeasible(f"'{tensor}' does not come row by row: {fault}")
    return trial


@dataclass(frozen=True)
class RowSteps:
    """The turns of a stage at one end of a ring: the time of each, and the rows that it has made, or wants, by then."""

    times: tuple[float, ...]
    rows: tuple[int, ...]

    @property
    def largest(self) -> int:
        """The most rows that come at once."""
        return max(b - a for a, b in zip((0, *self.rows), self.rows, strict=False))


def pushed_steps(plan: Plan, tensor: str, time: float) -> RowSteps:
    """The producer's last stage: rows made after each turn, none where it makes none."""
    maker = plan.network.producers[tensor].name
    return _steps(
        plan,
        len(plan.program.stages) - 1,
        time,
        lambda step: step.region.bounds[ROWS][1] if step.layer == maker else 0,
    )


def pulled_steps(plan: Plan, tensor: str, time: float) -> RowSteps:
    """The reader's first stage: rows that each turn wants. An error where it does not want all of them."""

    def wanted(step: Step) -> int:
        layer = plan.network.by_name[step.layer]
        needs = zip(layer.inputs, plan.program.needs(step), strict=True)
        return max((region.bounds[ROWS][1] for name, region in needs if name == tensor), default=0)

    found = _steps(plan, 0, time, wanted)
    if found.rows[-1] != plan.network.tensors[tensor].shape[ROWS]:
        raise Infeasible(f"rows of '{tensor}' are left unread: it cannot cross in a ring")
    return found


def _steps(plan: Plan, stage: int, time: float, rows: Callable[[Step], int]) -> RowSteps:
    """Each turn takes its share of the stage's time: by its multiply-accumulates and what it writes."""
    work, ends = [], []
    for turn in plan.program.turns(plan.program.stages[stage]):
        layers = [plan.network.by_name[step.layer] for step in turn]
        macs = (layer.op.macs(s.region, plan.network.shapes(layer)) for s, layer in zip(turn, layers, strict=True))
        work.append(sum(macs) + sum(step.region.size for step in turn))
        ends.append(max((rows(step) for step in turn), default=0))
    return RowSteps(tuple(time * part / max(1, sum(work)) for part in work), tuple(accumulate(ends, max)))


@dataclass(frozen=True)
class RingPace:
    """Two partitions at the ends of a ring, each on a core of its own."""

    early: float  # before the producer makes rows
    pushed: RowSteps
    pulled: RowSteps
    late: tuple[float, ...]  # stages of the reader that follow

    @classmethod
    def of(cls, crossing: CrossingTensor, plans: Mapping[str, Plan], times: Mapping[str, Sequence[float]]) -> RingPace:
        (source, made), ((reader, read),) = crossing.source, crossing.readers
        *early, last = times[source]
        first, *late = times[reader]
        pushed, pulled = pushed_steps(plans[source], made, last), pulled_steps(plans[reader], read, first)
        return cls(sum(early), pushed, pulled, tuple(late))

    def settled(self, is_hasty: bool = False) -> tuple[int, int]:
        """Rows of the smallest ring, and the last stage at whose end the next frame may begin, that cost little.

        The stage is -1 where the producer begins as soon as the reader has, as it always does in haste: nothing is
        shared between them then.
        """
        best = self.period(self.pushed.rows[-1])
        alone = max(self.early + sum(self.pushed.times), sum(self.pulled.times) + sum(self.late))
        small = best * (1 + LOSS) if is_hasty else max(best * (1 + LOSS), alone * (1 + SMALL))
        low, high = self.pushed.largest, self.pushed.rows[-1]
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.period(middle) <= small else (middle + 1, high)
        shared = max(self.period(low) * (1 + LOSS), alone * (1 + SHARED))
        stages = reversed(range(len(self.late) + 1)) if not is_hasty else ()
        return low, next((stage for stage in stages if self.period(low, stage) <= shared), -1)

    def period(self, rows: int, freed: int = -1) -> float:
        """Between two frames in the long run, with so many rows in the ring; for ever where nothing goes on."""
        ends, producer, reader, begin, taken = [], 0.0, 0.0, 0.0, 0.0
        for _ in range(FRAMES):
            frame = self._frame(rows, max(producer, begin) + self.early, reader, taken)
            if frame is None:
                return NEVER
            producer, taken, pulled = frame
            reader = pulled + sum(self.late)
            begin = pulled + sum(self.late[:freed]) if freed >= 0 else 0.0
            ends.append(reader)
        half = FRAMES // 2
        return (ends[-1] - ends[half - 1]) / (FRAMES - half)

    def _frame(self, rows: int, producer: float, reader: float, before: float) -> tuple[float, float, float] | None:
        """When the last row has been made and taken, and the reader is done with it; `before`: of the last frame."""
        made, taken = [0.0], [before]  # when each number of rows was there, and was taken
        push = pull = 0
        while push < len(self.pushed.rows) or pull < len(self.pulled.rows):
            at = push, pull
            while push < len(self.pushed.rows) and self.pushed.rows[push] - rows < len(taken):
                stop = self.pushed.rows[push]
                room = taken[max(0, stop - rows)] if stop >= len(made) else 0.0
                producer = max(producer, room) + self.pushed.times[push]
                made += [producer] * (stop + 1 - len(made))
                push += 1
            while pull < len(self.pulled.rows) and self.pulled.rows[pull] < len(made):
                want = self.pulled.rows[pull]
                reader = max(reader, made[want])
                taken += [reader] * (want + 1 - len(taken))
                reader += self.pulled.times[pull]
                pull += 1
            if (push, pull) == at:
                return None
        return producer, taken[-1], reader
