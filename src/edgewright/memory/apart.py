"""Sharing memory only where it lowers the peak: a layer whose output lies apart from its input runs in any order.

Kernels then compute several pixels at once and read inputs again; where memory is shared they must go pixel by pixel.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ..errors import Infeasible
from ..network.operators import Grain
from .layout import LayoutEffort, LayoutProblem, Placement, conflicts, place_optimal
from .ordering import Order
from .problems import PlanningProblem

MOST_TRIALS = 16  # of layouts that keep one more pair apart
MOST_BUFFERS = 100  # with more, only first fit is tried

Pair = tuple[str, str]


@dataclass(frozen=True)
class Solution:
    """One way to run a network: what shares memory, the order, the addresses."""

    work: PlanningProblem
    order: Order
    placement: Placement

    @property
    def peak(self) -> int:
        return self.placement.peak


def judge(problem: LayoutProblem, placement: Placement) -> None:
    """The independent check runs in production too: a plan that fails it is our bug and must not leave the house."""
    found = conflicts(problem, placement)
    assert not found, f"buffers overlap: {found[:3]}"


def moved_apart(solution: Solution) -> Solution:
    """The solution with the same peak in which as few layers as possible share memory with their input."""
    problem = solution.work.layout_problem(solution.order.steps)
    pairs = _idle(solution, problem)
    best = _without(problem, pairs, solution.peak)
    if best is None:
        dropped: list[Pair] = []
        for pair in pairs[:MOST_TRIALS]:
            found = _without(problem, [*dropped, pair], solution.peak)
            if found is not None:
                best = found
                dropped.append(pair)
    if best is None:
        return solution
    placement = replace(solution.placement, offsets=best.offsets, peak=best.peak)
    return replace(solution, placement=placement)


def _idle(solution: Solution, problem: LayoutProblem) -> list[Pair]:
    """The pairs that share memory although there is room for both, those with the most work first.

    Layers that go element by element lose nothing by working in place, and are left alone.
    """
    work = solution.work
    writer = {work.views.places[layer.output].root: layer for layer in work.layers}
    birth = {item.name: item.start for item in problem.items}
    room = {
        start: solution.peak - sum(i.size for i in problem.items if i.start <= start < i.end)
        for start in set(birth.values())
    }
    pairs = [(x, y) for x, y in problem.gaps if writer[y].op.grain is not Grain.ELEMENT and room[birth[y]] >= 0]
    return sorted(pairs, key=lambda pair: -work.network.macs(writer[pair[1]]))


def _without(problem: LayoutProblem, pairs: Collection[Pair], peak: int) -> Placement | None:
    """A placement within `peak` bytes in which these pairs do not share."""
    if not pairs:
        return None
    kept = {pair: gap for pair, gap in problem.gaps.items() if pair not in pairs}
    apart = replace(problem, gaps=kept)
    effort = LayoutEffort.NORMAL if len(problem.items) < MOST_BUFFERS else LayoutEffort.QUICK
    try:
        found = place_optimal(apart, capacity=peak, effort=effort)
    except Infeasible:
        return None
    judge(apart, found)
    return found if found.peak <= peak else None
