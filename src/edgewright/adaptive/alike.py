"""Plans for scenarios that are slices of one network, with the same groups of layers and the same rows per piece.

Stages that differ only in numbers share code, and their records are smaller if fewer numbers differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..application.preemption_points import turns_needed
from ..errors import Infeasible, InputError
from ..fusion.request import PlanRequest, make_plan
from ..fusion.timing import TimedPlan, Timing
from ..network import Network
from ..network.operators import Binary
from ..platform import Board
from ..platform.target import Target
from ..program import CHANNELS, FusionSchedule, Plan

MOST_SLOWER = 1.05  # estimated frame time with the groups of a larger scenario, relative to its own


def in_groups_of(
    larger: Plan, own: Plan, network: Network, request: PlanRequest, most: int, board: Board | None, target: Target
) -> Plan:
    """The network's plan with the fusion groups of a larger scenario's plan, if it takes at most `most` bytes.

    Otherwise `own`, the result of the search; also if that plan is larger or much faster. For its own groups the plan
    has its layers in network order.
    """
    schedules = _groups(larger)
    if not _fit(schedules, network):
        return own
    given = PlanRequest(
        ram=request.ram, pull_rows=request.pull_rows, schedules=tuple(schedules), outside=request.outside
    )
    try:
        plan = make_plan(network, given, board, target)
    except (InputError, Infeasible):  # the schedules are for other shapes
        return own
    costs = Timing(target, vectors=True).costs(network)
    is_slow = TimedPlan(plan, costs).total > MOST_SLOWER * TimedPlan(own, costs).total
    return own if is_slow or plan.peak_bytes > most else plan


def _groups(plan: Plan) -> Sequence[FusionSchedule]:
    return [stage.schedule for stage in plan.program.stages if not stage.schedule.is_undivided]


def _fit(schedules: Sequence[FusionSchedule], network: Network) -> bool:
    """Whether the network has these layers, and the schedules do not divide channels (there are fewer here)."""
    names = {name for schedule in schedules for name in schedule.layers}
    return bool(names) and names <= network.by_name.keys() and all(CHANNELS not in one.axes for one in schedules)


def common_turns(plans: Sequence[Plan], target: Target, piece: float) -> Mapping[str, int]:
    """By layer, the number of pieces so that no piece takes more than a share `piece` of any scenario's frame.

    If one element-wise layer of two tensors is divided, all are, at least in two: then they share their code.
    """
    found: dict[str, int] = {}
    pairs = {layer.name for plan in plans for layer in plan.network.layers if isinstance(layer.op, Binary)}
    for plan in plans:
        timed = TimedPlan(plan, Timing(target, vectors=True).costs(plan.network))
        for layer, count in turns_needed(plan, timed, piece).items():
            found[layer] = max(count, found.get(layer, 0))
    least = 2 if any(found[layer] > 1 for layer in pairs & found.keys()) else 1
    return {layer: max(count, least) if layer in pairs else count for layer, count in found.items()}
