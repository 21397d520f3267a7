"""`edgewright cluster`: one network over several devices."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..cluster.description import read_cluster
from ..cluster.devices import GIGABIT, PI4_MACS, Cluster, equal_devices
from ..cluster.goal import ClusterAim, ClusterGoal
from ..cluster.libraries import write_libraries
from ..cluster.plan_file import load_cluster_plan, save_cluster_plan
from ..cluster.planning import ClusterPlan, ClusterPlanner, checked_cluster
from ..cluster.simulation import Churn, WanLatency, simulate
from ..cluster.strategies import HYBRID
from ..cluster.wire import FLOAT16_SHARE, wire_bytes
from ..errors import Infeasible, InputError
from ..files import output_folder, write_atomic
from ..network import Shape
from ..report.cluster_page import cluster_page, cluster_sizes_page
from .cluster_tables import (
    devices_table,
    plan_to_dict,
    plans_table,
    run_table,
    run_to_dict,
    segments_table,
    verdict,
)
from .common import console, print_json, print_notes, print_written, read_model, working
from .options import STRATEGIES

DEFAULT_DEVICES = (6,)
GIGA, MEGABIT = 1e9, 125_000


@dataclass(frozen=True, slots=True)
class ClusterPlanOptions:
    """The options of `edgewright cluster plan`, as parsed."""

    model: Path
    devices: tuple[int, ...] | None
    file: Path | None
    strategies: tuple[str, ...]
    minimise: str
    rate: float | None
    bandwidth: float | None
    ram: int | None
    max_latency: float | None
    min_throughput: float | None
    max_energy: float | None
    float16: bool
    page: Path | None
    output: Path | None
    shapes: dict[str, Shape]
    as_json: bool


def plan_cluster(options: ClusterPlanOptions) -> None:
    clusters = _clusters(options.devices, options.file, options.rate, options.bandwidth)
    names = STRATEGIES if "all" in options.strategies else options.strategies or (HYBRID,)
    goal = ClusterGoal(
        ClusterAim(options.minimise), options.ram, options.min_throughput, options.max_latency, options.max_energy
    )
    network = read_model(options.model, options.shapes)
    planner = ClusterPlanner(network, goal, FLOAT16_SHARE if options.float16 else 1.0)
    plans: list[ClusterPlan] = []
    notes: list[str] = []
    is_single = len(clusters) * len(names) == 1
    if options.output and not is_single:
        raise InputError("-o writes one plan; give one size and one --strategy")
    for cluster in clusters:
        for name in names:
            with working(f"dividing {network.name} over {len(cluster.devices)} devices: {name}"):
                try:
                    plans.append(planner.plan(cluster, name))
                except Infeasible as error:
                    if is_single:
                        raise
                    notes.append(f"{len(cluster.devices)} devices, {name}: {error}")
    if not plans:
        raise Infeasible(f"no strategy can do it: {notes[0]}")
    if is_single:
        with working(f"planning the parts of {network.name}"):
            plans = [planner.realised(plans[0])]
    if options.output:
        with working("writing the plan"), output_folder(options.output) as fresh:
            save_cluster_plan(plans[0], fresh)
            write_libraries(plans[0], fresh)
    if options.page:
        write_atomic(options.page, cluster_page(plans[0], notes) if is_single else cluster_sizes_page(plans, notes))
    if options.as_json:
        print_json({"model": network.name, "plans": [plan_to_dict(plan) for plan in plans], "notes": notes})
        return
    if is_single:
        console.print(segments_table(plans[0]))
        console.print(devices_table(plans[0]))
        console.print(verdict(plans[0]), soft_wrap=True)
    else:
        console.print(plans_table(plans))
    print_notes(notes)
    print_written([options.page, options.output])


def _clusters(
    devices: tuple[int, ...] | None, file: Path | None, rate: float | None, bandwidth: float | None
) -> list[Cluster]:
    if file is not None:
        if devices or rate or bandwidth:
            raise InputError("--cluster says all about devices and links; leave --devices, --rate and --bandwidth out")
        return [checked_cluster(read_cluster(file))]
    macs = rate * GIGA if rate else PI4_MACS
    speed = bandwidth * MEGABIT if bandwidth else GIGABIT
    return [equal_devices(count, macs, speed) for count in devices or DEFAULT_DEVICES]


def simulate_cluster(
    folder: Path, frames: int, every: float, wan: float | None, churn: float | None, seed: int, as_json: bool
) -> None:
    saved = load_cluster_plan(folder)
    deployment = saved.planned.deployment
    with working(f"simulating {frames} frames"):
        run = simulate(
            deployment,
            saved.cluster,
            frames,
            every_s=every,
            wan=WanLatency(wan, seed=seed) if wan else None,
            churn=Churn(churn, seed=seed) if churn else None,
            turns=saved.planned.turns,
            wire_bytes=wire_bytes(deployment, saved.wire_share),
            is_judged=True,
            under_way=saved.planned.frames_kept,
        )
    if as_json:
        print_json(run_to_dict(run))
        return
    console.print(run_table(saved, run))
