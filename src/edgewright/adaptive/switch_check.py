"""The judge of a switch: replays its timeline with an owner for every byte. Shares no code with `transition`.

It gets the steps with their times and places, and assumes nothing: neither that steps find their inputs, nor that a
processor runs one step at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from .steps import Scenario, ScenarioStep
from .transition import StepRun, Timeline

ROUNDING = 1e-9  # relative tolerance for sums of floating-point times


def hazards(timeline: Timeline) -> Iterator[str]:
    """The errors in a switch, each as a sentence: overwritten values that are still read, races, wrong order."""
    sides = (timeline.transition.old, timeline.transition.new)
    runs = sorted(timeline.runs, key=lambda run: (run.start, run.end))  # stable: see `Timeline.runs`
    slack = ROUNDING * max(abs(run.end) for run in runs)
    yield from _disorder(timeline, sides, slack)
    written = [0, 0]  # by each scenario at any time
    owned = [0, 0]  # bytes whose last writer was each scenario
    running: list[StepRun] = []
    for run in runs:
        running = [other for other in running if other.end > run.start + slack]
        mine, other_side = int(run.is_new), int(not run.is_new)
        step = sides[mine].steps[run.step]
        for other in running:
            theirs = sides[other.is_new].steps[other.step]
            if other.processor == run.processor:
                yield f"{_name(sides, run)} and {_name(sides, other)} run on processor {run.processor} at the same time"
            if other.is_new is run.is_new:
                continue
            if step.writes & (theirs.reads | theirs.writes) or theirs.writes & step.reads:
                yield f"{_name(sides, run)} and {_name(sides, other)} race for the same bytes"
        if step.reads & written[mine] & owned[other_side]:
            yield f"{_name(sides, run)} reads bytes that '{sides[other_side].name}' has overwritten"
        if run.is_new and step.reads & ~written[mine] & ~step.writes:
            yield f"{_name(sides, run)} reads bytes that '{sides[mine].name}' has not written"
        written[mine] |= step.writes
        owned[mine] |= step.writes
        owned[other_side] &= ~step.writes
        running.append(run)


def _disorder(timeline: Timeline, sides: tuple[Scenario, Scenario], slack: float) -> Iterator[str]:
    """Steps of the new scenario that are missing, too early or too short."""
    new: dict[int, StepRun] = {}
    last: dict[int, StepRun] = {}  # of each processor of the scenario
    for run in timeline.runs:
        step: ScenarioStep = sides[run.is_new].steps[run.step]
        if abs(run.end - run.start - step.time) > slack:
            yield f"{_name(sides, run)} does not take its time"
        if not run.is_new:
            continue
        before = [new[at] for at in step.after if at in new]
        is_late = step.processor in last and last[step.processor].step >= run.step
        if is_late or len(before) < len(step.after):
            yield f"{_name(sides, run)} is out of order"
        if step.processor in last:
            before.append(last[step.processor])
        if run.start < timeline.arrival - slack or any(other.end > run.start + slack for other in before):
            yield f"{_name(sides, run)} starts before what it comes after has ended"
        new[run.step] = last[step.processor] = run
    if len(new) < len(sides[1].steps):
        yield f"'{sides[1].name}' leaves out {len(sides[1].steps) - len(new)} of its steps"


def _name(sides: tuple[Scenario, Scenario], run: StepRun) -> str:
    scenario = sides[run.is_new]
    return f"step '{scenario.steps[run.step].name}' of '{scenario.name}'"
