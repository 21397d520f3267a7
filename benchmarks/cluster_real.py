"""Clusters at work on this machine: frames per second and latency as measured, beside those that were predicted.

    sudo python benchmarks/cluster_real.py MODEL... [--devices 2,4,6] [--mbit 1000,100,10] [--frames N] [--json FILE]

Each device is a process in a network namespace of its own, on a bridge, with a cable that sends and receives at the
given rate (`tc tbf`) and a share of one core (a CPU quota of a cgroup, version 1 or 2, in periods of 10 ms); all shares
together are below the cores of this machine. Predicted figures come from the simulator, which is told what is measured
before the frames that count: how long parts take on their devices; what messages cost, by a network that computes
almost nothing; and the processor time of a frame on each device: besides its parts, by frames one after the other, for
the latency; as a whole, by the first frames of the stream, which bounds the rate. Rates of cables are less what headers
take. Where namespaces or quotas cannot be had, the benchmark says so, and runs without.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from cluster_costs import events, part_seconds, processor_seconds
from cluster_places import FAST_MBIT, a_share, address, core_of, entered, inside, namespaces, quotas, run_when_woken
from cluster_predicted import MessageCosts, Observed, predicted_delay, predicted_latency, predicted_rate
from edgewright import read_model
from edgewright.cluster.devices import Cluster, equal_devices
from edgewright.cluster.goal import ClusterAim, ClusterGoal
from edgewright.cluster.node.credentials import load_credentials
from edgewright.cluster.running.coordinator import Coordinator
from edgewright.cluster.running.keys import make_keys
from edgewright.cluster.running.local_nodes import LocalNodes
from edgewright.cluster.running.monitor import DeviceStatus, Monitor
from edgewright.cluster.running.preparation import Preparation
from edgewright.cluster.running.prepared_plan import PreparedPlan
from edgewright.network import Builder, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Conv2d
from edgewright.network.reference import compare
from edgewright.network.tensor import Array

CORES = len(os.sched_getaffinity(0))
SHARE_OF_CORES = 0.9  # of this machine's cores that all devices together may use where nobody else does
LIGHT_FRAMES = 100  # of the network that measures what a message costs
PLANNED_DELAY_S = 1e-4  # of a message on a cable, for the search
PAYLOAD = 1448 / 1514  # of what a cable sends: the rest is headers of TCP, IP and Ethernet


@dataclass
class Row:
    model: str
    devices: int
    mbit: float
    quota: float
    predicted_fps: float
    measured_fps: float
    predicted_latency_s: float
    measured_latency_s: float
    delay_s: float  # of a message on each of its two cables, as measured before
    event_s: float  # of a core, for a message that is sent or received or a part that is run
    lone_core_s: float  # of a core, for a frame that is alone, on the busiest device
    stream_core_s: float  # the same for one of many
    parts_s: float  # of that, its parts
    load: float  # of the machine, by all that ran on it
    is_memory_planned: bool
    is_right: bool
    process_bytes: int

    @property
    def fps_ratio(self) -> float:
        return self.measured_fps / self.predicted_fps

    @property
    def latency_ratio(self) -> float:
        return self.measured_latency_s / self.predicted_latency_s


def share_of(devices: int, share: float) -> float:
    """Of a core, for each of so many devices that have this share of the machine together."""
    return min(1.0, share * CORES / devices)


@dataclass
class Trial:
    """Nodes in their places, and a gateway in this process."""

    nodes: LocalNodes
    coordinator: Coordinator
    cluster: Cluster


@dataclass
class Measured:
    fps: float
    latency_s: float  # of a frame alone
    is_memory_planned: bool
    is_right: bool
    process_bytes: int


class Run:
    """A plan at work: lone frames, a stream that shows what a frame costs, and the stream that counts."""

    def __init__(self, trial: Trial, plan: PreparedPlan, network: Network, frames: int) -> None:
        self.trial, self.plan, self.network, self.frames = trial, plan, network, frames
        self.samples = [random_inputs(network, seed) for seed in range(3)]
        self.lone = max(6, frames // 5)
        filled = self.lone + plan.frames_kept  # then as many frames are under way as fit
        self.begin = filled + max(6, frames // 3)  # of the stream that counts
        self.bounds = {1: "lone", self.lone: "lone", filled: "stream", self.begin: "stream"}
        self.counts = {"lone": self.lone - 1, "stream": self.begin - filled}
        self.spent: dict[str, list[dict[str, float]]] = {"lone": [], "stream": []}
        self.results: list[dict[str, Array]] = []
        self.devices: tuple[DeviceStatus, ...] = ()

    def __call__(self) -> None:
        coordinator = self.trial.coordinator
        coordinator.connect(self.trial.nodes.addresses)
        coordinator.prepare([self.plan])
        monitor = Monitor(coordinator)
        self.results = [*coordinator(self._source())]
        self.devices = monitor.status().devices

    def measured(self) -> Measured:
        """What came out, compared with the reference."""
        keeper, results, devices = self.trial.coordinator.keeper, self.results, self.devices
        gateway = self.trial.coordinator.name
        stream = list(keeper.finish_times)[self.begin : self.begin + self.frames]
        wanted = [execute(self.network, sample) for sample in self.samples]
        return Measured(
            (len(stream) - 1) / (stream[-1] - stream[0]),
            median(list(keeper.latencies)[1 : self.lone]),
            all(each.allocated_bytes == each.planned_bytes for each in devices),
            all(compare(self.network, each, wanted[n % len(wanted)]).passes for n, each in enumerate(results)),
            max((each.resident_bytes for each in devices if each.name != gateway), default=0),
        )

    def core_s(self, kind: str) -> dict[str, float]:
        """Seconds of a core for a frame, by device: "lone" or one of a "stream"."""
        first, last = self.spent[kind]
        return {name: (last[name] - first[name]) / self.counts[kind] for name in first}

    def _source(self) -> Iterator[dict[str, Array]]:
        """As many frames more than are counted as may be under way, so that devices stay busy to the end."""
        pids = {name: process.pid for name, process in self.trial.nodes.processes.items()}
        pids[self.trial.coordinator.name] = os.getpid()
        for number, sample in enumerate(islice(cycle(self.samples), self.begin + self.frames + self.plan.frames_kept)):
            while number <= self.lone and self.trial.coordinator.keeper.finished < number:
                time.sleep(0.005)
            if kind := self.bounds.get(number):
                self.spent[kind].append({name: processor_seconds(pids[name]) for name in self.plan.nodes})
            yield sample


@dataclass(frozen=True)
class Case:
    """One network on equal devices, or one that computes almost nothing."""

    model: str
    count: int
    mbit: float
    frames: int
    rate: float
    share: float
    objects: str  # a folder for object files
    namespace: tuple[str, ...]
    groups: Mapping[str, str]  # of devices: cgroups
    costs: MessageCosts

    @property
    def quota(self) -> float:
        return share_of(self.count, self.share) if self.groups else 1.0

    def row(self) -> Row:
        network = read_model(self.model) if self.model else light_network()
        speed = self.mbit * 125_000 * (1.0 if self.mbit >= FAST_MBIT else PAYLOAD)
        with ExitStack() as held:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="edgewright-")))
            cluster = equal_devices(self.count, self.rate * self.quota, speed, latency_s=PLANNED_DELAY_S)
            names = [device.name for device in cluster.devices]
            make_keys("real", names, cluster.gateway, folder / "keys")
            space = dict(zip(names, self.namespace, strict=True)) if self.namespace else {}
            group = {name: Path(path) for name in names if (path := self.groups.get(space.get(name, name)))}
            core = {name: core_of(n) for n, name in enumerate(names)}
            prefixes = {name: inside(space.get(name), group.get(name), core[name]) for name in names[1:]}
            hosts = {name: address(n) if space else "127.0.0.1" for n, name in enumerate(names)}
            nodes = held.enter_context(LocalNodes(folder / "keys", names[1:], folder / "nodes", prefixes, hosts))
            coordinator = Coordinator(load_credentials(folder / "keys" / names[0]), f"{hosts[names[0]]}:0")
            held.callback(coordinator.close)
            addresses = {**nodes.addresses, names[0]: f"{hosts[names[0]]}:{coordinator.port}"}
            devices = tuple(replace(each, board="host", address=addresses[each.name]) for each in cluster.devices)
            cluster = replace(cluster, devices=devices)
            goal, objects = ClusterGoal(ClusterAim.THROUGHPUT), Path(self.objects or folder / "built")
            preparation = Preparation(network, cluster, goal, folder / "keys", objects)
            strategy = "hybrid" if self.model else "sequential"
            planned = preparation.planner.realised(preparation.planner.plan(cluster, strategy)).deployment
            assert planned is not None
            plan = preparation.whole(planned)
            places = {name: inside(None, group.get(name), core[name]) for name in names}
            parts_s = part_seconds(plan, folder, places)
            run = Run(Trial(nodes, coordinator, cluster), plan, network, self.frames)
            with a_share(group.get(names[0]), core[names[0]]):
                run()
        found = run.measured()
        events_of = {name: events(node) for name, node in plan.nodes.items()}
        lone, stream = run.core_s("lone"), run.core_s("stream")
        observed = Observed(planned, cluster, self.quota, core, parts_s, events_of, lone, stream)
        costs = self.costs
        if not self.model:
            costs = MessageCosts(core_s=observed.event_s())
            costs = MessageCosts(predicted_delay(observed, found.latency_s, costs.core_s), costs.core_s)
        busiest = max(stream, key=stream.__getitem__)
        return Row(
            model=Path(self.model).stem,
            devices=self.count,
            mbit=self.mbit,
            quota=self.quota,
            predicted_fps=predicted_rate(observed, costs, self.frames),
            measured_fps=found.fps,
            predicted_latency_s=predicted_latency(observed, costs),
            measured_latency_s=found.latency_s,
            delay_s=costs.delay_s,
            event_s=costs.core_s,
            lone_core_s=lone[busiest],
            stream_core_s=stream[busiest],
            parts_s=sum(parts_s[part.name] for part in plan.nodes[busiest].parts),
            load=os.getloadavg()[0],
            is_memory_planned=found.is_memory_planned,
            is_right=found.is_right,
            process_bytes=found.process_bytes,
        )


def light_network() -> Network:
    """Convolutions of 1×1 on a few numbers."""
    builder, random = Builder("light"), np.random.default_rng(0)
    name = builder.input("x", (1, 4, 4, 64))
    for number in range(6):
        weights = builder.constant(f"w{number}", random.standard_normal((64, 1, 1, 64)).astype(np.float32) / 8)
        name = builder.layer(Conv2d(), [name, weights], f"conv{number}")
    return builder.build([name])


@click.command()
@click.argument("models", nargs=-1, type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--devices", default="2,4,6", show_default=True)
@click.option("--mbit", default="1000,100,10", show_default=True)
@click.option("--frames", default=30, show_default=True)
@click.option("--rate", default=10.0, show_default=True, help="GMAC/s of a core, for the search.")
@click.option("--share", default=SHARE_OF_CORES, show_default=True, help="Of this machine's cores, for all devices.")
@click.option("--objects", default="", help="A folder that keeps object files for the next time.")
@click.option("--json", "target", type=click.Path(path_type=Path))
@click.option("--inside", hidden=True, help="A case, in the gateway's namespace.")
def main(
    models: tuple[Path, ...],
    devices: str,
    mbit: str,
    frames: int,
    rate: float,
    share: float,
    objects: str,
    target: Path | None,
    inside: str | None,
) -> None:
    if inside:
        run_when_woken()
        given = json.loads(inside)
        row = Case(**{**given, "costs": MessageCosts(**given["costs"])}).row()
        print(json.dumps(asdict(row)))
        return
    console = Console(width=180)
    rows: list[Row] = []
    for count in map(int, devices.split(",")):
        for speed in map(float, mbit.split(",")):
            light = Case("", count, speed, LIGHT_FRAMES, rate * 1e9, share, objects, (), {}, MessageCosts())
            seen = in_its_place(light, console)
            costs = MessageCosts(seen.delay_s, seen.event_s)
            for model in models:
                rows.append(in_its_place(replace(light, model=str(model), frames=frames, costs=costs), console))
                console.print(
                    f"{model.stem}, {count} devices, {speed:g} Mbit/s: rate {rows[-1].fps_ratio:.2f}, "
                    f"latency {rows[-1].latency_ratio:.2f} of what was predicted",
                    style="dim",
                )
                if target:
                    write(target, rows)
    console.print(shown(rows))


def write(target: Path, rows: list[Row]) -> None:
    found = [asdict(row) | {"fps_ratio": row.fps_ratio, "latency_ratio": row.latency_ratio} for row in rows]
    target.write_text(json.dumps(found, indent=1))


def in_its_place(case: Case, console: Console) -> Row:
    """The case in namespaces with quotas, or without what cannot be had."""
    with ExitStack() as held:
        names: list[str] = []
        groups: dict[str, Path] = {}
        try:
            names = held.enter_context(namespaces(case.count, case.mbit))
        except OSError as error:
            console.print(f"no network namespaces here ({error}): loopback, and predictions for it", style="yellow")
        try:
            devices = names or [f"device{n + 1}" for n in range(case.count)]
            groups = held.enter_context(quotas(devices, share_of(case.count, case.share)))
        except OSError as error:
            console.print(f"no CPU quotas here ({error}): devices share the cores", style="yellow")
        paths = {name: str(path) for name, path in groups.items()}
        given = json.dumps(asdict(replace(case, namespace=tuple(names), groups=paths)))
        prefix = entered(names[0]) if names else ()
        command = [*prefix, sys.executable, __file__, __file__, "--inside", given]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        return Row(**json.loads(done.stdout.splitlines()[-1]))


def shown(rows: list[Row]) -> Table:
    table = Table(title="Clusters at work: measured beside predicted", title_justify="left", box=None)
    for heading in (
        "model",
        "devices",
        "Mbit/s",
        "share",
        "frames/s",
        "predicted",
        "ratio",
        "latency",
        "predicted",
        "ratio",
        "message",
        "event",
        "core, lone",
        "in stream",
        "parts",
        "load",
        "memory",
        "results",
        "process",
    ):
        table.add_column(heading, justify="left" if heading in ("model", "memory", "results") else "right")
    for row in rows:
        table.add_row(
            row.model, str(row.devices), f"{row.mbit:g}", f"{row.quota:.2f}", f"{row.measured_fps:.3g}",
            f"{row.predicted_fps:.3g}", f"{row.fps_ratio:.2f}", f"{1e3 * row.measured_latency_s:.0f} ms",
            f"{1e3 * row.predicted_latency_s:.0f} ms", f"{row.latency_ratio:.2f}", f"{2e3 * row.delay_s:.2f} ms",
            f"{1e6 * row.event_s:.0f} µs", f"{1e3 * row.lone_core_s:.1f} ms", f"{1e3 * row.stream_core_s:.1f} ms",
            f"{1e3 * row.parts_s:.1f} ms", f"{row.load:.1f}",
            "as planned" if row.is_memory_planned else "NOT as planned", "right" if row.is_right else "WRONG",
            f"{row.process_bytes / 2**20:.0f} MiB",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    main()
