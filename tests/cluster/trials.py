"""Clusters of processes on loopback, for tests and measurements of runs that lose devices."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgewright.cluster.devices import Cluster, equal_devices
from edgewright.cluster.goal import ClusterAim, ClusterGoal
from edgewright.cluster.node.credentials import load_credentials
from edgewright.cluster.running.coordinator import Coordinator
from edgewright.cluster.running.keys import make_keys
from edgewright.cluster.running.local_nodes import LocalNodes
from edgewright.cluster.running.preparation import Preparation
from edgewright.cluster.running.prepared_plan import PreparedPlan
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare

SAMPLES = 3  # different frames: those of a run come again and again
Frames = Iterator[dict[str, Any]]


@dataclass
class Trial:
    """Nodes that run, and plans for them: for all devices, and for the loss of each one."""

    network: Network
    keys: Path
    nodes: LocalNodes
    preparation: Preparation
    plans: list[PreparedPlan]
    port: int  # of the gateway

    def __post_init__(self) -> None:
        self.samples = [random_inputs(self.network, seed) for seed in range(SAMPLES)]
        self.wanted = [execute(self.network, sample) for sample in self.samples]

    @property
    def gateway(self) -> str:
        return self.preparation.cluster.gateway

    @property
    def names(self) -> list[str]:
        return list(self.preparation.cluster.device_named)

    def connected(self, plans: Sequence[PreparedPlan] | None = None) -> Coordinator:
        """A coordinator that has handed out plans."""
        coordinator = self.unprepared()
        try:
            coordinator.connect(self.nodes.addresses)
            coordinator.prepare(self.plans if plans is None else plans)
        except BaseException:
            coordinator.close()
            raise
        return coordinator

    def unprepared(self) -> Coordinator:
        address = f"{self.preparation.cluster.device_named[self.gateway].address}"
        return Coordinator(load_credentials(self.keys / self.gateway), address, lambda _text: None)

    def source(self, end: int, pause_s: float = 0.0, first: int = 0) -> Frames:
        for number in range(first, end):
            yield self.samples[number % SAMPLES]
            if pause_s:
                time.sleep(pause_s)

    def check(self, number: int, result: Mapping[str, np.ndarray]) -> None:
        """The result must be that of this frame: a lost, doubled or late one would show."""
        found = compare(self.network, result, self.wanted[number % SAMPLES])
        assert found.passes, f"frame {number}: {found}"

    @contextmanager
    def started_by(self, prefixes: Mapping[str, tuple[str, ...]]) -> Iterator[None]:
        """Meanwhile the processes of these devices are others, started by these commands."""
        before = self.nodes.prefixes
        try:
            self._restart(prefixes, prefixes)
            yield
        finally:
            self._restart(prefixes, before)

    def _restart(self, names: Iterable[str], prefixes: Mapping[str, tuple[str, ...]]) -> None:
        self.nodes.prefixes = prefixes
        for name in names:
            self.nodes.processes[name].kill()
            self.nodes.processes[name].wait()
            self.nodes.restart(name)

    def revive(self) -> None:
        """All nodes run again, also those that were killed or stopped."""
        for name, process in self.nodes.processes.items():
            if process.poll() is None:
                process.send_signal(18)  # SIGCONT
            else:
                self.nodes.restart(name)


@contextmanager
def trial_of(
    network: Network,
    devices: int,
    folder: Path,
    aim: ClusterAim = ClusterAim.BALANCE,
    *,
    spares: bool = True,
    home: str = "127.0.0.1",
    prefixes: Mapping[str, tuple[str, ...]] | None = None,
    hosts: Mapping[str, str] | None = None,
) -> Iterator[Trial]:
    """`home` is the address of the gateway, `prefixes` and `hosts` are those of LocalNodes."""
    cluster = equal_devices(devices)
    names = list(cluster.device_named)
    keys = folder / "keys"
    make_keys("trial", names, cluster.gateway, keys)
    others = [name for name in names if name != cluster.gateway]
    with LocalNodes(keys, others, folder / "nodes", prefixes or {}, hosts or {}) as nodes:
        first = Coordinator(load_credentials(keys / cluster.gateway), f"{home}:0")
        first.close()
        addresses = {**nodes.addresses, cluster.gateway: f"{home}:{first.port}"}
        preparation = Preparation(network, with_addresses(cluster, addresses), ClusterGoal(aim), keys, folder / "built")
        planned = preparation.planner.realised(preparation.planner.plan(preparation.cluster)).deployment
        assert planned is not None
        plans = [preparation.whole(planned), *(preparation.without(name) for name in others if spares)]
        yield Trial(network, keys, nodes, preparation, plans, first.port)


def with_addresses(cluster: Cluster, addresses: Mapping[str, str]) -> Cluster:
    devices = (replace(each, board="host", address=addresses[each.name]) for each in cluster.devices)
    return replace(cluster, devices=tuple(devices))
