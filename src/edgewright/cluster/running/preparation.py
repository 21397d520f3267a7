"""From a network and a cluster to plans that can be run: the whole cluster's, and those for the loss of a device."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from ...errors import Infeasible
from ...network import Network
from ..deploying import ClusterDeployment
from ..devices import Cluster
from ..goal import ClusterGoal
from ..planning import ClusterPlanner
from ..strategies import HYBRID
from .device_library import LibraryBuilder
from .prepared_plan import PreparedPlan, prepared_plan

WHOLE = "all devices"


class Preparation:
    """Makes plans for one network on the devices of one cluster, whose nodes have addresses."""

    def __init__(
        self,
        network: Network,
        cluster: Cluster,
        goal: ClusterGoal,
        keys: Path,
        folder: Path,
        *,
        strategy: str = HYBRID,
        wire_share: float = 1.0,
    ) -> None:
        self.network, self.cluster, self.strategy, self.wire_share = network, cluster, strategy, wire_share
        self.keys, self.builder = keys, LibraryBuilder(folder)
        self.planner = ClusterPlanner(network, goal, wire_share)
        self._seconds, self._largest = 0.0, 0  # that the last plan took; bytes of its largest library

    @property
    def expected_seconds(self) -> float:
        """How long another plan will take: as long as the last one, and its largest library over the slowest link."""
        slowest = min(link.bytes_per_second for link in self.cluster.links)
        return self._seconds + self._largest / slowest

    def whole(self, planned: ClusterDeployment) -> PreparedPlan:
        """A plan that is there."""
        return self._prepared(WHOLE, planned, self.cluster)

    def without(self, device: str) -> PreparedPlan:
        """A plan for the loss of a device; Infeasible when the others cannot hold the network."""
        return self.of_devices(frozenset(self.cluster.device_named) - {device})

    def of_devices(self, devices: frozenset[str]) -> PreparedPlan:
        """A plan for some of the devices."""
        lost = [device.name for device in self.cluster.devices if device.name not in devices]
        name = f"without {', '.join(lost)}"
        began = time.monotonic()
        cluster = replace(self.cluster, devices=tuple(each for each in self.cluster.devices if each.name in devices))
        try:
            planned = self.planner.realised(self.planner.plan(cluster, self.strategy)).deployment
        except Infeasible as error:
            raise Infeasible(f"{name}: the other devices cannot run the network: {error}") from error
        assert planned is not None
        found = self._prepared(name, planned, cluster)
        self._seconds = time.monotonic() - began
        return found

    def _prepared(self, name: str, planned: ClusterDeployment, cluster: Cluster) -> PreparedPlan:
        libraries = self.builder.build(planned.deployment, cluster, name.replace(" ", "-").replace(",", ""))
        self._largest = max((library.about.bytes for library in libraries.values()), default=0)
        return prepared_plan(name, planned, cluster, self.wire_share, libraries, self.keys)
