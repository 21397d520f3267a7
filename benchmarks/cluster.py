"""Plans over clusters against their bars: memory and speed-up of hybrid plans, latency, time of the searches, rivals.

    EDGEWRIGHT_CORPUS=… python benchmarks/cluster.py [--part bars|latency|searches|rivals] [--estimates] [--json FILE]

A hybrid plan with the least memory that reaches 0.8 n of one device's throughput: the fullest device is to hold at most
1.12 times one device's memory / n. Plans are planned to the last address and simulated; with --estimates they are not.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import click
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from edgewright.cli.commands.cluster import STRATEGIES
from edgewright.cluster.devices import GIGABIT, PI4_MACS, Cluster, equal_devices
from edgewright.cluster.goal import ClusterAim, ClusterGoal
from edgewright.cluster.planning import ClusterPlan, ClusterPlanner
from edgewright.errors import Infeasible
from edgewright.network import Network
from edgewright.network.read import read

Row = dict[str, Any]
MEMORY_BAR, SPEED_BAR, LATENCY_BAR, SECONDS_BAR = 1.12, 0.8, 0.66, 60.0
SIZES = (4, 7, 10)
TX2_MACS = {"yolov2_608": 73.0e9, "vgg16": 12.5e9, "resnet50": 8.7e9}  # T section 5: frames/s × MACs
FIRM = ("yolov2_608", "vgg16")
FAST_ETHERNET = GIGABIT / 10


@dataclass(frozen=True)
class Rival:
    """What a paper reports, in its own words, and the cluster that comes closest to its setup."""

    name: str
    source: str
    reports: str
    model: str
    devices: int
    rate: float  # of a link, bytes per second
    goal: ClusterAim


RIVALS = (
    Rival(
        "DeeperThings", "Int. J. Parallel Programming 2021, abstract",
        "six devices, 100 Mbit/s: 1.52 × over no fusing (best of four networks)",
        "yolov2_608", 6, FAST_ETHERNET, ClusterAim.LATENCY,
    ),
    Rival(
        "PICO", "arXiv 2206.08662, abstract", "2 to 8 Raspberry Pi, wireless: throughput 1.8 to 6.8 ×",
        "vgg16", 8, FAST_ETHERNET, ClusterAim.THROUGHPUT,
    ),
    Rival(
        "PICO", "arXiv 2206.08662, abstract", "2 to 8 Raspberry Pi, wireless: throughput 1.8 to 6.8 ×",
        "yolov2_608", 8, FAST_ETHERNET, ClusterAim.THROUGHPUT,
    ),
    Rival(
        "FlexPie", "arXiv 2502.15312, abstract", "4 to 6 devices: up to 2.39 × over earlier methods",
        "resnet18", 4, GIGABIT, ClusterAim.LATENCY,
    ),
    Rival(
        "HiDP", "arXiv 2411.16086, abstract", "unequal devices: 38 % less latency, 56 % more throughput on average",
        "vgg19", 4, GIGABIT, ClusterAim.LATENCY,
    ),
    Rival(
        "HALP", "arXiv 2211.13778, abstract", "three Raspberry Pi 4: VGG-16 1.7 × faster",
        "vgg16", 3, GIGABIT, ClusterAim.LATENCY,
    ),
)  # fmt: skip


class Models:
    """The real models, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, Network] = {}

    def __getitem__(self, name: str) -> Network:
        if name not in self.known:
            self.known[name] = read(self.folder / f"{name}.onnx")
        return self.known[name]


def bar_rows(models: Models, exact: bool) -> Iterable[Row]:
    """On all cores: the rows take about a minute each."""
    cases = [
        delayed(bar_row)(models[name], name, device, rate, count, exact)
        for name in ("yolov2_608", "vgg16", "resnet50")
        for device, rate in (("Pi 4", PI4_MACS), ("T's TX2", TX2_MACS[name]))
        for count in SIZES
    ]
    rows: Iterable[Row] = Parallel(n_jobs=-1, return_as="generator")(cases)
    return rows


def bar_row(network: Network, name: str, device: str, rate: float, count: int, exact: bool) -> Row:
    """Least memory at 0.8 n; where that cannot be had, the best balance of memory and throughput."""
    cluster = equal_devices(count, rate)
    began = time.process_time()
    planner = ClusterPlanner(network, ClusterGoal())
    alone = planner.plan(cluster, "sequential").single_period
    goal = ClusterGoal(ClusterAim.MEMORY, min_throughput=SPEED_BAR * count / alone)
    try:
        plan = planned(ClusterPlanner(network, goal), cluster, exact)
    except Infeasible:
        plan = planned(planner, cluster, exact)
    memory, speed = plan.fullest * count / plan.single_bytes, plan.speedup / count
    row: Row = {"network": name, "device": device, "devices": count, "firm": name in FIRM and device == "Pi 4"}
    row |= {"memory_mb": plan.fullest / 1e6, "memory_ratio": memory, "speedup": plan.speedup, "speed_ratio": speed}
    row |= {"met": memory <= MEMORY_BAR and speed >= SPEED_BAR, "wall": plan.wall, "exact": plan.is_exact}
    return row | {"seconds": time.process_time() - began}


def planned(planner: ClusterPlanner, cluster: Cluster, exact: bool) -> ClusterPlan:
    plan = planner.plan(cluster)
    return planner.realised(plan) if exact else plan


def latency_rows(models: Models, exact: bool) -> Iterator[Row]:
    """One frame of YOLOv2 on six Pi 4 at 100 Mbit/s, and fan-out of every layer with weights beside it."""
    cluster = equal_devices(6, PI4_MACS, FAST_ETHERNET)
    planner = ClusterPlanner(models["yolov2_608"], ClusterGoal(ClusterAim.LATENCY))
    plans = {name: planner.plan(cluster, name) for name in ("horizontal", "hybrid")}
    if exact:
        plans = {name: planner.realised(plan) for name, plan in plans.items()}
    for name, plan in plans.items():
        share = plan.latency / plans["horizontal"].latency
        yield {"strategy": name, "latency_s": plan.latency, "share": share, "memory_mb": plan.fullest / 1e6}


def search_rows(models: Models) -> Iterator[Row]:
    """Time of one process for estimates: all strategies of all sizes, and 50 unequal devices."""
    network = models["yolov2_608"]
    began = time.process_time()
    planner = ClusterPlanner(network, ClusterGoal())
    for count in range(2, 11):
        cluster = equal_devices(count)
        for name in STRATEGIES:
            planner.plan(cluster, name)
    yield {"search": "all strategies, 2 to 10 devices", "seconds": time.process_time() - began}
    began = time.process_time()
    plan = ClusterPlanner(network, ClusterGoal()).plan(unequal(50))
    row = {"search": "hybrid, 50 unequal devices", "seconds": time.process_time() - began}
    yield row | {"memory_mb": plan.fullest / 1e6, "speedup": plan.speedup}


def unequal(count: int) -> Cluster:
    """Speeds from half to four times that of a Pi 4, and 64, 128 or 256 MiB."""
    random, cluster = Random(1), equal_devices(count)
    devices = tuple(
        replace(one, macs_per_second=PI4_MACS * random.uniform(0.5, 4), ram_bytes=random.choice((64, 128, 256)) << 20)
        for one in cluster.devices
    )
    return replace(cluster, devices=devices)


def rival_rows(models: Models) -> Iterator[Row]:
    """Estimates: the papers' devices are ours at a Pi 4's rate, since their abstracts do not give rates."""
    for rival in RIVALS:
        cluster = equal_devices(rival.devices, PI4_MACS, rival.rate)
        plan = ClusterPlanner(models[rival.model], ClusterGoal(rival.goal)).plan(cluster)
        row: Row = {"rival": rival.name, "source": rival.source, "reports": rival.reports, "network": rival.model}
        row |= {"devices": rival.devices, "mbit": rival.rate * 8e-6, "minimised": rival.goal.value}
        yield row | {"speedup": plan.speedup, "latency_gain": plan.single_period / plan.latency}


HEADINGS = {
    "bars": f"memory × n / one device (bar {MEMORY_BAR}) at a speed-up of {SPEED_BAR} n, 1 Gbit/s; * is firm",
    "latency": f"one frame of YOLOv2, six Pi 4, 100 Mbit/s: share of horizontal (bar {LATENCY_BAR})",
    "searches": f"time of searches for YOLOv2, CPU seconds (bar {SECONDS_BAR:.0f})",
    "rivals": "what papers measured, and what our planner predicts on as many equal Pi 4 (2.4 GMAC/s)",
}


def show(console: Console, part: str, rows: list[Row]) -> None:
    table = Table(*(key for key in rows[0]), title=HEADINGS[part])
    for row in rows:
        table.add_row(*(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()))
    console.print(table)


def missed(result: dict[str, list[Row]]) -> list[str]:
    """The firm bars that are not met."""
    found = [f"{r['network']} on {r['devices']}" for r in result.get("bars", ()) if r["firm"] and not r["met"]]
    found += [f"latency: {r['share']:.2f}" for r in result.get("latency", ())[1:] if r["share"] > LATENCY_BAR]
    return found + [r["search"] for r in result.get("searches", ()) if r["seconds"] > SECONDS_BAR]


@click.command()
@click.option("--part", "parts", type=click.Choice([*HEADINGS]), multiple=True, help="Only these.  [default: all]")
@click.option("--estimates", is_flag=True, help="Do not plan parts and simulate frames.")
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(parts: tuple[str, ...], estimates: bool, file: Path | None) -> None:
    corpus = os.environ.get("EDGEWRIGHT_CORPUS")
    if not corpus:
        raise click.ClickException("set EDGEWRIGHT_CORPUS to a folder with models/")
    console, models = Console(width=170), Models(Path(corpus) / "models")
    rows: dict[str, Callable[[], Iterable[Row]]] = {
        "bars": lambda: bar_rows(models, not estimates),
        "latency": lambda: latency_rows(models, not estimates),
        "searches": lambda: search_rows(models),
        "rivals": lambda: rival_rows(models),
    }
    result: dict[str, list[Row]] = {}
    for part in parts or rows:
        result[part] = [*rows[part]()]
        show(console, part, result[part])
        if file is not None:
            file.write_text(json.dumps(result, indent=1) + "\n")
    if failed := missed(result):
        raise click.ClickException(f"bars missed: {'; '.join(failed)}")
    if result.keys() - {"rivals"}:
        console.print("All firm bars are met.")


if __name__ == "__main__":
    main()
