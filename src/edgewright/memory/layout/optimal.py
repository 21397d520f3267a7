"""The main entry: the least peak, with proof if possible. Combines heuristics and exact models."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from ...errors import Infeasible
from .bound import lower_bound, tightest
from .coarsen import Coarse, MergeLevel, coarsen
from .exact import Budget, Status, fit, minimise
from .first_fit import best_first_fit, in_order, repair
from .grid import Grid, addresses, check_fixed, to_grid
from .lanes import to_lanes
from .problem import Item, LayoutProblem, NotFound, Placement, conflicts

_FIRST = Budget(conflicts=60, work=0.004)  # for one search of the first round; each round takes four times as much
_SMALL = 40  # boxes; in smaller problems a proof is as quick as a placement
_MANY = 80  # buffers; in smaller problems an exact search for the last bytes is quick
_FINE = 128  # a peak within 1/128 of the target ends a search
_SEARCHES = (  # these solve MiniMalloc's instances, quickest first
    (MergeLevel.BLOCKS, "crowding"),
    (MergeLevel.BLOCKS, "life"),
    (MergeLevel.CHAINS, "life"),
    (MergeLevel.NOTHING, "crowding"),
    (MergeLevel.NOTHING, "life"),
    (MergeLevel.BLOCKS, "area"),
)


class LayoutEffort(Enum):
    """The effort for a fit and for a proof: rounds of searches."""

    FIRST_FIT = -1  # only checks whether it fits: no search
    QUICK = 0  # first fit; one round of searches for a placement that fits
    NORMAL = 2
    THOROUGH = 4  # for final results

    @property
    def proof(self) -> Budget:
        """The budget of the final search for the optimum."""
        scale = 1 << 2 * max(0, self.value)
        return Budget(_FIRST.conflicts * scale, _FIRST.work * scale / 4)


@dataclass(frozen=True)
class _Answer:
    offsets: list[int]
    peak: int
    bound: int
    method: str


def place_optimal(
    problem: LayoutProblem, capacity: int | None = None, effort: LayoutEffort = LayoutEffort.NORMAL
) -> Placement:
    """The placement with the least peak or, given a capacity in bytes, one that fits.

    There are four outcomes: proven best (`optimal`), found (`bound` < `peak`), proven impossible (`Infeasible`) and
    given up (`NotFound`). Parts of the problem that share no live buffer are solved one by one. `conflicts` checks the
    result.
    """
    placement = _placed(problem, capacity, effort)
    assert not (bad := conflicts(problem, placement)), f"placed wrongly: {bad[:5]}"
    return placement


def _placed(problem: LayoutProblem, capacity: int | None, effort: LayoutEffort) -> Placement:
    bound = lower_bound(problem)
    if capacity is not None and bound > capacity:
        raise Infeasible(f"no placement exists in {capacity} bytes; {_crowd(problem)}")
    if capacity is not None or not problem.gaps:
        return _place(problem, bound, capacity, effort)
    first = _place(problem, bound, None, LayoutEffort.QUICK)
    if first.optimal or effort is LayoutEffort.QUICK:
        return first
    lanes = to_lanes(problem)
    rough = _place(lanes.problem, lower_bound(lanes.problem), None, effort)
    better = min(first, replace(lanes.refine(rough, problem), bound=bound), key=lambda placement: placement.peak)
    if len(problem.items) > _MANY and better.peak <= bound + bound // _FINE:
        return better
    searched = _place(problem, bound, None, effort)
    best = min(searched, better, key=lambda placement: placement.peak)
    return replace(best, bound=searched.bound)


def _place(problem: LayoutProblem, bound: int, capacity: int | None, effort: LayoutEffort) -> Placement:
    parts = sorted(((lower_bound(part), n, part) for n, part in enumerate(_parts(problem))), reverse=True)
    offsets: dict[str, int] = {}
    peak = 0
    methods: list[str] = []
    for part_bound, _, part in parts:
        grid = to_grid(part)
        check_fixed(part, grid)
        if capacity is None:
            answer = _least(grid, part_bound, max(bound, peak), effort)
        else:
            answer = _within(part, grid, part_bound, capacity, effort)
        offsets |= addresses(part, grid, answer.offsets)
        peak, bound = max(peak, answer.peak), max(bound, answer.bound)
        methods += [] if answer.method in methods else [answer.method]
    return Placement({i.name: offsets[i.name] for i in problem.items}, peak, bound, "; ".join(methods))


def _least(grid: Grid, bound: int, enough: int, effort: LayoutEffort) -> _Answer:
    """The lowest peak found; any peak of at most `enough` suffices, since another part needs that much."""
    offsets, method = best_first_fit(grid, enough, climb=True)
    best = _Answer(offsets, grid.peak(offsets), bound, method)
    if best.peak <= enough or effort is LayoutEffort.QUICK:
        return best
    status, placed = _search(grid, enough, effort.value, offsets)
    if placed is not None:
        return replace(placed, bound=bound)
    low = enough + (status is Status.IMPOSSIBLE)  # a peak this low is not excluded
    best = replace(best, bound=low if status is Status.IMPOSSIBLE else bound)
    if len(grid.boxes) > _SMALL:
        best = _bisect(grid, low, best)
    proven, proven_bound = minimise(grid, best.offsets, best.bound, effort.proof)
    if (peak := grid.peak(proven)) < best.peak:
        best = _Answer(proven, peak, proven_bound, "search for the least peak")
    return replace(best, bound=proven_bound)


def _bisect(grid: Grid, low: int, best: _Answer) -> _Answer:
    """Improves `best` by short searches below its peak; a limit at which they fail counts as too low."""
    high = best.peak
    while high - low > max(grid.unit, high // _FINE):
        middle = (low + high) // 2
        _, placed = _search(grid, middle, 1, best.offsets, most=2)
        if placed is None:
            low = middle + 1
        else:
            best = replace(placed, bound=best.bound)
            high = best.peak
    return best


def _within(part: LayoutProblem, grid: Grid, bound: int, capacity: int, effort: LayoutEffort) -> _Answer:
    """Any placement within `capacity` bytes."""
    offsets, method = best_first_fit(grid, capacity, climb=False)
    if (peak := grid.peak(offsets)) <= capacity:
        return _Answer(offsets, peak, bound, method)
    rounds = 0 if effort is LayoutEffort.FIRST_FIT else max(1, effort.value)
    status, placed = _search(grid, capacity, rounds, offsets)
    if placed is not None:
        return replace(placed, bound=bound)
    if status is Status.IMPOSSIBLE:
        raise Infeasible(f"no placement exists in {capacity} bytes, as an exhaustive search showed; {_crowd(part)}")
    raise NotFound(f"no placement found in {capacity} bytes, though one may exist; {_crowd(part)}")


def _search(
    grid: Grid, limit: int, rounds: int, near: list[int], most: int = len(_SEARCHES)
) -> tuple[Status, _Answer | None]:
    """A placement within `limit` bytes: `near` repaired, else searches in rotation, longer in each round."""
    if (fixed := repair(grid, near, limit, _FIRST)) is not None:
        return Status.FOUND, _Answer(fixed, grid.peak(fixed), 0, "first fit, repaired")
    searches = list(_ways(grid))[:most] if rounds else []
    for n in range(rounds):
        budget = Budget(_FIRST.conflicts * 4**n, _FIRST.work * 4**n)
        for merge, coarse, order in searches:
            status, offsets = fit(coarse.grid, limit, in_order(coarse.grid, order), budget)
            if status is Status.FOUND:
                fine = coarse.refine(offsets)
                return status, _Answer(fine, grid.peak(fine), 0, f"search over {merge.value} by {order}")
            if status is Status.IMPOSSIBLE and merge is MergeLevel.NOTHING:
                return status, None
    return Status.GAVE_UP, None


def _ways(grid: Grid) -> Iterator[tuple[MergeLevel, Coarse, str]]:
    """The searches worth trying, without merges that merge nothing."""
    coarse = {merge: coarsen(grid, merge) for merge in MergeLevel}
    single = len(grid.boxes)
    ways = _SEARCHES if single > _SMALL else sorted(_SEARCHES, key=lambda way: way[0] is not MergeLevel.NOTHING)
    for merge, order in ways:
        if merge is MergeLevel.NOTHING or len(coarse[merge].grid.boxes) < single:
            yield merge, coarse[merge], order


def _parts(problem: LayoutProblem) -> Iterator[LayoutProblem]:
    """The problem cut at every time at which no buffer is live."""
    items: list[list[Item]] = []
    until = None
    for item in sorted(problem.items, key=lambda i: i.start):
        if until is None or item.start >= until:
            items.append([])
        items[-1].append(item)
        until = item.end if until is None else max(until, item.end)
    for part in items:
        names = {i.name for i in part}
        gaps = {pair: g for pair, g in problem.gaps.items() if pair[0] in names and pair[1] in names}
        yield LayoutProblem(tuple(part), gaps, problem.alignment)


def _crowd(problem: LayoutProblem) -> str:
    """The largest buffers at the tightest moment and what to do, for an error message."""
    crowd = tightest(problem)
    largest = sorted(crowd.items, key=lambda i: -i.size)
    names = ", ".join(f"{i.name} ({i.size})" for i in largest[:6]) + (", ..." if len(largest) > 6 else "")
    return (
        f"{crowd.size} bytes are live at once at time {crowd.time}: {names}. "
        "Raise the capacity, or shrink one of these buffers."
    )
