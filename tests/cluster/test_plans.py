"""Plans over clusters: judged byte by byte, counted again from their FIFOs, beside all divisions of tiny networks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest

from edgewright.cluster.costs import DivisionCosts
from edgewright.cluster.deploying import ClusterDeployment, deployed
from edgewright.cluster.devices import GIGABIT, Cluster, ClusterDevice, equal_devices
from edgewright.cluster.division import Division, DivisionSegment, SegmentSplit
from edgewright.cluster.goal import ClusterAim, ClusterGoal
from edgewright.cluster.hybrid import FoundDivision, UnitChoice, best_division, division_of
from edgewright.cluster.judge import cluster_errors
from edgewright.cluster.pacing import StageStep, shared_period
from edgewright.cluster.simulation import simulate
from edgewright.cluster.strategies import Strategies
from edgewright.errors import Infeasible
from edgewright.network import Builder, Network
from edgewright.network.operators import Conv2d, Dense, MaxPool2d, Reduce, Reshape
from edgewright.program.deployment import OUTSIDE, Fifo
from edgewright.program.deployment_check import deployment_faults
from edgewright.program.deployment_memory import weights
from edgewright.program.deployment_run import deployment_errors
from tests.cluster.tasks import random_cluster
from tests.helpers.counts import seeds
from tests.helpers.random_deployments import frames_of
from tests.helpers.random_networks import network_of_seed

FEW = 7
MANY = [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds("CLUSTERS", 300)[FEW:]]


def convolutions(*channels: int, size: int = 8, classes: int = 0) -> Network:
    """3×3 convolutions, a pool after the first, and a fully connected layer where classes are asked for."""
    b, rng = Builder("convolutions"), np.random.default_rng(0)
    name = b.input("x", (1, size, size, channels[0]))
    for number, (before, after) in enumerate(pairwise(channels)):
        w = b.constant(f"w{number}", rng.standard_normal((after, 3, 3, before)).astype(np.float32) / before)
        name = b.layer(Conv2d(pads=(1, 1, 1, 1)), [name, w], f"conv{number}")
        if not number:
            name = b.layer(MaxPool2d((2, 2), (2, 2)), [name], "pool")
    if classes:
        count = (size // 2) ** 2 * channels[-1]
        flat = b.layer(Reshape((1, count)), [name], "flat")
        w = b.constant("wd", rng.standard_normal((classes, count)).astype(np.float32) / count)
        name = b.layer(Dense(), [flat, w], "dense")
    return b.build([name])


def divisions(network: Network, cluster: Cluster, goal: ClusterGoal) -> Iterator[tuple[str, FoundDivision]]:
    """What each strategy finds, where it applies."""
    for name, find in Strategies(DivisionCosts(network, cluster), goal).table.items():
        try:
            yield name, find()
        except Infeasible:
            continue


def case(seed: int) -> tuple[Network, Cluster, ClusterGoal]:
    random = Random(seed)
    network, count = network_of_seed(seed), random.choice((2, 3, 4, 5))
    cluster = equal_devices(count)
    if seed % 3 == 0:
        unequal = random_cluster(random, count)
        cluster = replace(unequal, devices=tuple(replace(each, active_watts=1.0) for each in unequal.devices))
    return network, cluster, ClusterGoal(random.choice(list(ClusterAim)))


def errors(planned: ClusterDeployment, network: Network, gateway: str, seed: int) -> list[str]:
    return list(cluster_errors(planned, gateway, frames_of(network, 4), seed))


@pytest.mark.parametrize("seed", [*range(FEW), *MANY])
def test_every_strategys_plan_is_right_to_the_byte_and_counted_right(seed: int):
    network, cluster, goal = case(seed)
    names = []
    for name, found in divisions(network, cluster, goal):
        planned = deployed(found.costs, found.division)
        for order in range(2):
            assert errors(planned, network, cluster.gateway, order) == [], name
        assert list(deployment_errors(planned.deployment, frames_of(network, 3), 1)) == [], name
        assert found.cost.port_bytes == sent(planned, cluster), name
        stored = weights(planned.deployment)
        assert found.cost.weights == {device: stored.get(device, 0) for device in cluster.device_named}, name
        names.append(name)
    assert {"hybrid", "data", "horizontal", "sequential", "vertical"} <= set(names)


def test_the_divisor_of_a_mean_that_is_finished_from_sums_counts_as_a_weight():
    b = Builder("mean")
    mean = b.layer(Reduce((1, 2, 3)), [b.input("x", (1, 8, 8, 4))], "mean")
    costs = DivisionCosts(b.build([mean]), equal_devices(2))
    found = division_of([UnitChoice(SegmentSplit.SUMS, ("device1", "device2"))])
    cost = costs.cost(found)
    assert cost is not None and cost.weights == weights(deployed(costs, found).deployment)
    assert sum(cost.weights.values()) == 4  # one device finishes


def sent(planned: ClusterDeployment, cluster: Cluster) -> Counter[tuple[str, str]]:
    """Bytes of a frame on each port: what each FIFO carries, once for each device that reads it elsewhere."""
    made = planned.deployment
    home = {part: worker.device for worker in made.workers for part in worker.parts} | {OUTSIDE: cluster.gateway}
    found: Counter[tuple[str, str]] = Counter()
    for fifo in made.fifos:
        for target in {home[reader] for reader in fifo.reading} - {home[fifo.source]}:
            for port in cluster.route(home[fifo.source], target):
                found[port] += made.tensor(fifo).bytes
    return found


NETWORK, CLUSTER = convolutions(4, 8, 8, 8, 8, size=16), equal_devices(3)


@pytest.fixture(scope="module")
def sound() -> ClusterDeployment:
    """One pipeline stage: channels of every layer, in slots that take turns."""
    devices = tuple(CLUSTER.device_named)
    costs = DivisionCosts(NETWORK, CLUSTER)
    splits = [SegmentSplit.ROWS, SegmentSplit.CHANNELS, SegmentSplit.CHANNELS, SegmentSplit.CHANNELS]
    planned = deployed(costs, division_of([UnitChoice(split, devices) for split in splits]))
    assert faults(planned) == [] and planned.turns
    return planned


def faults(planned: ClusterDeployment, orders: int = 4) -> list[str]:
    return [error for order in range(orders) for error in errors(planned, NETWORK, CLUSTER.gateway, order)]


def moved(planned: ClusterDeployment, device: str, fifo: Fifo, offset: int) -> ClusterDeployment:
    """The slot of a FIFO on a device at another address."""
    made = planned.deployment
    layout = made.arenas[device, "ram"]
    slots = {**layout.slots, fifo.what: (offset,)}
    arenas = {**made.arenas, (device, "ram"): replace(layout, slots=slots)}
    return replace(planned, deployment=replace(made, arenas=arenas))


def test_a_slot_at_the_address_of_another_that_is_alive_is_found_out(sound: ClusterDeployment):
    made, tried = sound.deployment, 0
    for worker in made.workers:
        slots = made.arenas[worker.device, "ram"].slots
        for part in worker.parts:
            read, *others = [*made.reads[part].values(), *made.writes[part].values()]
            for other in others:
                assert faults(moved(sound, worker.device, other, slots[read.what][0]), 1), (part, other.what)
                tried += 1
    assert tried > 20


def test_slots_that_do_not_wait_for_their_turn_are_found_out(sound: ClusterDeployment):
    for order in range(3):
        assert errors(replace(sound, turns=()), NETWORK, CLUSTER.gateway, order)
    less = [replace(sound, turns=(*sound.turns[:n], *sound.turns[n + 1 :])) for n in range(len(sound.turns))]
    assert any(errors(each, NETWORK, CLUSTER.gateway, order) for each in less for order in range(4))


def test_an_arena_in_the_bytes_of_a_slot_is_found_out(sound: ClusterDeployment):
    made = sound.deployment
    worker = next(each for each in made.workers if any(made.part_named[part].arenas for part in each.parts))
    home, part = (worker.device, "ram"), next(part for part in worker.parts if made.part_named[part].arenas)
    read = next(iter(made.reads[part].values()))
    layout = replace(made.arenas[home], workers={worker.name: made.arenas[home].slots[read.what][0]})
    planned = replace(sound, deployment=replace(made, arenas={**made.arenas, home: layout}))
    assert "is overwritten" in faults(planned, 1)[0]


def test_a_memory_that_is_too_short_is_found_out(sound: ClusterDeployment):
    for home, layout in sound.deployment.arenas.items():
        arenas = {**sound.deployment.arenas, home: replace(layout, bytes=layout.bytes - 64)}
        found = [fault.message for fault in deployment_faults(replace(sound.deployment, arenas=arenas))]
        assert any("ram" in fault for fault in found), found


@pytest.mark.parametrize(
    "network",
    [convolutions(3, 32, 64, 128, 256, size=64), convolutions(3, 16, 32, size=32, classes=40)],
    ids=["activations", "weights"],
)
def test_estimated_memory_is_close_to_the_exact_one(network: Network):
    """Within 5%; addresses in whole cache lines weigh more in networks below 1 MB."""
    for name, found in divisions(network, equal_devices(4), ClusterGoal()):
        exact = max(deployed(found.costs, found.division).memory.values())
        assert found.cost.fullest == pytest.approx(exact, rel=0.05), name


def test_faster_devices_get_more_rows_and_channels():
    devices = tuple(ClusterDevice(f"device{n}", rate) for n, rate in enumerate((1e6, 3e6), 1))
    cluster = replace(equal_devices(2), devices=devices)
    costs = DivisionCosts(NETWORK, cluster)
    for split, axis in ((SegmentSplit.ROWS, 1), (SegmentSplit.CHANNELS, 3)):
        sketch = costs.sketcher.sketch(DivisionSegment(1, 2, split, ("device1", "device2")))
        assert sketch is not None
        shapes = [region.shape for part in sketch[0] for region in part.gives.values()]
        assert shapes[1][axis] == 3 * shapes[0][axis]
    fast = best_division(costs, ClusterGoal(ClusterAim.THROUGHPUT))
    assert fast.cost.busy["device2"] <= fast.cost.period
    assert fast.cost.period < costs.sketcher.work / 3e6  # better than the faster one alone


def every_division(count: int, names: tuple[str, ...]) -> set[Division]:
    """All ways to give units, alone or joined to the one before, whole to a device or divided over all."""
    splits = [split for split in SegmentSplit if split not in (SegmentSplit.WHOLE, SegmentSplit.TILES)]
    ways = [(False, False), (True, False), (False, True)]  # joined to the unit before, a pipeline stage of its own
    options = [UnitChoice(split, names, *way) for split in splits for way in ways]
    options += [UnitChoice(SegmentSplit.WHOLE, (name,), *way) for name in names for way in ways]
    return {division_of(choices) for choices in product(options, repeat=count)}


@pytest.mark.parametrize(
    ("classes", "rate"),
    [
        (200, 1e5),
        *(
            pytest.param(c, r, marks=pytest.mark.slow)
            for c in (0, 200)
            for r in (GIGABIT, 1e6, 1e5)
            if (c, r) != (200, 1e5)
        ),
    ],
)
def test_the_search_finds_the_best_of_all_divisions_of_a_small_network(classes: int, rate: float):
    network = convolutions(4, 8, 8, size=16, classes=classes) if classes else convolutions(4, 8, 16, 8, size=16)
    costs = DivisionCosts(network, equal_devices(2, bytes_per_second=rate))
    tried = [cost for each in every_division(3, ("device1", "device2")) if (cost := costs.cost(each))]
    assert len(costs.sketcher.units) == 3 and len(tried) > 100
    for aim in ClusterAim:
        goal = ClusterGoal(aim)
        assert goal.value(best_division(costs, goal).cost) <= min(map(goal.value, tried)) + 1e-9, aim


@pytest.mark.parametrize("seed", range(4))
def test_hybrid_is_no_worse_than_any_other_strategy(seed: int):
    network, cluster, _ = case(seed)
    for aim in ClusterAim:
        goal = ClusterGoal(aim)
        scores = {name: goal.score(found.costs, found.cost) for name, found in divisions(network, cluster, goal)}
        assert scores["hybrid"] == min(scores.values()), aim


def test_a_limit_of_throughput_is_kept_with_the_least_memory_of_all_divisions():
    network = convolutions(4, 8, 16, 8, size=16)
    costs = DivisionCosts(network, equal_devices(2, 1e8, 1e7))
    tried = [cost for each in every_division(3, ("device1", "device2")) if (cost := costs.cost(each))]
    slow, fast = max(cost.period for cost in tried), min(cost.period for cost in tried)
    for share in (0.2, 0.5, 0.8):
        limit = fast + share * (slow - fast) / 2
        least = min(cost.fullest for cost in tried if cost.period <= limit)
        goal = ClusterGoal(ClusterAim.MEMORY, min_throughput=1 / limit)
        found = best_division(costs, goal).cost
        assert found.period <= limit * (1 + 1e-9) and found.fullest <= least


def test_devices_compute_one_frame_while_another_is_sent():
    """Two pipeline stages on the same devices: more frames per second for more memory, right in any order."""
    devices, cluster = tuple(CLUSTER.device_named), equal_devices(3, macs_per_second=2e8, bytes_per_second=1e7)
    costs = DivisionCosts(NETWORK, cluster)
    found = []
    for begins in (False, True):
        choices = [UnitChoice(SegmentSplit.CHANNELS, devices, begins_stage=begins and unit == 2) for unit in range(4)]
        planned = deployed(costs, division_of(choices))
        for order in range(2):
            assert errors(planned, NETWORK, cluster.gateway, order) == []
        run = simulate(planned.deployment, cluster, 12, turns=planned.turns, is_judged=True)
        cost = costs.cost(division_of(choices))
        assert cost is not None and cost.period == pytest.approx(1 / run.throughput, rel=0.2)
        found.append((run.throughput, max(planned.memory.values()), cost.period))
    (slow, small, _), (fast, large, _) = found
    assert fast > 1.2 * slow and large > small


def test_the_period_of_stages_that_share_devices():
    """By hand: one computes for 2 s and sends for 3 s, the other for 1 s and 2 s; 8 s is one after the other."""

    def stage(compute: float, send: float, device: str = "a", port: str = "a") -> list[StageStep]:
        return [StageStep({device: compute}), StageStep({(port, "up"): send})]

    assert shared_period([stage(2, 3), stage(1, 2)], slots=1) == pytest.approx(8)
    assert shared_period([stage(2, 3), stage(1, 2)], slots=2) == pytest.approx(7)  # computing overlaps by 1 s
    assert shared_period([stage(2, 3), stage(1, 2, port="b")], slots=2) == pytest.approx(5)  # the first stage
    assert shared_period([stage(2, 3), stage(1, 2, "b", "b")], slots=2) == pytest.approx(5)
