"""Transitions between real plans: the steps made of them, the judge byte by byte, layouts for delay limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise, permutations

import numpy as np
import pytest

from edgewright import samples
from edgewright.adaptive.front import SwitchFront, SwitchLayout
from edgewright.adaptive.plan_check import TracedScenario, overwritten
from edgewright.adaptive.plan_turns import Hulls, PlanTurns
from edgewright.adaptive.planned import PlannedPart, PlannedScenario, parts_of_deployment, planned_scenarios
from edgewright.adaptive.switch_check import hazards
from edgewright.adaptive.switch_conflicts import ScenarioPlan
from edgewright.adaptive.transition import transition
from edgewright.application.preemption_points import RunPieces, turns_needed, with_turns
from edgewright.emit.library import emit
from edgewright.emit.native import build
from edgewright.errors import InputError
from edgewright.fusion.request import PlanRequest, make_plan
from edgewright.fusion.timing import TimedPlan, Timing
from edgewright.memory.deploy import PartRequest, deploy, plan_in_slots
from edgewright.memory.joint.layout import with_buffers
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.read import read_bytes
from edgewright.platform.target import TARGETS
from edgewright.program import Plan, Sweep, faults
from edgewright.program.deployment import Deployment, Worker
from edgewright.program.deployment_memory import laid_out
from edgewright.program.interpreter import interpret
from edgewright.program.switching import SwitchPolicy
from tests.helpers.random_programs import random_program

OVERLAP, FINISH, ABORT, OVERTAKE = SwitchPolicy.OVERLAP, SwitchPolicy.FINISH, SwitchPolicy.ABORT, SwitchPolicy.OVERTAKE
NAMES = ("resnet8", "ds_cnn_int8", "tiny_densenet")


@cache
def network(name: str) -> Network:
    return read_bytes(samples.build(name).SerializeToString(), name)


@cache
def timed(name: str, request: PlanRequest | None = None, is_by_rows: bool = True) -> ScenarioPlan:
    """A sample planned, with long layers by rows, and timed at one instruction per cycle of 100 MHz."""
    plan = make_plan(network(name), request or PlanRequest())
    costs = Timing("cortex-m4").costs(plan.network)
    plan = with_turns(plan, turns_needed(plan, TimedPlan(plan, costs))) if is_by_rows else plan
    return ScenarioPlan(name, plan, RunPieces.of(TimedPlan(plan, costs), 1e-8))


def planned(*plans: ScenarioPlan) -> dict[str, PlannedScenario]:
    return planned_scenarios({one.name: [PlannedPart(one.name, one.plan, one.turns)] for one in plans})


def wrongs(old: PlannedScenario, new: PlannedScenario, policy: SwitchPolicy) -> list[str]:
    one = transition(old.scenario, new.scenario, policy, 2 if policy is OVERLAP else 1)
    return list(overwritten(TracedScenario(old), TracedScenario(new), one))


def moved(scenario: ScenarioPlan, change: Callable[[str, int], int]) -> ScenarioPlan:
    """The plan with its buffers at other addresses."""
    buffers = tuple(replace(b, offset=change(b.name, b.offset)) for b in scenario.plan.buffers)
    return replace(scenario, plan=with_buffers(scenario.plan, buffers))


def test_long_layers_in_place_are_divided() -> None:
    """Layers that go from the last row to the first and those that go channel by channel, with the same results."""
    one = timed("ds_cnn_int8")
    divided = {stage.sweep for stage in one.plan.program.stages if stage.schedule.splits}
    assert divided == {Sweep.FORWARD, Sweep.BACKWARD, Sweep.CHANNELS}
    assert max(turn.time for turn in one.turns.turns) <= 0.02 * one.time
    assert next(faults(one.plan), None) is None
    inputs = random_inputs(one.plan.network)
    expected = execute(network("ds_cnn_int8"), inputs)
    libraries = [emit(one.plan, TARGETS[target]) for target in ("cortex-m4", "rv32imc")]
    for found in (interpret(one.plan, inputs), *(build(library).run(inputs) for library in libraries)):
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)


REQUESTS = {
    "whole layers": PlanRequest(),
    "plain": PlanRequest(plain=True),
    "phases": PlanRequest(phases=True),
    "phases, pulled": PlanRequest(phases=True, pull_rows=True),
    "searched": PlanRequest(minimise_ram=True, max_overhead=0.2),
    "lanes": PlanRequest(lanes=2),
}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_the_judge_agrees_with_the_steps_of_every_kind_of_plan(request_name):
    one = timed("ds_cnn_int8", REQUESTS[request_name], is_by_rows=request_name == "whole layers")
    other = replace(timed("resnet8"), name="other")
    both = planned(one, other)
    for old, new in permutations(both.values(), 2):
        assert old.scenario.latency == pytest.approx(one.pieces.total if old is both[one.name] else other.pieces.total)
        for policy in SwitchPolicy:
            assert wrongs(old, new, policy) == []


@pytest.mark.parametrize("is_by_rows", [True, False])
def test_steps_are_turns_or_stages(is_by_rows):
    one = timed("resnet8")
    turns = PlanTurns.of(one.plan, one.pieces.stages, is_by_rows)
    stages = len(one.plan.program.stages)
    assert len(turns.turns) == stages if not is_by_rows else len(turns.turns) > 3 * stages
    assert sum(turn.time for turn in turns.turns) == pytest.approx(one.pieces.total)
    scenarios = planned_scenarios({"a": [PlannedPart("a", one.plan, turns)], "b": [PlannedPart("b", one.plan, turns)]})
    for policy in SwitchPolicy:
        assert wrongs(scenarios["a"], scenarios["b"], policy) == []


def test_plans_side_by_side_never_wait():
    one, other = timed("resnet8"), timed("ds_cnn_int8")
    both = planned(one, moved(other, lambda name, at: at + one.plan.peak_bytes))
    for old, new in permutations(both.values(), 2):
        assert transition(old.scenario, new.scenario, OVERLAP, 2).worst_delay == new.scenario.latency
        points = transition(old.scenario, new.scenario, OVERTAKE).points
        assert points == tuple(range(1, len(old.scenario.steps) + 1))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_steps_cover_every_byte_of_the_trace(first):
    """Random programs: all kinds of tiles, rows in windows, sums in parts."""
    turns = 0
    for seed in range(first, first + 20):
        plan = random_program(seed).plan
        if not plan.program.stages:
            continue
        counts = [1 if stage.schedule.lanes > 1 else len([*plan.program.turns(stage)]) for stage in plan.program.stages]
        pieces = [(1.0,) * count + (0.5,) * (count > 1) for count in counts]
        part = PlannedPart("a", plan, PlanTurns.of(plan, pieces))
        traced = TracedScenario(planned_scenarios({"a": [part]})["a"])
        live = {memory: np.zeros(size, bool) for memory, size in traced.sizes.items()}
        for turn, touches in [*zip(part.turns.turns, traced.touches, strict=True)][::-1]:
            covered = {True: marked(traced, part, turn.writes), False: marked(traced, part, turn.reads)}
            kept = marked(traced, part, turn.live)
            assert not any((live[memory] & ~kept[memory]).any() for memory in live)
            for _, touch in touches[::-1]:
                if touch.memory in plan.arenas:
                    for _, cells in traced.cells(covered[touch.is_write], part, touch):
                        assert cells.all(), (seed, turn.stage, turn.turn, touch)
                    for _, cells in traced.cells(live, part, touch):
                        cells[...] = not touch.is_write
            turns += 1
    assert turns > 100


def marked(traced: TracedScenario, part: PlannedPart, hulls: Hulls) -> dict[str, np.ndarray]:
    masks = {memory: np.zeros(size, bool) for memory, size in traced.sizes.items()}
    for _, (memory, low, high) in part.spans(hulls):
        masks[memory][low:high] = True
    return masks


@cache
def front(policy: SwitchPolicy, names: tuple[str, ...] = NAMES) -> tuple[SwitchLayout, ...]:
    return SwitchFront([timed(name) for name in names], policy, 2 if policy is OVERLAP else 1).points(4)


@pytest.mark.parametrize("policy", [FINISH, ABORT])
def test_scenarios_that_never_meet_take_the_largest_plan(policy):
    (point,) = front(policy)
    largest = max(timed(name).plan.peak_bytes for name in NAMES)
    assert point.arena_bytes == point.bound_bytes == largest
    assert all(point.plans[name].buffers == timed(name).plan.buffers for name in NAMES)
    longest = sorted((timed(name).time for name in NAMES), reverse=True)
    if policy is FINISH:
        assert point.worst_delay == pytest.approx(longest[0] + longest[1])
    else:
        turns = {name: max(turn.time for turn in timed(name).turns.turns) for name in NAMES}
        waits = {(old, new): turns[old] + timed(new).time for old, new in permutations(NAMES, 2)}
        assert point.delays == pytest.approx(waits)


@pytest.mark.parametrize("policy", [OVERLAP, OVERTAKE])
def test_larger_arenas_switch_faster(policy):
    points = front(policy)
    plans = [timed(name) for name in NAMES]
    times = {one.name: one.time for one in plans}
    sizes = [point.arena_bytes for point in points]
    delays = [point.worst_delay for point in points]
    assert len(points) >= 3
    assert sizes == sorted(sizes, reverse=True) and delays == sorted(delays)
    assert sizes[-1] == max(one.plan.peak_bytes for one in plans)
    assert sizes[0] <= sum(one.plan.peak_bytes for one in plans)
    if policy is OVERLAP:
        assert delays[0] == pytest.approx(max(times.values()))
    for point in points:
        for (old, new), delay in point.delays.items():
            assert times[new] * (1 - 1e-9) <= delay <= (times[old] + times[new]) * (1 + 1e-9)
            allowed = max(point.limit, times[new]) if policy is OVERLAP else point.limit + times[new]
            assert delay <= allowed * (1 + 1e-9)
        for plan in point.plans.values():
            assert next(faults(plan), None) is None


def test_the_fastest_layout_waits_no_longer_than_each_plan_must():
    plans = [timed("resnet8"), timed("tiny_densenet")]
    for (old, _), one in SwitchFront(plans, OVERTAKE).fastest_within().transitions.items():
        (plan,) = (plan for plan in plans if plan.name == old)
        times = [plan.ends[count] for count in (0, *one.points)]
        assert max(later - former for former, later in pairwise(times)) <= plan.least_wait * (1 + 1e-9)


def test_timelines_of_real_plans_pass_the_replay():
    point = front(OVERLAP)[0]
    for one in point.transitions.values():
        for arrival in one.old.critical_arrivals[:: max(1, len(one.old.critical_arrivals) // 3)]:
            timeline = one.timeline(arrival)
            assert list(hazards(timeline)) == []
            assert timeline.delay == pytest.approx(one.delay(arrival))


def test_the_judge_sees_a_buffer_that_was_shifted():
    """Transitions of a layout, judged for plans of which one buffer lies elsewhere."""
    point = front(OVERLAP)[0]  # all run side by side where they meet
    seen = 0
    for (old, new), one in point.transitions.items():
        part = point.scenarios[new].parts[0]
        victim = point.plans[old].buffers[-1]  # in use until the old frame ends
        first = min(part.plan.buffers, key=lambda b: b.first)
        buffers = tuple(replace(b, offset=victim.offset) if b is first else b for b in part.plan.buffers)
        shifted = replace(part, plan=replace(part.plan, buffers=buffers))
        judged = replace(point.scenarios[new], parts=(shifted,))
        seen += bool(list(overwritten(TracedScenario(point.scenarios[old]), TracedScenario(judged), one)))
    assert seen == len(point.transitions)


def test_the_judge_sees_a_need_that_was_lowered():
    point = front(OVERLAP)[-1]
    (old, new), one = next((pair, one) for pair, one in point.transitions.items() if any(one.waits))
    traced = TracedScenario(point.scenarios[old]), TracedScenario(point.scenarios[new])
    tried = seen = 0
    highest = 0
    for at, (count,) in enumerate(one.needs):
        if count > highest:  # no earlier step waits for as much
            lowered = replace(one, needs=(*one.needs[:at], (count - 1,), *one.needs[at + 1 :]))
            tried, seen, highest = tried + 1, seen + any(overwritten(*traced, lowered)), count
    assert tried >= 1
    assert seen >= tried / 2  # buffers count as touched from the first byte to the last, which may be too careful


def test_the_judge_sees_a_switch_point_at_which_values_are_lost():
    point = front(OVERTAKE)[-1]  # in as little memory as possible
    one = point.transitions["resnet8", "tiny_densenet"]
    every = replace(one, points=tuple(range(1, len(one.old.steps) + 1)))
    traced = TracedScenario(point.scenarios["resnet8"]), TracedScenario(point.scenarios["tiny_densenet"])
    assert any("'resnet8' needs when it goes on" in message for message in overwritten(*traced, every))


def pipeline(name: str, cut: float, slots: int) -> Deployment:
    """A network in two parts on two cores."""
    net = network(name)
    layers = [layer.name for layer in net.layers]
    middle = round(cut * len(layers))
    requests = [PartRequest(f"{name}.1", tuple(layers[:middle])), PartRequest(f"{name}.2", tuple(layers[middle:]))]
    workers = [Worker(f"core{n}", "board", "cpu", (n,), (request.name,)) for n, request in enumerate(requests)]
    made = deploy(net, requests, workers, slots=slots, planner=plan_in_slots)
    return replace(made, arenas=laid_out(made))


def test_pipelines_switch_beside_each_other():
    pipelines = {"a": pipeline("resnet8", 0.4, 2), "b": pipeline("tiny_densenet", 0.6, 1)}
    parts = {
        name: parts_of_deployment(one, {part.name: pieces_of(part.plan) for part in one.parts if part.plan})
        for name, one in pipelines.items()
    }
    periods = {name: scenario.scenario.shortest_period for name, scenario in planned_scenarios(parts).items()}
    both = planned_scenarios(parts, periods)
    for old, new in permutations(both.values(), 2):
        assert old.scenario.processors == 2 and old.scenario.period < old.scenario.latency
        for policy in (FINISH, ABORT, OVERLAP):
            assert wrongs(old, new, policy) == [] if policy is OVERLAP else True
            one = transition(old.scenario, new.scenario, policy, 2)
            assert one.worst_delay <= old.scenario.latency + new.scenario.latency
            for arrival in (0, old.scenario.interval / 2):
                assert list(hazards(one.timeline(arrival))) == []
        eager = replace(transition(old.scenario, new.scenario, OVERLAP, 2))
        eager = replace(eager, needs=tuple((0, 0) for _ in eager.needs))
        found = list(overwritten(TracedScenario(old), TracedScenario(new), eager))
        assert any("takes a processor" in message for message in found)
        assert any("still uses" in message for message in found)


def test_parts_on_one_core_keep_what_later_parts_read():
    """What one part leaves in a slot for the next is live between them, whatever its own plan says."""
    two = pipeline("resnet8", 0.5, 1)
    one = replace(two, workers=(replace(two.workers[0], parts=tuple(part.name for part in two.parts)),))
    one = replace(one, arenas=laid_out(one))
    parts = parts_of_deployment(one, {part.name: pieces_of(part.plan) for part in one.parts if part.plan})
    other = timed("tiny_densenet")
    places = {"ram": ((parts[0].places_of("ram")[0][0], 0),)}
    both = planned_scenarios({"a": parts, "b": [PlannedPart("b", other.plan, other.turns, places=places)]})
    old, new = both["a"], both["b"]
    assert wrongs(old, new, OVERTAKE) == []
    middle = len(parts[0].turns.turns)
    every = replace(transition(old.scenario, new.scenario, OVERTAKE), points=(middle, len(old.scenario.steps)))
    assert middle not in transition(old.scenario, new.scenario, OVERTAKE).points
    assert len(list(overwritten(TracedScenario(old), TracedScenario(new), every))) == 1


def pieces_of(plan: Plan) -> tuple[tuple[float, ...], ...]:
    return RunPieces.of(TimedPlan(plan, Timing("cortex-m4").costs(plan.network)), 1e-8).stages


def test_what_cannot_be_laid_out_is_refused():
    one = timed("resnet8")
    with pytest.raises(InputError, match="two or more scenarios"):
        SwitchFront([one], FINISH)
    with pytest.raises(InputError, match="gains nothing on one processor"):
        SwitchFront([one, timed("tiny_densenet")], OVERLAP).points(2)
    replicas = replace(pipeline("resnet8", 0.5, 2))
    first = replicas.workers[0]
    two = (replace(first, replica=(0, 2)), replace(first, name="other", replica=(1, 2)))
    replicas = replace(replicas, workers=(*two, replicas.workers[1]))
    with pytest.raises(InputError, match=r"part 'resnet8.1' has 2 workers and a plan; .* map it without replicas"):
        parts_of_deployment(replicas, {part.name: pieces_of(part.plan) for part in replicas.parts if part.plan})
