"""Which buffers make the peak what it is; what to do about them is for tiling to decide."""

from edgewright.memory.layout.problem import Item, LayoutProblem, Placement


def critical(problem: LayoutProblem, placement: Placement) -> tuple[str, ...]:
    """The buffers on gapless chains from the peak down to address 0, largest first.

    Only shrinking one of these can lower the peak (S 4.3.3, fig. 4.10). A buffer rests on another that is alive with it
    and below it at exactly the least distance, which for a special pair is its gap. A fixed buffer rests on itself.
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
    """For each buffer those it rests on."""
    at = placement.offsets
    rests_on: dict[str, list[str]] = {i.name: [] for i in problem.items}
    alive: list[Item] = []
    for item in sorted(problem.items, key=lambda i: i.start):
        alive = [other for other in alive if other.end > item.start]
        for other in alive:
            for below, above in ((item, other), (other, item)):
                gap = problem.gap(below, above)
                distance = gap + -gap % problem.alignment
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
