"""The cluster simulator: contention beside SimGrid's, and the time of 1,000 frames through 1,000 devices.

    python benchmarks/cluster_simulation.py [--cases N] [--simgrid PYTHON] [--json FILE]

Random transfers over unequal links, without latency: ours are served one at a time, first come first served. Beside
them, transfers that share links fairly, by progressive filling, which is the model of SimGrid. SimGrid itself runs them
twice, with our discipline and with its own. `pip install simgrid` builds it from source (cmake, boost, a C++ compiler,
and a pybind11 below 3); PYTHON is an interpreter that has it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from edgewright.cluster.devices import Cluster, ClusterDevice, ClusterLink, Port, equal_devices
from edgewright.cluster.simulation import Churn, ClusterRun, WanLatency, simulate
from edgewright.dataflow.cnn.durations import exact_time
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates
from edgewright.dataflow.throughput.contention import contended
from edgewright.network import Builder, Network, Region
from edgewright.network.operators import Clamp
from edgewright.network.parts import TensorRegion
from edgewright.program.deployment import OUTSIDE, Deployment, Fifo, Part, Reader, Worker

SHAPE = (1, 16, 16, 4)
ONCE = Rates((1,))


@dataclass(frozen=True)
class Transfer:
    source: str
    target: str
    size: int
    ready: float


def random_case(seed: int) -> tuple[Cluster, list[Transfer]]:
    """Some transfers between unequal devices on a switch, on a bus, or on two switches."""
    random = Random(seed)
    names = [f"d{n}" for n in range(random.randint(3, 10))]
    devices = tuple(ClusterDevice(name, 1e9) for name in names)

    def rate() -> float:
        return random.choice((1.25e6, 12.5e6, 125e6)) * random.uniform(0.8, 1.0)

    kind = seed % 3
    if kind == 0:
        links = [ClusterLink(f"l-{name}", (name, "switch"), rate()) for name in names]
    elif kind == 1:
        links = [ClusterLink("bus", tuple(names), rate())]
    else:
        links = [ClusterLink(f"l-{name}", (name, f"switch{n % 2}"), rate()) for n, name in enumerate(names)]
        links.append(ClusterLink("trunk", ("switch0", "switch1"), rate()))
    transfers = []
    for _ in range(random.randint(4, 40)):
        source, target = random.sample(names, 2)
        transfers.append(Transfer(source, target, random.randint(10**4, 10**7), random.uniform(0.0, 2.0)))
    return Cluster(f"case {seed}", devices, tuple(links), names[0]), sorted(transfers, key=lambda one: one.ready)


def ours(cluster: Cluster, transfers: Sequence[Transfer]) -> list[float]:
    """When each transfer ends: an actor that waits until it is ready, and one that sends."""
    actors, channels, held = [], [], {}
    for n, one in enumerate(transfers):
        sending = one.size / cluster.bandwidth(one.source, one.target)
        actors += [Actor(f"ready {n}", 1, (exact_time(one.ready),)), Actor(f"send {n}", 1, (exact_time(sending),))]
        channels.append(Channel(f"c{n}", f"ready {n}", f"send {n}", ONCE, ONCE))
        held[f"send {n}"] = cluster.route(one.source, one.target)
    graph = Graph(cluster.name, tuple(actors), tuple(channels))
    ends = {one.actor: float(one.end) for one in contended(graph, held, dict.fromkeys(graph.by_name, 1))}
    return [ends[f"send {n}"] for n in range(len(transfers))]


def theirs(python: str, cluster: Cluster, transfers: Sequence[Transfer], shares: bool) -> list[float]:
    """The same by SimGrid, in a process of its own. A port is a link of its."""
    links = {"/".join(port): (cluster.link_named[port[0]].bytes_per_second, 0.0) for port in cluster.ports}
    ways = [["/".join(port) for port in cluster.route(one.source, one.target)] for one in transfers]
    case = {
        "hosts": [device.name for device in cluster.devices],
        "links": links,
        "transfers": [(x.source, x.target, x.size, x.ready, way) for x, way in zip(transfers, ways, strict=True)],
        "shares": shares,
    }
    script = Path(__file__).parent / "cluster_simgrid.py"
    done = subprocess.run([python, script], input=json.dumps(case), capture_output=True, text=True, check=True)
    ends: list[float] = json.loads(done.stdout)
    return ends


def fairly_shared(cluster: Cluster, transfers: Sequence[Transfer]) -> list[float]:
    """When each transfer ends where all that are under way share the links max-min fairly."""
    left, ends, now = {n: float(one.size) for n, one in enumerate(transfers)}, [0.0] * len(transfers), 0.0
    ways = [cluster.route(one.source, one.target) for one in transfers]
    while left:
        active = [n for n in left if transfers[n].ready <= now]
        rates = _fair_rates(cluster, {n: ways[n] for n in active})
        later = [one.ready - now for n, one in enumerate(transfers) if n in left and one.ready > now]
        step = min([*(left[n] / rates[n] for n in active), *later])
        now += step
        for n in active:
            left[n] -= rates[n] * step
            if left[n] <= 1e-6:
                ends[n] = now
                del left[n]
    return ends


def _fair_rates(cluster: Cluster, ways: Mapping[int, Sequence[Port]]) -> dict[int, float]:
    """Progressive filling: the port with the least for each fixes the rates of those that pass it."""
    capacity = {port: cluster.link_named[port[0]].bytes_per_second for port in cluster.ports}
    rates: dict[int, float] = {}
    while len(rates) < len(ways):
        users = {port: [n for n, way in ways.items() if port in way and n not in rates] for port in capacity}
        rate, port = min((capacity[port] / len(who), port) for port, who in users.items() if who)
        for n in users[port]:
            rates[n] = rate
            for passed in ways[n]:
                capacity[passed] -= rate
    return rates


def compare(seed: int, python: str | None) -> dict[str, float]:
    cluster, transfers = random_case(seed)
    mine, fair = ours(cluster, transfers), fairly_shared(cluster, transfers)

    def mean_time(ends: Sequence[float]) -> float:
        return mean(end - one.ready for end, one in zip(ends, transfers, strict=True))

    def difference(one: Sequence[float], other: Sequence[float]) -> float:
        return max(abs(a - b) for a, b in zip(one, other, strict=True)) / max(one)

    row = {
        "seed": seed,
        "transfers": len(transfers),
        "last end / fairly shared": max(mine) / max(fair),
        "mean time / fairly shared": mean_time(mine) / mean_time(fair),
    }
    if python is not None:
        row["SimGrid, our discipline: greatest difference"] = difference(
            mine, theirs(python, cluster, transfers, False)
        )
        row["SimGrid, its own: greatest difference"] = difference(fair, theirs(python, cluster, transfers, True))
    return row


def chain(count: int) -> tuple[Deployment, Cluster]:
    """A pipeline of layers, each on a device of its own; all cables lead to one switch."""
    region = Region.whole(SHAPE)
    wires = [TensorRegion("chain", f"t{n}", region) for n in range(count + 1)]
    parts = tuple(
        Part(f"p{n}", _layers(f"p{n}", n, n + 1), None, {f"t{n}": wires[n]}, {f"t{n + 1}": wires[n + 1]})
        for n in range(count)
    )
    workers = tuple(Worker(f"w{n}", f"device{n + 1}", "cpu", (), (f"p{n}",)) for n in range(count))
    ends = [OUTSIDE, *(part.name for part in parts), OUTSIDE]
    fifos = tuple(Fifo(wire, ends[n], (Reader(ends[n + 1]),), 2) for n, wire in enumerate(wires))
    cluster = equal_devices(count, macs_per_second=1e6, bytes_per_second=1.25e7, latency_s=1e-4)
    return Deployment((_layers("chain", 0, count),), parts, workers, fifos, {}), cluster


def _layers(name: str, first: int, last: int) -> Network:
    builder = Builder(name)
    tensor = builder.input(f"t{first}", SHAPE)
    for number in range(first, last):
        tensor = builder.layer(Clamp(0.0), [tensor], f"t{number + 1}")
    return builder.build([tensor])


def timed_runs(devices: int, frames: int) -> dict[str, dict[str, float]]:
    deployment, cluster = chain(devices)
    kinds: Mapping[str, dict[str, Any]] = {
        "links alone": {},
        "WAN, 20 ms": {"wan": WanLatency(0.02)},
        "two failures per device and hour": {"churn": Churn(2.0, away_s=1.0, seed=1)},
    }
    found = {}
    for kind, options in kinds.items():
        wall, cpu = time.perf_counter(), time.process_time()
        run: ClusterRun = simulate(deployment, cluster, frames, is_judged=True, **options)
        found[kind] = {
            "wall_s": time.perf_counter() - wall,
            "cpu_s": time.process_time() - cpu,
            "throughput": run.throughput,
            "latency_s": run.latency_s,
            "failures": run.failures,
            "frames_again": run.frames_again,
        }
    return found


def show(console: Console, rows: Sequence[Mapping[str, float]], runs: Mapping[str, Mapping[str, float]]) -> None:
    if rows:
        table = Table("contention", "least", "median", "most", title=f"{len(rows)} cases")
        for key in list(rows[0])[2:]:
            values = [row[key] for row in rows]
            table.add_row(key, *(f"{one(values):.3g}" for one in (min, median, max)))
        console.print(table)
    table = Table("run", "wall, s", "CPU, s", "frames/s", "latency, s", "failures", "frames sent again")
    for kind, run in runs.items():
        table.add_row(kind, *(f"{value:,.4g}" for value in run.values()))
    console.print(table)


@click.command()
@click.option("--cases", default=60, show_default=True)
@click.option("--simgrid", "python", default=sys.executable, help="A Python that has simgrid.")
@click.option("--devices", default=1000, show_default=True)
@click.option("--frames", default=1000, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(cases: int, python: str, devices: int, frames: int, file: Path | None) -> None:
    console = Console(width=120)
    has_simgrid = subprocess.run([python, "-c", "import simgrid"], capture_output=True).returncode == 0
    if not has_simgrid:
        console.print(f"{python} has no simgrid: its model stands in for it (--simgrid names a Python that has it)")
    rows = [compare(seed, python if has_simgrid else None) for seed in range(cases)]
    runs = timed_runs(devices, frames)
    show(console, rows, runs)
    if file is not None:
        file.write_text(json.dumps({"contention": rows, "devices": devices, "frames": frames, "runs": runs}, indent=1))


if __name__ == "__main__":
    main()
