"""A cluster of processes on loopback: results, memory, and devices that die, stop, come back."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from edgewright.cluster.devices import Cluster, equal_devices
from edgewright.cluster.goal import ClusterAim, ClusterGoal
from edgewright.cluster.node.credentials import load_credentials
from edgewright.cluster.running.coordinator import Coordinator
from edgewright.cluster.running.keys import make_keys
from edgewright.cluster.running.local_nodes import LocalNodes
from edgewright.cluster.running.monitor import Monitor
from edgewright.cluster.running.preparation import Preparation
from edgewright.cluster.running.prepared_plan import PreparedPlan
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare
from test_cluster_plans import convolutions

NETWORK = convolutions(3, 8, 8, 8, size=16, classes=10)
NAMES = ("device1", "device2", "device3")
SAMPLES = [random_inputs(NETWORK, seed) for seed in range(3)]
WANTED = [execute(NETWORK, sample) for sample in SAMPLES]


@dataclass
class Trial:
    """Nodes that run, and plans for them."""

    keys: Path
    nodes: LocalNodes
    preparation: Preparation
    plans: list[PreparedPlan]
    port: int

    def coordinator(self) -> Coordinator:
        credentials = load_credentials(self.keys / NAMES[0])
        coordinator = Coordinator(credentials, f"127.0.0.1:{self.port}")
        coordinator.connect(self.nodes.addresses)
        coordinator.prepare(self.plans)
        return coordinator


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    folder = tmp_path_factory.mktemp("cluster")
    keys = folder / "keys"
    make_keys("trial", NAMES, NAMES[0], keys)
    with LocalNodes(keys, NAMES[1:], folder / "nodes") as nodes:
        first = Coordinator(load_credentials(keys / NAMES[0]), "127.0.0.1:0")
        first.close()
        addresses = {**nodes.addresses, NAMES[0]: f"127.0.0.1:{first.port}"}
        cluster = with_addresses(equal_devices(3), addresses)
        preparation = Preparation(NETWORK, cluster, ClusterGoal(ClusterAim.BALANCE), keys, folder / "built")
        planned = preparation.planner.realised(preparation.planner.plan(cluster)).deployment
        assert planned is not None
        plans = [preparation.whole(planned), *(preparation.without(name) for name in NAMES[1:])]
        yield Trial(keys, nodes, preparation, plans, first.port)


def with_addresses(cluster: Cluster, addresses: dict[str, str]) -> Cluster:
    devices = (replace(each, board="host", address=addresses[each.name]) for each in cluster.devices)
    return replace(cluster, devices=tuple(devices))


def source(count: int, pause_s: float = 0.0) -> Iterator[dict[str, object]]:
    for number in range(count):
        yield SAMPLES[number % len(SAMPLES)]
        time.sleep(pause_s)


def check(network: Network, number: int, result: object) -> None:
    found = compare(network, result, WANTED[number % len(WANTED)])  # type: ignore[arg-type]
    assert found.passes, f"frame {number}: {found}"


def test_results_come_in_order_in_the_memory_that_was_planned(trial: Trial):
    coordinator = trial.coordinator()
    try:
        count = 0
        for number, result in enumerate(coordinator(source(50))):
            check(NETWORK, number, result)
            count += 1
        assert count == 50
        for device in Monitor(coordinator).status().devices:
            assert device.allocated_bytes == device.planned_bytes > 0, device.name
    finally:
        coordinator.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_device_that_dies_or_stops_costs_no_frame_and_may_come_back(trial: Trial, how: signal.Signals):
    coordinator, victim = trial.coordinator(), trial.nodes.processes[NAMES[1]]
    try:
        count, came_back = 0, 0
        for number, result in enumerate(coordinator(source(1000, 0.005))):
            check(NETWORK, number, result)
            count += 1
            if number == 100:
                victim.send_signal(how)
            elif number == 300 and how is signal.SIGKILL:
                trial.nodes.restart(NAMES[1])
            elif number == 500 and how is signal.SIGSTOP:
                victim.send_signal(signal.SIGCONT)
            came_back = came_back or (number if number > 300 and coordinator.plan is trial.plans[0] else 0)
        assert count == 1000
        (loss,) = coordinator.recoveries
        assert loss.device == NAMES[1] and loss.resumed is not None
        assert loss.resumed - loss.noticed < 2.0
        assert came_back, "the device did not join again"
    finally:
        victim.send_signal(signal.SIGCONT) if victim.poll() is None else None
        coordinator.close()
