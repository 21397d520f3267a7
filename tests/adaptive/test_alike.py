"""Slices of one network as scenarios: the same groups of layers, in pieces of the same rows, where memory allows."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from edgewright.adaptive.alike import common_turns, in_groups_of
from edgewright.adaptive.deploying import MOST_LARGER, SwitchingApplication, with_policy
from edgewright.adaptive.scenarios import AdaptiveApplication, scenario_plan, scenario_request
from edgewright.fusion.timing import TimedPlan, Timing
from edgewright.network import random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Binary
from edgewright.platform.target import TARGETS
from edgewright.program import FusionSchedule, Plan, faults
from edgewright.program.interpreter import interpret
from edgewright.program.switching import SwitchPolicy
from tests.helpers.nested_networks import early_exit, narrowed, scenarios_of
from tests.program.test_nested_weights import WIDTHS, whole

TARGET = TARGETS["cortex-m4"]


@cache
def application(keys: str) -> AdaptiveApplication:
    with TemporaryDirectory() as folder:
        return scenarios_of([narrowed(whole(), width) for width in WIDTHS[::2]], TARGET.name, Path(folder), keys)


@cache
def own_plans(keys: str) -> list[Plan]:
    return [scenario_plan(application(keys), one) for one in application(keys).scenarios]


def plans(keys: str, policy: SwitchPolicy) -> list[Plan]:
    one = SwitchingApplication(with_policy(application(keys), policy), policy)
    return [planned.plan for planned in one.plans]


def groups(plan: Plan) -> list[FusionSchedule]:
    return [stage.schedule for stage in plan.program.stages]


def streams(plan: Plan) -> list[FusionSchedule]:
    return [schedule for schedule in groups(plan) if schedule.streamed]


def test_streams_have_the_groups_of_the_largest_within_its_memory() -> None:
    largest, *others = plans("phases = true", SwitchPolicy.ABORT)
    own = own_plans("phases = true")
    assert streams(largest) and any(streams(plan) != streams(largest) for plan in own[1:])
    for plan in (largest, *others):
        assert streams(plan) == streams(largest)
        assert plan.peak_bytes <= own[0].peak_bytes and next(faults(plan), None) is None
    for scenario, plan in zip(application("phases = true").scenarios, (largest, *others), strict=True):
        inputs = random_inputs(scenario.network)
        found = interpret(plan, inputs)
        for name, values in execute(scenario.network, inputs).items():
            assert (found[name] == values).all()


def test_frames_that_wait_in_memory_take_little_more() -> None:
    found = plans("phases = true", SwitchPolicy.OVERTAKE)
    for plan, alone in zip(found, own_plans("phases = true"), strict=True):
        assert plan.peak_bytes <= MOST_LARGER * alone.peak_bytes


@pytest.mark.parametrize("policy", [SwitchPolicy.ABORT, SwitchPolicy.FINISH])
def test_pieces_are_those_of_the_scenario_that_needs_most(policy: SwitchPolicy) -> None:
    divided = [{one.layers: one.splits for one in groups(plan) if one.splits} for plan in plans("", policy)]
    assert bool(divided[0]) == (policy is SwitchPolicy.ABORT)
    for layers in set(divided[0]) & set(divided[1]):
        rows = [{(split.axis, len(split.ends)) for split in one[layers]} for one in divided]
        assert rows[0] == rows[1]


def test_no_piece_is_longer_than_its_share() -> None:
    bare = own_plans("")
    common = common_turns(bare, TARGET, 0.1)
    for plan in bare:
        timed = TimedPlan(plan, Timing(TARGET, vectors=True).costs(plan.network))
        for stage, time in zip(plan.program.stages, timed.stages, strict=True):
            assert time / common[stage.schedule.layers[-1]] <= 0.1 * timed.total
    sums = {common[layer.name] for layer in bare[0].network.layers if isinstance(layer.op, Binary)}
    assert max(sums) == 1 or min(sums) > 1


def test_plans_stay_where_groups_do_not_fit() -> None:
    """No memory for them, and layers that the network lacks."""
    larger, own = own_plans("phases = true")
    small = application("phases = true").scenarios[-1]
    request = scenario_request(application("phases = true"), small)
    assert in_groups_of(larger, own, small.network, request, own.peak_bytes - 1, None, TARGET) is own
    assert in_groups_of(larger, own, early_exit(whole(), 2), request, 1 << 20, None, TARGET) is own
