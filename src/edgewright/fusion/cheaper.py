"""What `--minimise ram` would give beside a plan of whole layers: the RAM that a proof for whole layers leaves open."""

from __future__ import annotations

from dataclasses import replace

from ..board.toolchain import builds_with_zig
from ..kernels.cost.estimate import estimate, modelled
from ..platform import Board
from ..platform.target import Target
from ..program import CheaperPlan, Plan
from .request import PlanRequest, find

QUICK = 40  # layers of networks whose least RAM is found in a few seconds


def with_cheaper(plan: Plan, request: PlanRequest, board: Board | None, core: Target | None) -> Plan:
    """The plan with what layers in parts would take, where they are whole by default and finding out is quick."""
    is_default = request.may_be_fitted and not request.is_search
    if not is_default or plan.is_in_parts or len(plan.network.layers) > QUICK:
        return plan
    least = find(plan.network, replace(request, ram=None, minimise_ram=True), board, core, explain=False).plan
    if least.peak_bytes >= plan.peak_bytes:
        return replace(plan, cheaper=CheaperPlan(plan.peak_bytes, 0.0))
    extra = None
    if core is not None and core.name in modelled():
        zig = builds_with_zig(core)
        if before := estimate(plan, core, zig=zig).instructions:
            extra = estimate(least, core, zig=zig).instructions / before - 1
    return replace(plan, cheaper=CheaperPlan(least.peak_bytes, extra))
