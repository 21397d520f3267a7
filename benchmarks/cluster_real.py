"""Clusters at work on this machine: frames per second and latency as measured, beside those that were predicted.

    sudo python benchmarks/cluster_real.py MODEL... [--devices 2,4,6] [--mbit 1000,100,10] [--frames N] [--json FILE]

Each device is a process in a network namespace of its own, on a bridge, with a cable that sends and receives at the
given rate (`tc tbf`) and a share of a core (a CPU quota of a cgroup, version 1 or 2, in periods of 10 ms); all shares
together are below the cores of this machine. Predicted figures come from the simulator. It is told what is measured
before: how long parts take on their devices; what messages cost, by a network that computes almost nothing; and what a
frame takes of each device's processor besides its parts, by the first frames, which come one after the other. Rates of
cables are less what headers take. Where namespaces or quotas cannot be had, the benchmark says so, and runs without.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from cluster_costs import events, part_seconds, processor_seconds
from cluster_places import FAST_MBIT, a_share, address, entered, inside, namespaces, quotas, with_quota
from edgewright import read_model
from edgewright.cluster.devices import Cluster, equal_devices
from edgewright.cluster.goal import ClusterAim, ClusterGoal
from edgewright.cluster.node.credentials import load_credentials
from edgewright.cluster.running.coordinator import Coordinator
from edgewright.cluster.running.keys import make_keys
from edgewright.cluster.running.local_nodes import LocalNodes
from edgewright.cluster.running.monitor import Monitor
from edgewright.cluster.running.preparation import Preparation
from edgewright.cluster.running.prepared_plan import PreparedPlan
from edgewright.cluster.simulation import ClusterRun, simulate
from edgewright.network import Builder, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Conv2d
from edgewright.network.reference import compare

CORES = len(os.sched_getaffinity(0))
SHARE_OF_CORES = 0.9  # of this machine's cores that all devices together may use where nobody else does
LIGHT_FRAMES = 100  # of the network that measures what a message costs
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
    message_s: float  # that a message takes more on each cable, as measured before
    event_s: float  # of a core, for a message that is sent or received or a part that is run
    core_s: float  # of a core, for a frame on the busiest device
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
    core_s: dict[str, float]  # for a frame, by device


def measured(trial: Trial, plan: PreparedPlan, network: Network, frames: int) -> Measured:
    coordinator = trial.coordinator
    samples = [random_inputs(network, seed) for seed in range(3)]
    wanted = [execute(network, sample) for sample in samples]
    coordinator.connect(trial.nodes.addresses)
    coordinator.prepare([plan])
    monitor = Monitor(coordinator)
    alone = max(6, frames // 5)
    pids = {name: each.pid for name, each in trial.nodes.processes.items()} | {coordinator.name: os.getpid()}
    spent = dict.fromkeys(plan.nodes, 0.0)

    def source() -> Iterator[dict[str, object]]:
        for number, sample in enumerate(islice(cycle(samples), alone + frames)):
            while number <= alone and coordinator.keeper.finished < number:
                time.sleep(0.005)
            for name in plan.nodes if number in (1, alone) else ():
                spent[name] += processor_seconds(pids[name]) * (1 if number == alone else -1)
            yield sample

    results = [*coordinator(source())]
    keeper = coordinator.keeper
    latencies, stream = list(keeper.latencies)[1:alone], list(keeper.finish_times)[alone + 2 :]
    devices = monitor.status().devices
    return Measured(
        (len(stream) - 1) / (stream[-1] - stream[0]),
        median(latencies),
        all(each.allocated_bytes == each.planned_bytes for each in devices),
        all(compare(network, each, wanted[n % len(wanted)]).passes for n, each in enumerate(results)),
        max((each.resident_bytes for each in devices if each.name != coordinator.name), default=0),
        {name: seconds / (alone - 1) for name, seconds in spent.items()},
    )


def case(
    model: str,
    count: int,
    mbit: float,
    frames: int,
    rate: float,
    latency: float,
    event: float,
    share: float,
    namespace: list[str],
    groups: Mapping[str, Path],
) -> Row:
    """One network on so many devices, or one that computes almost nothing."""
    network = read_model(model) if model else light_network()
    quota = share_of(count, share) if groups else 1.0
    speed = mbit * 125_000 * (1.0 if mbit >= FAST_MBIT else PAYLOAD)
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="edgewright-")))
        cluster = equal_devices(count, rate * quota, speed, latency_s=latency)
        names = [device.name for device in cluster.devices]
        make_keys("real", names, cluster.gateway, folder / "keys")
        places = dict(zip(names, namespace, strict=True)) if namespace else {}
        prefixes = {name: inside(places.get(name), groups.get(places.get(name, name))) for name in names[1:]}
        hosts = {name: address(n) if places else "127.0.0.1" for n, name in enumerate(names)}
        nodes = LocalNodes(folder / "keys", names[1:], folder / "nodes", prefixes, hosts)
        nodes = held.enter_context(nodes)
        coordinator = Coordinator(load_credentials(folder / "keys" / names[0]), f"{hosts[names[0]]}:0")
        held.callback(coordinator.close)
        addresses = {**nodes.addresses, names[0]: f"{hosts[names[0]]}:{coordinator.port}"}
        devices = tuple(
            replace(each, board="host", address=addresses[each.name], ram_bytes=None) for each in cluster.devices
        )
        cluster = replace(cluster, devices=devices)
        preparation = Preparation(
            network, cluster, ClusterGoal(ClusterAim.THROUGHPUT), folder / "keys", folder / "built"
        )
        strategy = "hybrid" if model else "sequential"
        planned = preparation.planner.realised(preparation.planner.plan(cluster, strategy)).deployment
        assert planned is not None
        plan = preparation.whole(planned)
        at_home = {name: inside(None, groups.get(places.get(name, name))) for name in names}
        seconds = part_seconds(plan, folder, at_home)
        deployment = planned.deployment
        with a_share(groups.get(places.get(names[0], names[0]))):
            found = measured(Trial(nodes, coordinator, cluster), plan, network, frames)
    counts = {name: events(node) for name, node in plan.nodes.items()}
    rest = {name: found.core_s[name] - sum(map(seconds.__getitem__, each)) for name, each in counts.items()}
    if not model:
        event = median(rest[name] / each.total() for name, each in counts.items())
    carrying, large = dict[str, float](), dict[str, float]()  # messages of a part; without what a small one costs
    for name, each in counts.items():
        for part, number in each.items():
            carrying[part] = max(0.0, rest[name] * number / each.total())
            large[part] = max(0.0, carrying[part] - number * event)

    def simulated(count: int, delay: float, times: Mapping[str, float]) -> ClusterRun:
        links = tuple(replace(link, latency_s=delay) for link in cluster.links)
        late, kept = replace(cluster, links=links), planned.frames_kept
        spent = {(worker.name, part): times[part] for worker in deployment.workers for part in worker.parts}
        return simulate(deployment, late, count, times=spent, turns=planned.turns, is_judged=True, under_way=kept)

    def alone(delay: float) -> ClusterRun:
        """A part of a frame that is alone has a whole core until the share of a period is used up.

        All are slower where a device would use more than its share of the time that the frame takes.
        """
        slower = excess = 1.0
        while True:
            slower = min(slower * excess, 1 / quota)
            times = {part: each + large[part] for part, each in seconds.items()}
            times = {part: max(slower * each, with_quota(each, quota)) for part, each in times.items()}
            one = simulated(1, slower * delay, times)
            excess = max(found.core_s.values()) / (quota * one.latency_s)
            if excess < 1.01 or slower == 1 / quota:
                return one

    if not model:  # the delay on each of the two cables on a message's way with which the prediction is right
        low, high = 0.0, found.latency_s
        for _ in range(20):
            latency = (low + high) / 2
            low, high = (low, latency) if alone(latency).latency_s > found.latency_s else (latency, high)
    many = simulated(frames, latency, {part: (seconds[part] + carrying[part]) / quota for part in seconds})
    one = alone(latency)
    busiest = max(found.core_s, key=found.core_s.__getitem__)
    return Row(
        model=Path(model).stem,
        devices=count,
        mbit=mbit,
        quota=quota,
        predicted_fps=many.throughput,
        measured_fps=found.fps,
        predicted_latency_s=one.latency_s,
        measured_latency_s=found.latency_s,
        message_s=latency,
        event_s=event,
        core_s=found.core_s[busiest],
        parts_s=sum(seconds[part.name] for part in plan.nodes[busiest].parts),
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
@click.option("--json", "target", type=click.Path(path_type=Path))
@click.option("--inside", hidden=True, help="A case, in the gateway's namespace.")
def main(
    models: tuple[Path, ...],
    devices: str,
    mbit: str,
    frames: int,
    rate: float,
    share: float,
    target: Path | None,
    inside: str | None,
) -> None:
    if inside:
        with suppress(OSError):
            os.nice(-20)
        given = json.loads(inside)
        groups = {name: Path(path) for name, path in given.pop("groups").items()}
        row = case(groups=groups, **given)
        print(json.dumps(asdict(row)))
        return
    console = Console(width=180)
    rows: list[Row] = []
    for count in map(int, devices.split(",")):
        for speed in map(float, mbit.split(",")):
            costs = {"latency": 0.0, "event": 0.0}
            light = in_its_place("", count, speed, LIGHT_FRAMES, rate, costs, share, console)
            costs = {"latency": light.message_s, "event": light.event_s}
            for model in models:
                rows.append(in_its_place(str(model), count, speed, frames, rate, costs, share, console))
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


def in_its_place(
    model: str,
    count: int,
    mbit: float,
    frames: int,
    rate: float,
    costs: Mapping[str, float],
    share: float,
    console: Console,
) -> Row:
    """The case in namespaces with quotas, or without what cannot be had; with what messages cost."""
    with ExitStack() as held:
        names: list[str] = []
        groups: dict[str, Path] = {}
        try:
            names = held.enter_context(namespaces(count, mbit))
        except OSError as error:
            console.print(f"no network namespaces here ({error}): loopback, and predictions for it", style="yellow")
        try:
            devices = names or [f"device{n + 1}" for n in range(count)]
            groups = held.enter_context(quotas(devices, share_of(count, share)))
        except OSError as error:
            console.print(f"no CPU quotas here ({error}): devices share the cores", style="yellow")
        given = {
            "model": model, "count": count, "mbit": mbit, "frames": frames, "rate": rate * 1e9, **costs, "share": share,
            "namespace": names,
            "groups": {name: str(path) for name, path in groups.items()},
        }  # fmt: skip
        prefix = entered(names[0]) if names else ()
        command = [*prefix, sys.executable, __file__, __file__, "--inside", json.dumps(given)]
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
        "core",
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
            f"{1e3 * row.predicted_latency_s:.0f} ms", f"{row.latency_ratio:.2f}", f"{2e3 * row.message_s:.2f} ms",
            f"{1e6 * row.event_s:.0f} µs",  f"{1e3 * row.core_s:.1f} ms",
            f"{1e3 * row.parts_s:.1f} ms", f"{row.load:.1f}",
            "as planned" if row.is_memory_planned else "NOT as planned", "right" if row.is_right else "WRONG",
            f"{row.process_bytes / 2**20:.0f} MiB",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    main()
