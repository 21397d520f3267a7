"""Lower bounds: the bytes that are live at once, and the buffers that determine the peak."""

from __future__ import annotations

from dataclasses import dataclass

from .problem import Item, LayoutProblem, Placement, align_up


@dataclass(frozen=True)
class TightestMoment:
    """The moment that needs the most memory: `size` bytes for `items`, which are live at `time`."""

    time: int
    size: int
    items: tuple[Item, ...]


def lower_bound(problem: LayoutProblem) -> int:
    """A lower bound of the peak: the most bytes live at once, less what special pairs can share."""
    return tightest(problem).size


def tightest(problem: LayoutProblem) -> TightestMoment:
    """The moment that needs the most memory. Only starts of lifetimes can be such moments."""
    shared = _most_shared(problem)
    pads = {i.name: -i.size % problem.alignment for i in problem.items}
    best = TightestMoment(0, 0, ())
    alive: list[Item] = []
    events = sorted(problem.items, key=lambda i: i.start)
    for n, item in enumerate(events):
        alive = [other for other in alive if other.end > item.start]
        alive.append(item)
        if n + 1 < len(events) and events[n + 1].start == item.start:
            continue
        most = sum(other.size + pads[other.name] for other in alive)
        if most > best.size and (size := _union(alive, pads, shared)) > best.size:
            best = TightestMoment(item.start, size, tuple(alive))
    for item in problem.items:
        if item.fixed is not None and item.fixed + item.size > best.size:
            best = TightestMoment(item.start, item.fixed + item.size, (item,))
    return best


def _union(alive: list[Item], pads: dict[str, int], shared: dict[str, dict[str, int]]) -> int:
    """The least bytes that `alive` cover together, rounded up; padding above the topmost is not needed.

    The union of any subset is at least its sizes less its pairwise intersections (Bonferroni), so buffers that share
    more than they add are left out.
    """
    names = {i.name for i in alive}
    worth = {
        i.name: i.size + pads[i.name] - sum(s for other, s in shared.get(i.name, {}).items() if other in names)
        for i in alive
    }
    kept = {i.name: i.size + pads[i.name] for i in alive}
    while kept and (least := min(kept, key=lambda name: worth[name])) and worth[least] < 0:
        del kept[least]
        for other, s in shared.get(least, {}).items():
            if other in kept:
                worth[other] += s
    pairs = sum(s for x in kept if x in shared for y, s in shared[x].items() if y in kept) // 2
    return sum(kept.values()) - pairs - max((pads[name] for name in names), default=0)


def _most_shared(problem: LayoutProblem) -> dict[str, dict[str, int]]:
    """For every special pair, the most bytes the two can share at any allowed distance."""
    items = {i.name: i for i in problem.items}
    shared: dict[str, dict[str, int]] = {}
    for x, y in problem.gaps:
        both = overlap(problem, items[x], items[y])
        if both > 0:
            shared.setdefault(x, {})[y] = both
            shared.setdefault(y, {})[x] = both
    return shared


def overlap(problem: LayoutProblem, x: Item, y: Item) -> int:
    """The most bytes that x and y, rounded up to the alignment, can have in common."""
    a = problem.alignment
    size_x, size_y = align_up(x.size, a), align_up(y.size, a)
    g_xy, g_yx = align_up(problem.gap(x, y), a), align_up(problem.gap(y, x), a)
    # The distance d = offset[y] - offset[x] obeys d >= g_xy or d <= -g_yx.
    # One lies inside the other for d in [low, high].
    low, high = min(0, size_x - size_y), max(0, size_x - size_y)
    at_least, at_most = max(g_xy, low), min(-g_yx, high)
    return max(0, *(min(size_x, d + size_y) - max(0, d) for d in (at_least, at_most)))


def critical(problem: LayoutProblem, placement: Placement) -> tuple[str, ...]:
    """The buffers on gapless chains from the peak down to address 0, the largest first.

    The peak can only be lowered by shrinking one of these (S 4.3.3, fig. 4.10). A buffer rests on another if both are
    live and it lies above at exactly the least allowed distance, which for a special pair is its gap. A fixed buffer
    rests on itself.
    """
    at = placement.offsets
    rests_on = _supports(problem, placement)
    grounded = {i.name for i in problem.items if at[i.name] == 0 or i.fixed is not None}
    carries: dict[str, list[str]] = {}
    for above, supports in rests_on.items():
        for below in supports:
            carries.setdefault(below, []).append(above)
    peaks = {i.name for i in problem.items if at[i.name] + i.size == placement.peak}
    chosen = _reach(peaks, rests_on) & _reach(grounded, carries)
    return tuple(i.name for i in sorted(problem.items, key=lambda i: (-i.size, i.name)) if i.name in chosen)


def _supports(problem: LayoutProblem, placement: Placement) -> dict[str, list[str]]:
    """For each buffer, those it rests on."""
    at = placement.offsets
    rests_on: dict[str, list[str]] = {i.name: [] for i in problem.items}
    alive: list[Item] = []
    for item in sorted(problem.items, key=lambda i: i.start):
        alive = [other for other in alive if other.end > item.start]
        for other in alive:
            for below, above in ((item, other), (other, item)):
                distance = align_up(problem.gap(below, above), problem.alignment)
                if above.fixed is None and at[below.name] + distance == at[above.name] > 0:
                    rests_on[above.name].append(below.name)
        alive.append(item)
    return rests_on


def _reach(start: set[str], edges: dict[str, list[str]]) -> set[str]:
    seen, todo = set(start), list(start)
    while todo:
        for name in edges.get(todo.pop(), ()):
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return seen
