"""Profiles a network on this machine: which executors, and how many lanes."""

from __future__ import annotations

from ..emit.native import compiler
from ..errors import EdgewrightError
from ..network import Network
from ..platform.profile import NATIVE, Profile
from ..program import Plan
from .build import plan_for_host
from .machine import core_kinds
from .profiling import REPEATS, measure_profile


def measured_here(
    network: Network, executors: tuple[str, ...], most_lanes: int | None, repeats: int = REPEATS
) -> Profile:
    """The times of these executors; by default native code, or onnxruntime if it cannot be built."""
    notes: tuple[str, ...] = ()
    if not executors:
        executors = (NATIVE,)
        try:
            compiler()
        except EdgewrightError as error:
            executors, notes = ("onnxruntime",), (f"onnxruntime executes all layers: {error}",)
    plans = lane_plans(network, most_lanes) if NATIVE in executors else {}
    profile = measure_profile(network, plans, repeats, executors=executors, lanes=lane_counts(most_lanes))
    return profile.model_copy(update={"notes": (*profile.notes, *notes)})


def lane_counts(most_lanes: int | None) -> list[int]:
    """The numbers of lanes to measure: up to four, then every doubling, and all cores of a kind."""
    cores = {len(kind.cores) for kind in core_kinds()}
    most = min(max(cores), most_lanes or max(cores))
    counts = {*range(1, 5), *(1 << n for n in range(3, 12)), *cores, most}
    return sorted(n for n in counts if n <= most)


def lane_plans(network: Network, most_lanes: int | None) -> dict[int, Plan]:
    """The plan for each number of lanes."""
    plans = {n: plan_for_host(network, n) for n in lane_counts(most_lanes)}
    return {n: plan for n, plan in plans.items() if plan.lanes == n}
