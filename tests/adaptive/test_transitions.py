"""Transitions between scenarios: the paper's example, random scenarios against brute force, and the judge."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pytest

from edgewright.adaptive.steps import CellGrid, Scenario, ScenarioStep
from edgewright.adaptive.switch_check import hazards
from edgewright.adaptive.transition import Transition, transition
from edgewright.errors import InputError
from edgewright.program.switching import SwitchPolicy
from tests.adaptive.random_scenarios import random_scenario

OVERLAP, FINISH, ABORT, OVERTAKE = SwitchPolicy.OVERLAP, SwitchPolicy.FINISH, SwitchPolicy.ABORT, SwitchPolicy.OVERTAKE
TIMES = {"l1": 1, "l2": 2, "l3": 4, "l4": 2, "l5": 1, "l6": 1}
ONE = ("l1", "e12", "l2", "e24", "l4", "e45", "l5", "e56", "l6")
TWO = ("l1", "e12", "l2", "e23", "l3", "e34", "l4", "e45", "l5", "e56", "l6")


class Cells:
    """A cell for every name."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.known.setdefault(name, 1 << len(self.known))


def chain(chain: Sequence[str], cells: Cells, twice: Sequence[str] = (), is_exclusive: bool = True) -> Scenario:
    """A chain of layers and edges of M fig. 5.3. Edges in `twice` have a buffer of the scenario's own; where layers are
    exclusive, a layer serves one scenario at a time, as if it wrote a byte of its own."""
    steps = []
    name = f"{len(chain) // 2 + 1} layers"
    edges = [f"{edge} of {name}" if edge in twice else edge for edge in chain[1::2]]
    for at, layer in enumerate(chain[::2]):
        read = cells[edges[at - 1]] if at else 0
        write = (cells[edges[at]] if at < len(edges) else 0) | (cells[layer] if is_exclusive else 0)
        named = tuple((edge, cells[edge]) for edge in edges[max(0, at - 1) : at + 1])
        steps.append(ScenarioStep(layer, TIMES[layer], 0, (), read, write, named))
    return Scenario(name, tuple(steps))


def pair(old: Sequence[str], new: Sequence[str], twice: Sequence[str] = (), is_exclusive: bool = True) -> Transition:
    cells = Cells()
    both = [chain(each, cells, twice, is_exclusive) for each in (old, new)]
    return transition(*both, OVERLAP, processors=2)


@pytest.mark.parametrize(
    ("old", "new", "twice", "exclusive", "shared"),
    [
        (ONE, TWO, (), 13.5, 13.5),
        (ONE, TWO, ("e12",), 12.5, 11.0),
        (TWO, ONE, (), 13.5, 13.5),
        (TWO, ONE, ("e45", "e56"), 12.5, 9.5),
        (TWO, ONE, ("e12", "e45", "e56"), 12.5, 7.0),
    ],
)
def test_delays_of_the_example(old, new, twice, exclusive, shared):
    """M fig. 5.5 without barriers, for the layer times given above: with layers that serve one scenario or both."""
    assert pair(old, new, twice).delay(0.5) == exclusive
    assert pair(old, new, twice, is_exclusive=False).delay(0.5) == shared


def test_arrivals_in_each_step_of_the_example():
    for old, new, naive in (
        (ONE, TWO, [17.5, 16.5, 14.5, 12.5, 11.5]),
        (TWO, ONE, [17.5, 16.5, 14.5, 10.5, 8.5, 7.5]),
    ):
        one = pair(old, new)
        arrivals = [start + 0.5 for start in one.old.starts]
        assert [replace(one, policy=FINISH).delay(at) for at in arrivals] == naive
        assert all(one.delay(at) <= delay for at, delay in zip(arrivals, naive, strict=True))


def test_waits_name_the_buffer_that_is_overwritten():
    one = pair(ONE, TWO, is_exclusive=False)
    assert one.needs == ((2,), (0,), (0,), (4,), (5,), (0,))
    free = pair(ONE, TWO, ("e12",), is_exclusive=False)
    assert [wait and (wait.old_step, wait.buffer) for wait in one.waits] == [
        (1, "e12"), None, None, (3, "e45"), (4, "e56"), None,
    ]  # fmt: skip
    assert [wait.buffer for wait in free.waits if wait] == ["e45", "e56"]


def test_worst_delay_of_the_example():
    one = pair(ONE, TWO)
    assert one.worst_delay == 14.0  # request as the frame begins
    assert replace(one, policy=FINISH).worst_delay == 18
    assert replace(one, policy=ABORT).worst_delay == 2 + 11  # as l2 or l4 begins


def test_a_scenario_waits_for_its_processor_alone_where_no_bytes_are_shared():
    old = Scenario("old", (ScenarioStep("a", 4, 0, (), 0, 1), ScenarioStep("b", 3, 1, (0,), 1, 2)))
    new = Scenario("new", (ScenarioStep("c", 2, 0, (), 0, 4), ScenarioStep("d", 5, 1, (0,), 4, 8)))
    assert transition(old, new, OVERLAP, 3).rotation == 2  # on the free one, then on the first
    assert transition(old, new, OVERLAP, 3).delay(0) == 4 + 5
    assert transition(old, new, OVERLAP, 2).delay(0) == 7 + 5  # c on the first, d on the second
    assert transition(old, new, OVERLAP, 4).delay(0) == 7


def starts_by_rule(one: Transition, arrival: int) -> list[int]:
    """When each new step starts if, at every moment, all start that may; all times are integers."""
    old, new = one.old, one.new
    starts: dict[int, int] = {}
    now = arrival
    while len(starts) < len(new.steps):
        ready = [at for at in range(len(new.steps)) if at not in starts and may_start(one, at, now, starts)]
        starts.update(dict.fromkeys(ready[:1], now))  # one by one: a step without a time lets the next one start
        now += not ready
        assert now <= old.latency + new.latency
    return [starts[at] for at in range(len(new.steps))]


def may_start(one: Transition, at: int, now: int, starts: Mapping[int, int]) -> bool:
    """The rule, word for word."""
    old, new = one.old, one.new
    step = new.steps[at]
    remaining = [each for each, end in zip(old.steps, old.ends, strict=True) if end > now]
    physical = (step.processor + one.rotation) % one.processors
    before = {*step.after, *(other for other in range(at) if new.steps[other].processor == step.processor)}
    return (
        all(other in starts and starts[other] + new.steps[other].time <= now for other in before)
        and not any(each.processor == physical for each in remaining)
        and not any(each.touches & step.writes for each in remaining)
    )


def test_steps_start_as_soon_as_the_rule_allows():
    rng = random.Random(4)
    for _ in range(300):
        processors = rng.randint(2, 4)
        old, new = (random_scenario(rng, name, processors) for name in "on")
        one = transition(old, new, OVERLAP, processors)
        arrival = rng.randrange(int(old.interval) + 1)
        assert list(one.starts(arrival)) == starts_by_rule(one, arrival)


def test_no_start_times_that_keep_the_rule_are_better():
    """Over all start times of small scenarios: those that keep the rule have no hazard, and none ends earlier."""
    rng = random.Random(5)
    for _ in range(25):
        old, new = random_scenario(rng, "o", 2, 4), random_scenario(rng, "n", 2, 3)
        one = transition(old, new, OVERLAP, 2)
        timeline = one.timeline(0)
        best = timeline.delay
        horizon = range(int(min(old.latency, 12)) + 1)
        for starts in product(*([start + by for by in horizon] for start in new.starts)):
            known = dict(enumerate(starts))
            if all(may_start(one, at, start, known) for at, start in known.items()):
                best = min(best, max(start + step.time for start, step in zip(starts, new.steps, strict=True)))
                moved = [replace(run, start=starts[run.step], end=starts[run.step] + run.end - run.start)
                         if run.is_new else run for run in timeline.runs]  # fmt: skip
                in_order = sorted(moved, key=lambda run: (run.start, run.end))
                assert not list(hazards(replace(timeline, runs=tuple(in_order))))
        assert best == timeline.delay == one.delay(0)


@pytest.mark.parametrize("policy", list(SwitchPolicy))
def test_random_switches_are_safe_and_never_slower(policy):
    rng = random.Random(6)
    faster = 0
    for _ in range(300):
        processors = rng.randint(2, 4) if policy is OVERLAP else 1 if policy is OVERTAKE else rng.randint(1, 4)
        old, new = (random_scenario(rng, name, processors) for name in "on")
        one = transition(old, new, policy, processors)
        arrivals = [n / 4 for n in range(int(old.interval * 4))] or [0]
        delays = [one.delay(arrival) for arrival in arrivals]
        assert max(delays) == one.worst_delay
        for arrival, delay in rng.sample([*zip(arrivals, delays, strict=True)], min(4, len(arrivals))):
            timeline = one.timeline(arrival)
            assert not list(hazards(timeline))
            assert timeline.delay == delay <= old.latency - arrival + new.latency
            faster += delay < old.latency - arrival + new.latency
    assert (faster > 100) is (policy is not FINISH)


def test_the_judge_sees_a_step_that_starts_too_early():
    one = pair(ONE, TWO, is_exclusive=False)
    for at, (count,) in enumerate(one.needs):
        if not count:
            continue
        early = replace(one, needs=(*one.needs[:at], (count - 1,), *one.needs[at + 1 :]))
        found = [message for arrival in (0, 0.5, 2) for message in hazards(early.timeline(arrival))]
        is_bound = one.starts(0)[at] == one.old.ends_by_count[0][count]
        assert bool(found) is is_bound, (at, found)


def test_the_judge_sees_values_that_are_lost():
    cells = Cells()
    old, new = chain(ONE, cells, is_exclusive=False), chain(TWO, cells, is_exclusive=False)
    wrong = replace(transition(old, new, OVERTAKE), points=(1, 5))  # e12 lives after l1
    assert "step 'l2' of '5 layers' reads bytes that '6 layers' has overwritten" in list(hazards(wrong.timeline(0)))
    right = transition(old, new, OVERLAP, 2).timeline(0)
    first, second, *_ = (run for run in right.runs if run.is_new)
    swapped = [run for run in right.runs if not run.is_new]
    swapped += [replace(second, start=0, end=2), replace(first, start=1.5, end=2)]
    found = list(hazards(replace(right, runs=tuple(sorted(swapped, key=lambda run: run.start)))))
    for message in (
        "step 'l1' of '6 layers' does not take its time",
        "step 'l1' of '6 layers' is out of order",
        "step 'l1' of '6 layers' starts before what it comes after has ended",
        "'6 layers' leaves out 4 of its steps",
        "step 'l2' of '6 layers' reads bytes that '6 layers' has not written",
        "step 'l1' of '6 layers' and step 'l2' of '6 layers' run on processor 1 at the same time",
        "step 'l1' of '6 layers' and step 'l2' of '5 layers' race for the same bytes",
    ):
        assert message in found


def test_bad_input_is_refused():
    cells = Cells()
    old, new = chain(ONE, cells), chain(TWO, cells)
    with pytest.raises(InputError, match=r'"overlap" gains nothing on one processor.*processors = 2'):
        transition(old, new, OVERLAP, 1)
    both = replace(new, steps=(*new.steps[:-1], replace(new.steps[-1], processor=1, after=(4,))))
    with pytest.raises(InputError, match="take 2 processors, and there are 1"):
        transition(old, both, FINISH)
    with pytest.raises(InputError, match="'6 layers' runs on 2"):
        transition(both, old, OVERTAKE, 2)
    with pytest.raises(InputError, match="has no steps"):
        Scenario("empty", ())
    with pytest.raises(InputError, match="cannot begin a frame every 3: a processor is in use for 10"):
        replace(both, period=3)
    with pytest.raises(InputError, match="may only come after earlier steps"):
        Scenario("circle", (ScenarioStep("a", 1, 0, (0,), 0, 0),))


def test_cells_are_the_pieces_between_all_ends():
    grid = CellGrid.of([("ram", 0, 10), ("ram", 4, 8), ("slow", 0, 4), ("ram", 8, 8)])
    spans = (("ram", 0, 10), ("ram", 4, 8), ("slow", 0, 4), ("ram", 8, 8))
    assert [grid.mask(span) for span in spans] == [0b111, 0b10, 0b1000, 0]
