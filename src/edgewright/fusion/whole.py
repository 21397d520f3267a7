"""Whole layers in little RAM that take about as long as with nothing shared."""

from __future__ import annotations

from collections.abc import Collection

from ..network import Network
from ..platform import Board
from ..platform.target import Target
from .choice import FoundPlan, PlanChoice, PlanMaker, trade_off_of, undominated_trade_offs
from .faster import LEAST_GAIN, PlannedChoice, speed_up
from .timing import Timing

MOST_TRIALS = 12  # of layers that are kept apart one by one
SHARING = 0.10  # of the instructions of the plain plan: what sharing memory may cost


def find_whole_layers(
    network: Network,
    board: Board | None = None,
    *,
    alignment: int | None = None,
    pull_rows: bool = False,
    target: Target | str | None = None,
    explain: bool = False,
    outside: Collection[str] = (),
) -> FoundPlan:
    """The plan of whole layers that needs the least RAM and takes about as long on the target as one without sharing.

    Beside it stands the plan with the least RAM, where that would take longer; `explain` adds what techniques saved.
    """
    maker = PlanMaker(network, Timing(target), board, alignment, pull_rows, outside)
    found = fastest_whole_layers(maker)
    plan = maker.explained(found.choice) if explain else found.plan
    trades = undominated_trade_offs([trade_off_of(timed, found.cost) for timed in maker.all_made])
    is_least = found.peak == maker.made(PlanChoice()).plan.peak_bytes
    return FoundPlan(plan, plan, () if is_least else trades)


def fastest_whole_layers(maker: PlanMaker) -> PlannedChoice:
    """The plan of whole layers in the least RAM; where sharing memory makes it slow, with less of that."""
    least = _free_of_overlaps(maker, PlannedChoice(PlanChoice(), maker.made(PlanChoice())))
    if not any(least.timed.is_shared(index) for index in range(len(least.plan.program.stages))):
        return least
    budget = maker.timing.within(maker.plain().total, SHARING)
    if least.cost <= budget:
        return least
    everything = PlanChoice(no_overlap=frozenset(layer.name for layer in maker.network.layers))
    apart = PlannedChoice(everything, maker.made(everything))
    return speed_up(maker, least.choice, max(budget, apart.cost), apart.peak) or apart


def _free_of_overlaps(maker: PlanMaker, least: PlannedChoice) -> PlannedChoice:
    """The plan with layers off their inputs wherever that is faster and takes no more RAM."""
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
        choice = best.choice.with_no_overlap(layers)
        found = PlannedChoice(choice, maker.made(choice))
        if found.peak <= least.peak and found.cost < best.cost:
            best = found
    return best
