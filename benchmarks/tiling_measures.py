"""One model measured: searched in every way, its plans compiled and compared with the reference, TiGrIS beside it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

import edgewright
from edgewright.emit import TARGETS, emit, native
from edgewright.emit.verify import QUICK, verify
from edgewright.errors import EdgewrightError, Infeasible
from edgewright.fusion.paper.explore import explore
from edgewright.fusion.search import PlanSearch
from edgewright.kernels.select import close_plan
from edgewright.memory.request import PlanRequest
from edgewright.network import Network, random_inputs
from edgewright.network.reference import compare, reference
from edgewright.program import Plan
from memory import tigris
from tiling_bars import LARGE_OVERHEAD, QUANTISED

Search = Callable[[Network], Plan]
CHIP = "cortex-m4"
_best_of_tigris = cache(tigris)  # some files are measured twice


@dataclass(frozen=True)
class Case:
    """A model to measure: its file, and whether it takes integers where the file takes real numbers."""

    path: Path
    is_quantised: bool = False

    @property
    def name(self) -> str:
        return self.path.stem + (QUANTISED if self.is_quantised else "")

    def read(self) -> Network:
        return edgewright.read_model(self.path, quantised_input=self.is_quantised)


@dataclass(frozen=True)
class Checked:
    """The compiled plan beside the reference: "exact", "agrees", or what is wrong; what it executed on the chip."""

    verdict: str
    is_right: bool
    instructions: int | None = None


@dataclass(frozen=True)
class Point:
    """What one search came to."""

    peak_bytes: int
    macs: int
    overhead: float  # MACs beyond those of the untiled network, as a share of them
    seconds: float
    checked: Checked | None = None


@dataclass(frozen=True)
class Row:
    """What one model came to; a search that has nothing to offer is missing among the points."""

    model: str
    layers: int
    points: Mapping[str, Point]
    tigris_bytes: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def untiled(self) -> Point:
        return self.points["untiled"]

    def saving(self, way: str) -> float:
        return 1 - self.points[way].peak_bytes / self.untiled.peak_bytes


def untiled(network: Network) -> Plan:
    """Order and layout only."""
    return edgewright.plan(network, plain=True, explain=False)


def explored(method: str, network: Network) -> Plan:
    """By the paper's method (S 4.3), with one kind of tiling."""
    return explore(network, methods={method}).plan


def joint(overhead: float, is_pulled: bool, network: Network) -> Plan:
    return PlanSearch(network, PlanRequest(max_overhead=overhead, pull_rows=is_pulled)).least().plan


SMALL: dict[str, Search] = {
    "untiled": untiled,
    "ffmt": partial(explored, "ffmt"),
    "fdt": partial(explored, "fdt"),
    "joint_5": partial(joint, 0.05, False),
    "joint_40": partial(joint, 0.40, False),
    "joint_5_pulled": partial(joint, 0.05, True),
    "joint_40_pulled": partial(joint, 0.40, True),
}
LARGE: dict[str, Search] = {
    "untiled": untiled,
    "joint": partial(joint, LARGE_OVERHEAD, False),
    "joint_pulled": partial(joint, LARGE_OVERHEAD, True),
}
COMPILED = ("untiled", "joint_5", "joint_40", "joint_5_pulled", "joint_40_pulled")


def measure_small(case: Case, has_tigris: bool) -> Row:
    """All searches; the joint ones' plans run on the virtual board."""
    network = case.read()
    row, plans = _searched(case.name, network, SMALL)
    figures = _each_once({way: plans[way] for way in COMPILED if way in plans}, partial(on_chip, case))
    return _with_tigris(_with_checks(row, figures), case, has_tigris)


def measure_large(case: Case, has_tigris: bool) -> Row:
    """The joint search beside the untiled network; the plans run on this machine."""
    network = case.read()
    row, plans = _searched(case.name, network, LARGE)
    figures = _each_once({way: plans[way] for way in plans if way != "untiled"}, partial(on_host, case))
    return _with_tigris(_with_checks(row, figures), case, has_tigris)


def _searched(name: str, network: Network, searches: Mapping[str, Search]) -> tuple[Row, dict[str, Plan]]:
    points: dict[str, Point] = {}
    plans: dict[str, Plan] = {}
    row = Row(name, len(network.layers), points)
    for way, search in searches.items():
        print(f"{name}: {way} …", file=sys.stderr)
        start = time.perf_counter()
        try:
            plan = search(network)
        except Infeasible as error:  # no input that can be pulled
            row.notes.append(f"{way}: {error}")
            continue
        seconds = time.perf_counter() - start
        plans[way] = plan
        points[way] = Point(plan.peak_bytes, plan.macs, plan.macs / max(1, plan.macs_plain) - 1, seconds)
    return row, plans


def _each_once(plans: Mapping[str, Plan], check: Callable[[Plan], Checked]) -> dict[str, Checked]:
    """What each plan came to; two searches often find the same."""
    found: list[tuple[Plan, Checked]] = []
    result: dict[str, Checked] = {}
    for way, plan in plans.items():
        known = next((checked for other, checked in found if _are_same(plan, other)), None)
        result[way] = known or check(plan)
        found.append((plan, result[way]))
    return result


def _are_same(one: Plan, other: Plan) -> bool:
    return (one.program.stages, one.buffers, one.views) == (other.program.stages, other.buffers, other.views)


def _with_checks(row: Row, checks: Mapping[str, Checked]) -> Row:
    points = {way: replace(point, checked=checks.get(way)) for way, point in row.points.items()}
    return replace(row, points=points)


def _with_tigris(row: Row, case: Case, has_tigris: bool) -> Row:
    print(f"{case.name}: TiGrIS …", file=sys.stderr)
    return replace(row, tigris_bytes=_best_of_tigris(case.path)) if has_tigris else row


def on_chip(case: Case, plan: Plan) -> Checked:
    """Outputs on this machine and on the virtual board, RAM as linked, instructions."""
    print(f"{case.name}: {CHIP} at {plan.peak_bytes:,} B …", file=sys.stderr)
    try:
        figures = verify(emit(close_plan(plan, TARGETS[CHIP]), "net"), case.path, count=1)
    except EdgewrightError as error:
        return Checked(str(error), False)
    if figures.instructions is None:
        return Checked("; ".join(figures.notes), False)
    is_exact = all(check.difference == 0 for check in figures.checks)
    return Checked("exact" if is_exact else "agrees", True, figures.instructions)


def on_host(case: Case, plan: Plan) -> Checked:
    """Outputs on this machine."""
    print(f"{case.name}: this machine at {plan.peak_bytes:,} B …", file=sys.stderr)
    network = plan.network
    inputs = random_inputs(network, seed=1)
    try:
        built = native.build(emit(close_plan(plan, TARGETS["host"], network), "net"), flags=QUICK)
        difference = compare(network, built.run(inputs, poison=0xA5), reference(case.path, network).run(inputs))
    except EdgewrightError as error:
        return Checked(str(error), False)
    if not difference.passes:
        return Checked(str(difference), False)
    return Checked("exact" if difference.largest == 0 else "agrees", True)
