"""Cluster plans as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from .. import text
from ..cluster.plan_file import SavedClusterPlan
from ..cluster.planning import ClusterPlan
from ..cluster.simulation import ClusterRun
from ..report.cluster_page import plan_figures
from .common import shown, table

MOST_PORTS = 12


def plan_to_dict(plan: ClusterPlan) -> dict[str, Any]:
    """The plan as `--json` prints it."""
    cost = plan.cost
    return {
        "strategy": plan.strategy,
        "devices": len(plan.cluster.devices),
        "memory_bytes": plan.fullest,
        "memory_single_bytes": plan.single_bytes,
        "memory_is_exact": plan.is_exact,
        "throughput": 1 / plan.period,
        "speedup": plan.speedup,
        "latency_s": plan.latency,
        "energy_j": cost.energy,
        "traffic_bytes": cost.traffic_bytes,
        "busiest_link_bytes": cost.busiest_link_bytes,
        "optimal": plan.is_optimal,
        "gap": plan.gap,
        "minimised": plan.goal.aim.value,
        "wall": plan.wall,
        "float16_error": plan.wire_error,
        "memory": {
            name: {"bytes": plan.memory[name], "weights_bytes": parts.weights, "ram_bytes": parts.ram}
            for name, parts in plan.memory_parts.items()
        },
        "links": [{"link": link, "from": end, "bytes": size} for (link, end), size in cost.port_bytes.items()],
        "segments": [
            {
                "stage": stage,
                "layers": list(plan.layers(segment)),
                "split": segment.split.value,
                "devices": list(segment.devices),
            }
            for stage, segment in plan.staged
        ],
    }


def plans_table(plans: Sequence[ClusterPlan]) -> Table:
    """One row for each strategy and cluster size."""
    made = table(
        f"{shown(plans[0].network.name)} over several devices",
        ">devices", "strategy", ">fullest, MB", ">of one", ">frames/s", ">speed-up", ">latency, s", ">sent, MB",
        ">busiest, MB", ">J/frame", ">gap",
    )  # fmt: skip
    for plan in plans:
        made.add_row(str(len(plan.cluster.devices)), plan.strategy, *plan_figures(plan))
    return made


def segments_table(plan: ClusterPlan) -> Table:
    """The layers that each device computes."""
    made = table(f"{shown(plan.network.name)}: {plan.strategy}", ">stage", "layers", "split", "devices")
    for stage, segment in plan.staged:
        layers = plan.layers(segment)
        named = shown(layers[0]) + (f" to {shown(layers[-1])}" if len(layers) > 1 else "")
        devices = segment.devices
        who = ", ".join(map(shown, devices)) if len(devices) < 4 else f"{shown(devices[0])} to {shown(devices[-1])}"
        made.add_row(str(stage), named, segment.split.words, who)
    return made


def devices_table(plan: ClusterPlan) -> Table:
    """Weights, memory, arithmetic and traffic of each device."""
    made = table("devices", "device", ">RAM", ">weights", ">busy", ">sends", ">receives")
    cost = plan.cost
    for device in plan.cluster.devices:
        memory = plan.memory_parts[device.name]
        made.add_row(
            shown(device.name),
            _used(memory.ram, device.ram_bytes),
            _used(memory.weights, device.flash_bytes) + (" of flash" if memory.has_flash else ""),
            f"{cost.busy.get(device.name, 0.0) / plan.period:.0%}",
            *(text.size(size) for size in plan.sent_and_received[device.name]),
        )
    return made


def _used(size: int, limit: int | None) -> str:
    return text.size(size) + (f" of {text.size(limit)}" if limit is not None else "")


def verdict(plan: ClusterPlan) -> str:
    """The plan's figures in one paragraph."""
    count = len(plan.cluster.devices)
    share = plan.fullest * count / plan.single_bytes
    how = "exact" if plan.is_exact else "an estimate"
    quality = "proven best" if plan.is_optimal else f"at most {plan.gap:.1%} from the best there can be"
    wire = "" if plan.wire_error is None else f"; 16 bits on the wire change outputs by {plan.wire_error:.2%} at most"
    return (
        f"fullest device {text.size(plan.fullest)} ({how}), {share:.2f} × one device's "
        f"{text.size(plan.single_bytes)} / {count}; {text.three_digits(1 / plan.period)} frames/s, "
        f"{plan.speedup:.2f} × one device; latency {text.duration(plan.latency)}; "
        f"{text.size(plan.cost.traffic_bytes)} sent for a frame; "
        f"{plan.goal.aim.value}: {quality}; {plan.wall}{wire}"
    )


def run_to_dict(run: ClusterRun) -> dict[str, Any]:
    """The simulation as `--json` prints it."""
    return {
        "frames": len(run.results_s),
        "seconds": run.seconds,
        "throughput": run.throughput,
        "latency_s": run.latency_s,
        "latency_max_s": max(run.latencies_s),
        "failures": run.failures,
        "frames_again": run.frames_again,
        "sent_bytes": run.sent_bytes,
        "sent_bytes_again": run.sent_bytes_again,
        "devices": dict(run.device_busy),
        "links": [{"link": link, "from": end, "busy": share} for (link, end), share in run.port_busy.items()],
    }


def run_table(saved: SavedClusterPlan, run: ClusterRun) -> Table:
    """The figures of a simulation as a table."""
    made = table(f"{len(run.results_s)} frames over {shown(saved.cluster.name)}: {saved.strategy}", "", "")
    slowest = sorted(run.latencies_s)[-1]
    made.add_row("throughput", f"{run.throughput:.4g} frames/s")
    made.add_row("latency", f"{run.latency_s:.4g} s on average, {slowest:.4g} s at most")
    made.add_row("sent", text.size(run.sent_bytes))
    if run.failures:
        made.add_row("failures", f"{run.failures}; {run.frames_again} frames sent again, none lost")
    for name, share in run.device_busy.items():
        made.add_row(f"{shown(name)} computes", f"{share:.0%} of the time")
    for (link, end), share in sorted(run.port_busy.items(), key=lambda each: -each[1])[:MOST_PORTS]:
        made.add_row(f"{shown(link)} sends" + (f" from {shown(end)}" if end else ""), f"{share:.0%} of the time")
    return made
