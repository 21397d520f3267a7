"""Whole layers in little RAM that are about as fast as a plan in which no memory is shared."""

from __future__ import annotations

from ..memory.request import PlanRequest
from ..network import Network
from ..platform import Board
from ..platform.target import Target
from .choice import FoundPlan, PlanChoice, PlanMaker, PlannedChoice, trade_off_of, undominated_trade_offs
from .faster import LEAST_GAIN, speed_up
from .timing import Timing

MOST_TRIALS = 12  # outputs that are separated from their inputs one by one
SHARING = 0.10  # share of the plain plan's instructions that sharing memory may cost


def find_whole_layers(
    network: Network,
    board: Board | None = None,
    request: PlanRequest | None = None,
    *,
    target: Target | str | None = None,
    explain: bool = False,
) -> FoundPlan:
    """The plan of whole layers with the least RAM among those that are about as fast on the target as without sharing
    memory.

    The plan with the least RAM of all is returned beside it if that is slower; `explain` adds the savings of each
    technique.
    """
    maker = PlanMaker(network, Timing(target), request or PlanRequest(), board)
    fastest = fastest_whole_layers(maker)
    plan = maker.explained(fastest.choice) if explain else fastest.plan
    trades = undominated_trade_offs([trade_off_of(timed, fastest.cost) for timed in maker.all_made])
    is_least = fastest.peak == maker.make(PlanChoice()).peak
    return FoundPlan(plan, plan, () if is_least else trades)


def fastest_whole_layers(maker: PlanMaker) -> PlannedChoice:
    """The plan of whole layers in the least RAM; some sharing of memory is given up where it makes the plan slow."""
    least = _free_of_overlaps(maker, maker.make(PlanChoice()))
    if not any(least.timed.is_shared(index) for index in range(len(least.plan.program.stages))):
        return least
    budget = maker.timing.within(maker.plain().total, SHARING)
    if least.cost <= budget:
        return least
    apart = maker.make(PlanChoice(no_overlap=frozenset(layer.name for layer in maker.network.layers)))
    return speed_up(maker, least.choice, max(budget, apart.cost), apart.peak) or apart


def _free_of_overlaps(maker: PlanMaker, least: PlannedChoice) -> PlannedChoice:
    """The plan without those overlaps of output and input that cost instructions and save no RAM."""
    gains = {}
    for index, stage in enumerate(least.plan.program.stages):
        gain = least.timed.steps(index) - least.timed.without_overlap(index) if least.timed.is_shared(index) else 0.0
        if gain > LEAST_GAIN * least.cost:
            gains[frozenset(stage.layers)] = gain
    if not gains:
        return least
    wanted = sorted(gains, key=lambda layers: -gains[layers])[:MOST_TRIALS]
    best = least
    for layers in (frozenset().union(*wanted), *wanted):
        planned = maker.make(best.choice.with_no_overlap(layers))
        if planned.peak <= least.peak and planned.cost < best.cost:
            best = planned
    return best
