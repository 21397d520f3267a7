"""The best execution of whole layers: views and copies, order, addresses.

Memory is shared only if that lowers the peak (`drop_needless_overlaps`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import accumulate

from ..errors import Infeasible
from ..network import Network, Shape
from ..network.operators import Concat, Grain, Reshape, Slice
from .in_place import with_planes
from .layout import LayoutEffort, LayoutProblem, Placement, place_optimal
from .ordering import Order, order
from .problems import PlanningProblem
from .techniques import Techniques
from .views import Views, find_views, no_views, with_copies

MOST_SEARCHED = 500  # buffers; for more, an exact search is slow and gains little over first fit
MOST_TRIALS = 24  # other decisions tried about a concat or slice

MOST_DROPS = 16  # layouts that keep one more pair apart
MOST_REPLACED = 100  # buffers; for more, these layouts only use first fit

Pair = tuple[str, str]
# Layers of one kind have the same operator and shapes.
Kind = tuple[Concat | Slice, tuple[Shape, ...]]


@dataclass(frozen=True)
class Solution:
    """One way to run a network: shared memory, order, addresses."""

    problem: PlanningProblem
    order: Order
    placement: Placement

    @property
    def peak(self) -> int:
        return self.placement.peak


@dataclass(frozen=True)
class ViewChoice:
    """Which views to replace by copies, because they keep a larger buffer alive for longer."""

    copied: frozenset[str] = frozenset()  # concats and slices with an output of their own
    moved: frozenset[str] = frozenset()  # tensors that stay outside a concat's buffer until it is needed


def solve(
    network: Network, techniques: Techniques, alignment: int, bound: int, most_trials: int = MOST_TRIALS
) -> Solution:
    """The best solution found over the choice of views and copies; `bound` ends the search early.

    Views are nearly always right, so the search starts with all of them and changes one decision at a time at the
    fullest stage. Orders are compared first: a layout cannot use less memory than the lower bound of its order.
    """
    if not techniques.views:
        return place(*ordered(network, no_views(network), techniques, alignment))
    choice = ViewChoice()
    best = place(*_chosen(network, choice, techniques, alignment))
    movers = [layer for layer in network.layers if layer.op.may_be_view]
    everything = ViewChoice(copied=frozenset(layer.name for layer in movers))
    tried = {choice}
    # A reshape is always best as a view.
    has_choice = any(not isinstance(layer.op, Reshape) for layer in movers)
    while has_choice and best.peak > bound:
        trials = [everything, *_alternatives(network, best, choice, most_trials)]
        trials = [trial for trial in trials if trial not in tried][: most_trials - len(tried)]
        tried.update(trials)
        start = best.peak
        for trial in trials:
            problem, order = _chosen(network, trial, techniques, alignment, best.peak)
            if order.peak < best.peak:
                solution = place(problem, order)
                if solution.peak < best.peak:
                    best, choice = solution, trial
        if best.peak == start:
            break
    return best


def _alternatives(network: Network, solution: Solution, choice: ViewChoice, most: int) -> list[ViewChoice]:
    """Choices that change the treatment of one concat or slice in memory at the fullest stage.

    In a network with repeated blocks all of them must change before the peak does, so similar layers are decided
    together. If there are more kinds than trials, as in unrolled loops, slices at different positions count as one
    kind.
    """
    choices = _with_alternatives(network, solution, choice, False)
    return choices if len(choices) < most else _with_alternatives(network, solution, choice, True)


def _with_alternatives(network: Network, solution: Solution, choice: ViewChoice, is_broad: bool) -> list[ViewChoice]:
    """The choices of `_alternatives`; with `is_broad`, regardless of where slices begin."""
    problem = solution.problem
    spans = problem.lifetimes(solution.order.steps)
    fullest = problem.fullest(solution.order.steps)
    members = problem.views.members
    parts: dict[str, str] = {}  # a concat's buffer -> the part written first
    for layer in problem.layers:
        root = problem.views.places[layer.output].root
        if any(isinstance(reader.op, Concat) for reader in problem.network.readers[layer.output]):
            parts.setdefault(root, layer.output)
    alike: dict[Kind, set[str]] = {}
    in_the_way: dict[Kind, bool] = {}  # in network order
    for layer in network.layers:
        if isinstance(layer.op, Concat | Slice):
            op = layer.op
            if is_broad and isinstance(op, Slice):
                op = replace(op, starts=(0,) * len(op.starts))
            kind = (op, network.shapes(layer))
            alike.setdefault(kind, set()).add(layer.name)
            root = problem.views.places[layer.output].root
            first, last = spans[root]
            in_the_way[kind] = in_the_way.get(kind, False) or (first <= fullest <= last and len(members[root]) > 1)
    choices = []
    for kind in (kind for kind, matters in in_the_way.items() if matters):
        roots = {problem.views.places[network.by_name[name].output].root for name in alike[kind]}
        # The part written first may wait outside, unless it is already a copy.
        early = {parts[root] for root in roots if root in parts and parts[root] in network.tensors}
        if early - choice.moved:
            choices.append(replace(choice, moved=choice.moved | early))
        choices.append(replace(choice, copied=choice.copied ^ alike[kind]))
    return choices


def _chosen(
    network: Network, choice: ViewChoice, techniques: Techniques, alignment: int, below: int | None = None
) -> tuple[PlanningProblem, Order]:
    moved = with_copies(network, choice.moved)
    copies = {layer.name for layer in moved.layers} - {layer.name for layer in network.layers}
    views = find_views(moved, choice.copied | copies, techniques.outside)
    return ordered(moved, views, techniques, alignment, below)


def ordered(
    network: Network, views: Views, techniques: Techniques, alignment: int, below: int | None = None
) -> tuple[PlanningProblem, Order]:
    """The problem with these views, and its order; with `below`, only a lower peak is of interest."""
    problem = PlanningProblem(network, with_planes(network, views, techniques, alignment), techniques, alignment)
    return problem, order(problem.order_problem(), below=below)


def place(
    problem: PlanningProblem, order: Order, capacity: int | None = None, effort: LayoutEffort | None = None
) -> Solution:
    """The solution with addresses; `effort` depends on the number of buffers by default."""
    layout = problem.layout_problem(order.steps)
    if effort is None:
        effort = LayoutEffort.NORMAL if len(layout.items) <= MOST_SEARCHED else LayoutEffort.QUICK
    return Solution(problem, order, place_optimal(layout, capacity, effort))


def drop_needless_overlaps(solution: Solution) -> Solution:
    """The solution with the same peak in which the fewest layers share memory with their input.

    A layer whose output is separate from its input can run in any order, so kernels compute several pixels at once and
    read inputs again; with shared memory they must go pixel by pixel.
    """
    problem = solution.problem.layout_problem(solution.order.steps)
    pairs = _needless_overlaps(solution, problem)
    best = _without(problem, pairs, solution.peak)
    if best is None:
        dropped: list[Pair] = []
        for pair in pairs[:MOST_DROPS]:
            tighter = _without(problem, [*dropped, pair], solution.peak)
            if tighter is not None:
                best = tighter
                dropped.append(pair)
    if best is None:
        return solution
    placement = replace(solution.placement, offsets=best.offsets, peak=best.peak)
    return replace(solution, placement=placement)


def _needless_overlaps(solution: Solution, layout: LayoutProblem) -> list[Pair]:
    """The pairs that share memory although there is space for both, the most expensive first.

    Element-wise layers lose nothing by working in place, and are left alone.
    """
    problem = solution.problem
    writer = {problem.views.places[layer.output].root: layer for layer in problem.layers}
    birth = {item.name: item.start for item in layout.items}
    change: Counter[int] = Counter()  # change of live bytes at each time
    for item in layout.items:
        change[item.start] += item.size
        change[item.end] -= item.size
    times = sorted(change)
    held = dict(zip(times, accumulate(change[time] for time in times), strict=True))
    pairs = [
        (x, y) for x, y in layout.gaps if writer[y].op.grain is not Grain.ELEMENT and held[birth[y]] <= solution.peak
    ]
    return sorted(pairs, key=lambda pair: -problem.network.macs(writer[pair[1]]))


def _without(problem: LayoutProblem, pairs: Collection[Pair], peak: int) -> Placement | None:
    """A placement within `peak` bytes in which these pairs do not share."""
    if not pairs:
        return None
    kept = {pair: gap for pair, gap in problem.gaps.items() if pair not in pairs}
    apart = replace(problem, gaps=kept)
    effort = LayoutEffort.NORMAL if len(problem.items) < MOST_REPLACED else LayoutEffort.QUICK
    try:
        placement = place_optimal(apart, capacity=peak, effort=effort)
    except Infeasible:
        return None
    return placement if placement.peak <= peak else None
