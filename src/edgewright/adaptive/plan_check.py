"""The judge of transitions between real plans, byte by byte and for all arrival times and speeds at once.

It follows the plans' own steps (`program.byte_trace`). It shares no code with `planned`, and uses only what the
transition promises: how many old steps have ended when a new one starts, and the switch points at which the new
scenario may run first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..network import Array
from ..program.byte_trace import START, ByteTrace, Touch
from ..program.places import cells_of
from ..program.switching import SwitchPolicy
from .planned import PlannedPart, PlannedScenario
from .steps import ScenarioStep
from .transition import Transition


@dataclass(frozen=True)
class TracedScenario:
    """The bytes that each step of a scenario reads and writes, from its plans' steps."""

    planned: PlannedScenario

    @cached_property
    def touches(self) -> tuple[tuple[tuple[PlannedPart, Touch], ...], ...]:
        """The accesses of each step, in the order of the scenario."""
        found: list[list[tuple[PlannedPart, Touch]]] = [[] for _ in self.planned.labels]
        steps: dict[tuple[int, int], list[int]] = {}  # of each stage of each part
        for at, (number, stage, _) in enumerate(self.planned.labels):
            steps.setdefault((number, stage), []).append(at)
        for number, part in enumerate(self.planned.parts):
            stages = len(part.plan.program.stages)
            for turn in ByteTrace(part.plan, part.turns.filled).turns:
                own = steps[number, min(max(turn.stage, 0), stages - 1)]
                if turn.stage in (START, stages) or len(own) == 1:
                    at = own[-1] if turn.stage == stages else own[0]
                else:
                    at = own[turn.number]
                found[at] += [(part, touch) for touch in turn.touches]
        return tuple(map(tuple, found))

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of each common memory that the scenario may touch."""
        sizes: dict[str, int] = {}
        for part in self.planned.parts:
            for memory, size in part.plan.memories.items():
                for common, base in part.places_of(memory):
                    sizes[common] = max(sizes.get(common, 0), base + size)
        return sizes

    def cells(self, memories: Mapping[str, Array], part: PlannedPart, touch: Touch) -> Iterator[tuple[str, Array]]:
        """The part of an array over common memories that an access covers."""
        for common, base in part.places_of(touch.memory):
            own = memories[common][base:]
            where = touch.where
            yield common, own[where] if isinstance(where, slice) else cells_of(own, where, touch.element)

    def last_steps(self, processor: int, sizes: Mapping[str, int], is_write: bool) -> dict[str, Array]:
        """For each byte, how many steps the processor has finished after its last access to the byte; 0: none.

        Accesses are writes only if `is_write`, otherwise reads too.
        """
        found = {memory: np.zeros(size, np.int32) for memory, size in sizes.items()}
        steps = self.planned.scenario.steps
        own = (at for at, step in enumerate(steps) if step.processor == processor)
        for count, at in enumerate(own, start=1):
            for part, touch in self.touches[at]:
                if touch.is_write or not is_write:
                    for _, cells in self.cells(found, part, touch):
                        cells[...] = count
        return found


def overwritten(old: TracedScenario, new: TracedScenario, transition: Transition) -> Iterator[str]:
    """The values that a switch may destroy, each as a sentence; none under `FINISH` and `ABORT`, where frames never
    overlap."""
    sizes = {x: max(each.sizes.get(x, 0) for each in (old, new)) for x in (*old.sizes, *new.sizes)}
    if transition.policy is SwitchPolicy.OVERLAP:
        yield from _unsafe_starts(old, new, transition, sizes)
    if transition.policy is SwitchPolicy.OVERTAKE:
        yield from _unsafe_points(old, new, transition.points, sizes)


def _unsafe_starts(
    old: TracedScenario, new: TracedScenario, transition: Transition, sizes: Mapping[str, int]
) -> Iterator[str]:
    """New steps that may run before an old step is done with their bytes or their processor."""
    steps, old_steps = new.planned.scenario.steps, old.planned.scenario.steps
    ended_before = _ended_before(new.planned.scenario.steps, transition.needs)
    for processor in range(1 + max(step.processor for step in old_steps)):
        queue = [step for step in old_steps if step.processor == processor]
        touched, written = (old.last_steps(processor, sizes, is_write) for is_write in (False, True))
        for at, step in enumerate(steps):
            ended = ended_before[at][processor]
            is_beside = (step.processor + transition.rotation) % transition.processors != processor
            if not is_beside and ended < len(queue):
                yield f"step '{step.name}' of '{new.planned.name}' takes a processor from '{old.planned.name}'"
            for part, touch in new.touches[at]:
                for memory, cells in new.cells(touched if touch.is_write else written, part, touch):
                    if cells.size and (count := int(cells.max())) > ended:
                        verb = "overwrites" if touch.is_write else "reads"
                        yield (
                            f"step '{step.name}' of '{new.planned.name}' {verb} bytes of '{memory}' in "
                            f"'{touch.buffer}' that step '{queue[count - 1].name}' of '{old.planned.name}' still uses"
                        )


def _ended_before(steps: Sequence[ScenarioStep], needs: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """For each new step, the old steps of each processor that have ended when it starts: those it needs, and those that
    earlier new steps needed."""
    found: list[tuple[int, ...]] = []
    for at, (step, counts) in enumerate(zip(steps, needs, strict=True)):
        same = [other for other in range(at) if steps[other].processor == step.processor]
        before = [found[other] for other in (*step.after, *same[-1:])]
        found.append(tuple(map(max, zip(*before, counts, strict=True))))
    return found


def _unsafe_points(
    old: TracedScenario, new: TracedScenario, points: Collection[int], sizes: Mapping[str, int]
) -> Iterator[str]:
    """Switch points at which the new scenario overwrites what the old frame reads after it resumes."""
    live, written = ({memory: np.zeros(size, bool) for memory, size in sizes.items()} for _ in range(2))
    for touches in new.touches:
        for part, touch in touches:
            if touch.is_write:
                for _, cells in new.cells(written, part, touch):
                    cells[...] = True
    steps = old.planned.scenario.steps
    for count in range(len(steps), 0, -1):
        if count in points:
            for memory, mask in live.items():
                if (clash := mask & written[memory]).any():
                    yield (
                        f"'{new.planned.name}' overwrites byte {int(clash.argmax())} of '{memory}', which "
                        f"'{old.planned.name}' needs when it goes on after step '{steps[count - 1].name}'"
                    )
        for part, touch in reversed(old.touches[count - 1]):
            for _, cells in old.cells(live, part, touch):
                cells[...] = not touch.is_write
