"""Pages of plans over clusters: their figures are those of the plan, and pictures and tables agree."""

import pytest

from edgewright import read_model, samples
from edgewright.cluster.devices import equal_devices
from edgewright.cluster.goal import ClusterGoal
from edgewright.cluster.planning import ClusterPlanner


@pytest.fixture(scope="module")
def planner():
    return ClusterPlanner(read_model(samples.build("lenet5")), ClusterGoal())


@pytest.fixture(scope="module")
def plan(planner):
    return planner.realised(planner.plan(equal_devices(3)))


def test_memory_by_purpose_adds_up(plan):
    assert {name: parts.total for name, parts in plan.memory_parts.items()} == dict(plan.memory)
    assert sum(parts.weights for parts in plan.memory_parts.values()) > 0.9 * plan.found.costs.weights_bytes
    assert [name for name, parts in plan.memory_parts.items() if parts.replay] == [plan.cluster.gateway]
