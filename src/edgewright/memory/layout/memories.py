"""Buffers over several memories, the busiest in the fastest; `place_optimal` finds the addresses in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...cpsat import cp_model, repeatable_solver, solve
from ...errors import Infeasible, InputError
from .bound import overlap, tightest
from .exact import Status
from .graph import ConflictGraph, cliques, place_graph
from .optimal import place_optimal
from .problem import Item, LayoutProblem, NotFound, Placement, align_up

_ROUNDS = 40  # assignments tried before giving up
_WORK = 2.0  # CP-SAT's deterministic time for one assignment: a few seconds


@dataclass(frozen=True)
class MemoryPlacement:
    """The memory and address of every buffer.

    `cost` is the sum of traffic in bytes times the number of faster memories; `bound` is proven.
    """

    memory: Mapping[str, str]
    placements: Mapping[str, Placement]
    cost: int
    bound: int

    @property
    def optimal(self) -> bool:
        return self.cost == self.bound


def place_in_memories(
    problem: LayoutProblem, memories: Sequence[tuple[str, int]], traffic: Mapping[str, int]
) -> MemoryPlacement:
    """Assigns every buffer to one of `memories` (name and capacity, fastest first), with most traffic in the fast ones.

    Buffers are first assigned so that no moment exceeds a capacity, then addresses are sought in each memory. If that
    fails, that combination is excluded and the assignment repeated: the first success is the best. Special pairs only
    matter inside one memory.
    """
    crowd = tightest(problem)
    items = {i.name: i for i in problem.items}
    question = _Question(
        {i.name: align_up(i.size, problem.alignment) for i in problem.items},
        {i.name: (i.fixed or 0) + i.size for i in problem.items},
        [frozenset(i.name for i in alive) for alive in _moments(problem)],
        {(x, y): s for x, y in problem.gaps if (s := overlap(problem, items[x], items[y])) > 0},
        problem.alignment,
        f"{crowd.size} bytes are live at once at time {crowd.time}",
        is_small=crowd.size <= memories[0][1] if memories else False,
    )
    return _spread(question, memories, traffic, lambda names, capacity: place_optimal(_part(problem, names), capacity))


def place_graph_in_memories(
    graph: ConflictGraph, memories: Sequence[tuple[str, int]], traffic: Mapping[str, int]
) -> MemoryPlacement:
    """Like `place_in_memories`, for a conflict graph: the buffers of a clique together must not exceed a memory."""
    crowds = list(map(frozenset, cliques(graph)))
    most = max((sum(graph.sizes[name] for name in crowd) for crowd in crowds), default=0)
    question = _Question(
        {name: align_up(size, graph.alignment) for name, size in graph.sizes.items()},
        graph.sizes,
        crowds,
        {},
        graph.alignment,
        f"{most} bytes are in use together",
    )

    def place(names: set[str], capacity: int) -> Placement:
        placement = place_graph(graph.part(frozenset(names)), bound=capacity)
        if placement.peak > capacity:
            kind = Infeasible if placement.bound > capacity else NotFound
            raise kind(f"{placement.peak} bytes do not lie in {capacity}")
        return placement

    return _spread(question, memories, traffic, place)


@dataclass(frozen=True)
class _Question:
    """The assignment problem: sizes in words, the least end of each buffer, and the sets that are live together."""

    sizes: Mapping[str, int]
    ends: Mapping[str, int]
    crowds: Sequence[frozenset[str]]
    shared: Mapping[tuple[str, str], int]  # bytes that special pairs may share
    alignment: int
    crowded: str  # for error messages
    is_small: bool = False  # small enough to try the first memory alone


def _spread(
    question: _Question,
    memories: Sequence[tuple[str, int]],
    traffic: Mapping[str, int],
    place: Callable[[set[str], int], Placement],
) -> MemoryPlacement:
    if len({name for name, _ in memories}) < len(memories) or not memories:
        raise InputError(f"the memories {[name for name, _ in memories]} must have different names, and be some")
    cuts: list[tuple[int, frozenset[str]]] = []  # (memory, buffers that do not fit in it together)
    bound = 0
    proven = True  # every cut is proven, none comes from a search that gave up
    for n in range(_ROUNDS):
        # Cuts alone may progress slowly: after a while ask for a margin, and give up the proof.
        percent = 100 - max(0, n - _ROUNDS // 4)
        proven = proven and percent == 100
        room = [capacity * percent // 100 for _, capacity in memories]
        status, rank, least = _assign(question, room, traffic, cuts, first=n == 0)
        if status is Status.IMPOSSIBLE and proven:
            raise Infeasible(f"no placement exists in {_needs(question, memories)}")
        if status is not Status.FOUND:
            break
        bound = least if proven else bound
        placements: dict[str, Placement] = {}
        for m, (name, capacity) in enumerate(memories):
            here = {item for item, r in rank.items() if r == m}
            try:
                placements[name] = place(here, capacity)
            except Infeasible as error:
                proven = proven and not isinstance(error, NotFound)
                cuts.append((m, frozenset(here)))
        if len(placements) == len(memories):
            cost = sum(traffic.get(item, 0) * r for item, r in rank.items())
            names = {item: memories[r][0] for item, r in rank.items()}
            return MemoryPlacement(names, placements, cost, min(cost, bound))
    raise NotFound(f"no placement found in {_needs(question, memories)}")


def _needs(question: _Question, memories: Sequence[tuple[str, int]]) -> str:
    """The figures for the error message."""
    return (
        f"the memories {', '.join(f'{name} ({capacity} bytes)' for name, capacity in memories)}; "
        f"{question.crowded}, and the largest buffer has {max(question.sizes.values(), default=0)}. "
        "Add memory, or tile the largest layer."
    )


def _part(problem: LayoutProblem, names: set[str]) -> LayoutProblem:
    gaps = {pair: g for pair, g in problem.gaps.items() if pair[0] in names and pair[1] in names}
    return LayoutProblem(tuple(i for i in problem.items if i.name in names), gaps, problem.alignment)


def _assign(
    question: _Question,
    room: Sequence[int],
    traffic: Mapping[str, int],
    cuts: Sequence[tuple[int, frozenset[str]]],
    first: bool,
) -> tuple[Status, dict[str, int], int]:
    """A memory (its rank) for each buffer at the least cost, and a proven bound of the cost."""
    if first and question.is_small:
        return Status.FOUND, dict.fromkeys(question.sizes, 0), 0
    model = cp_model.CpModel()
    # Variables: inside[item][m], item lies in memory m; together[x, y][m], both do.
    inside = {name: [model.new_bool_var("") for _ in room] for name in question.sizes}
    together = {pair: [model.new_bool_var("") for _ in room] for pair in question.shared}

    # Constraints: one memory each; at no time more than its capacity, special pairs counted at their least.
    for one in inside.values():
        model.add_exactly_one(one)
    for (x, y), both in together.items():
        for m, b in enumerate(both):
            model.add_implication(b, inside[x][m])
            model.add_implication(b, inside[y][m])
    for names in question.crowds:
        for m, capacity in enumerate(room):
            sizes = sum(question.sizes[name] * inside[name][m] for name in sorted(names))
            saved = sum(s * together[pair][m] for pair, s in question.shared.items() if names.issuperset(pair))
            model.add(sizes - saved <= capacity + question.alignment - 1)  # the topmost buffer needs no padding
    for name, end in question.ends.items():
        for m, capacity in enumerate(room):
            if end > capacity:
                model.add(inside[name][m] == 0)
    for m, never_all in cuts:
        model.add_bool_or(~inside[name][m] for name in sorted(never_all))

    # Objective: traffic close to the fastest memory.
    model.minimize(sum(traffic.get(n, 0) * m * b for n, one in inside.items() for m, b in enumerate(one)))
    solver = repeatable_solver(_WORK, random_seed=0)
    status = solve(solver, model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return (Status.IMPOSSIBLE if status == cp_model.INFEASIBLE else Status.GAVE_UP), {}, 0
    rank = {name: next(m for m, b in enumerate(one) if solver.value(b)) for name, one in inside.items()}
    return Status.FOUND, rank, round(solver.best_objective_bound)


def _moments(problem: LayoutProblem) -> list[tuple[Item, ...]]:
    """The sets of buffers that are live at some time, without those contained in the next one."""
    moments: list[tuple[Item, ...]] = []
    alive: list[Item] = []
    events = sorted(problem.items, key=lambda i: i.start)
    for n, item in enumerate(events):
        alive = [other for other in alive if other.end > item.start] + [item]
        if n + 1 == len(events) or any(i.end <= events[n + 1].start for i in alive):
            moments.append(tuple(alive))
    return moments
