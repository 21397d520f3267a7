"""Makes the plan that a `PlanRequest` asks for: whole layers, rows, tiles by hand, or a search."""

from __future__ import annotations

import os
from dataclasses import replace

from .. import text
from ..cpsat import has_solver
from ..errors import EdgewrightError
from ..memory import Techniques, fit
from ..memory import plan as plan_network
from ..memory.planner import phased_bound
from ..memory.request import Method, PlanRequest
from ..network import Network
from ..platform import Board, load_board
from ..platform.target import Architecture, Target, chosen_target
from ..program import Plan, Stage
from ..program.techniques import technique
from ..progress import tell
from .choice import INTERRUPTED, FoundPlan, is_interrupted
from .lanes import with_lanes
from .paper.explore import explore
from .search import PlanSearch
from .whole import find_whole_layers

__all__ = ["Method", "PlanRequest", "find", "fitted_words", "make_plan", "plan_notes"]

UNSOLVED = "no proof that this is the least: exact searches need OR-Tools: pip install 'edgewright[solver]'"


def make_plan(
    network: Network, request: PlanRequest, board: Board | None = None, target: Target | str | None = None
) -> Plan:
    """The plan for the request. Instructions are those of `target`, or else of the board's target."""
    return find(network, request, board, target).plan


def find(
    network: Network,
    request: PlanRequest,
    board: Board | None = None,
    target: Target | str | None = None,
    *,
    explain: bool = True,
) -> FoundPlan:
    """The plan for the request, and the alternatives that the search found.

    With `explain`, plans of whole layers report the savings of each technique, and a plan that pulls rows notes where
    holding the inputs would take less RAM.
    """
    answer = _found(network, request, board, target, explain)
    if request.lanes > 1:
        core = chosen_target(board, target)
        answer = replace(answer, plan=with_lanes(network, answer.plan, request.lanes, board, core, request.ram))
    plan = answer.plan
    bare = Techniques(outside=frozenset(request.outside))
    if not explain or not request.pull_rows or plan.peak_bytes <= phased_bound(network, bare, plan.alignment):
        return answer  # nothing is pulled, or no plan that holds the inputs needs less
    resident = _found(network, replace(request, pull_rows=False), board, target, explain).plan.peak_bytes
    told = replace(plan, resident_bytes=resident if resident < plan.peak_bytes else None)
    return replace(answer, plan=told)


def _found(
    network: Network, request: PlanRequest, board: Board | None, target: Target | str | None, explain: bool
) -> FoundPlan:
    if request.is_by_hand:
        return FoundPlan(
            plan_network(network, board, replace(request, schedules=request.schedules or None), explain=explain)
        )
    if request.method is Method.PAPER:
        return FoundPlan(explore(network, board=board, alignment=request.alignment, pull_rows=request.pull_rows).plan)
    core = chosen_target(board, target)
    ram = None if request.minimise_ram else request.ram or _largest(board)
    if not request.is_search:
        tell("planning whole layers")
        whole = find_whole_layers(network, board, request, target=core, explain=explain)
        if ram is None or fit(whole.plan, board, request.ram).ram_fits:
            return whole
    search = PlanSearch(network, request if ram is not None else request.with_usual_limits, board, core, room=ram or 0)
    return search.least() if ram is None else search.fitting(ram)


def fitted_words(plan: Plan, request: PlanRequest) -> str:
    """A phrase on what was done automatically to make the plan fit; empty if nothing was."""
    divided = [stage for stage in plan.program.stages if not stage.schedule.is_undivided]
    stages = [stage for stage in divided if not _is_only_pulling(plan, stage)]
    if request.is_by_hand or request.is_search or not stages:
        return ""
    how = " and ".join(dict.fromkeys(technique(plan, stage).label for stage in stages))
    extra = plan.macs / max(1, plan.macs_plain) - 1
    macs = f"{extra:.1%} more MACs" if extra > 0 else "no extra MACs"
    return f"whole layers do not fit: some run in parts ({how}), with {macs}"


def _is_only_pulling(plan: Plan, stage: Stage) -> bool:
    """Whether the stage is a single layer that runs row by row only because its input arrives row by row."""
    return len(stage.layers) == 1 and plan.pulls(stage)


def plan_notes(plan: Plan, request: PlanRequest | None) -> tuple[str, ...]:
    """Notes about the search for the plan; `request` is None for a plan that was loaded."""
    asked = plan.lanes if request is None else request.lanes
    lanes = _lane_words(plan, asked) if asked > 1 else ""
    interrupted = f"the search for the plan was {INTERRUPTED}" if is_interrupted(plan) else ""
    unsolved = "" if plan.optimal or plan.is_in_parts or has_solver() else UNSOLVED
    return tuple(filter(None, (fitted_words(plan, request) if request else "", lanes, interrupted, unsolved)))


def _lane_words(plan: Plan, asked: int) -> str:
    """How many stages run in lanes, and the cost if there are more lanes than cores."""
    shared = sum(stage.schedule.lanes > 1 for stage in plan.program.stages)
    if not shared:
        return f"no stage is worth sharing among {asked} lanes: barriers would cost more than they save"
    cores = _cores(plan)
    if cores is not None and cores < plan.lanes:
        return (
            f"{plan.lanes} lanes share {text.plural(cores, 'core')}: they take turns, wait for each other at "
            f"{text.plural(shared + 1, 'barrier')} of a run, and are slower than --lanes {cores}"
        )
    return f"{shared} of {text.plural(len(plan.program.stages), 'stage')} run in {plan.lanes} lanes"


def _cores(plan: Plan) -> int | None:
    """The number of cores of the plan's hardware, if known."""
    if plan.board is None:
        is_here = plan.target is None or plan.target.architecture is Architecture.HOST
        return len(os.sched_getaffinity(0)) if is_here and hasattr(os, "sched_getaffinity") else None
    try:
        return max(processor.count for processor in load_board(plan.board).processors)
    except EdgewrightError:  # a board file of the user's: the plan only knows its name
        return None


def _largest(board: Board | None) -> int | None:
    return max((memory.usable for memory in board.ram), default=None) if board else None
