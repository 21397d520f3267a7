"""Cuts the problem at its waists: steps that have the same position in every order.

The live stores at a waist are the same in every order, so segments between waists can be ordered separately, and the
least peak is the largest over the segments.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import accumulate

from ...network.network import execution_order
from .problem import OrderProblem, Store, profile


@dataclass(frozen=True)
class Segment:
    """Steps between two waists as a separate problem, with ids from 0."""

    steps: tuple[int, ...]  # local id -> id in the whole problem
    problem: OrderProblem
    base: int  # bytes of stores that cross the segment untouched

    @property
    def pattern(self) -> Hashable:
        """The segment without names: segments with the same pattern have the same best orders."""
        problem = self.problem
        stores = tuple((x.size, x.writers, x.readers, x.is_input, x.is_output) for x in problem.stores)
        return self.base, problem.before, stores, frozenset(problem.savings.items()), problem.scratch


@dataclass(frozen=True)
class Pieces:
    """The problem in the order of its waists: fixed single steps, and segments to order."""

    parts: tuple[int | Segment, ...]
    fixed_peak: int  # the highest waist, the same in every order


def cut_at_waists(problem: OrderProblem) -> Pieces:
    """The waists and the segments between them, in time linear in the steps, their constraints and the stores.

    In any topological order, everything before a step leads to it exactly when each earlier step has a successor
    no later than it (following successors then ends there); everything after it follows from it exactly when each
    later step has a predecessor no earlier than it.
    """
    order = execution_order(problem.before)
    count = len(order)
    assert count == len(problem.steps), "the steps wait for each other in a circle"
    position = {step: at for at, step in enumerate(order)}
    first_next = [count] * count  # by position: the earliest successor
    last_before = [-1] * count  # by position: the latest predecessor
    for at, step in enumerate(order):
        for p in problem.before[step]:
            first_next[position[p]] = min(first_next[position[p]], at)
            last_before[at] = max(last_before[at], position[p])
    leads, reach = [True] * count, 0
    for at in range(count):
        leads[at] = reach <= at
        reach = max(reach, first_next[at])
    follows, reach = [True] * count, count
    for at in reversed(range(count)):
        follows[at] = reach >= at
        reach = min(reach, last_before[at])

    use = profile(problem, order)
    cutter = _Cutter(problem, order, position)
    parts: list[int | Segment] = []
    fixed_peak, begin = 0, 0
    for at in range(count + 1):
        if at == count or (leads[at] and follows[at]):
            if begin < at:
                parts.append(cutter.segment(begin, at))
            if at < count:
                parts.append(order[at])
                fixed_peak = max(fixed_peak, use[at])
            begin = at + 1
    return Pieces(tuple(parts), fixed_peak)


class _Cutter:
    """Makes segments from ranges of positions in a topological order."""

    def __init__(self, problem: OrderProblem, order: list[int], position: dict[int, int]) -> None:
        self.problem, self.order, self.position = problem, order, position
        count = len(order)
        self.touched: list[list[int]] = [[] for _ in range(count)]  # by step: its stores
        self.savings: list[list[tuple[int, int, int]]] = [[] for _ in range(count)]  # by step: (x, y, bytes)
        self.first: list[int] = []  # by store: position of the first writer, -1 for an input
        self.last: list[int] = []  # by store: position of the last touch, `count` for an output
        change = [0] * (count + 2)
        for x, store in enumerate(problem.stores):
            touch = set(store.writers + store.readers)
            for step in touch:
                self.touched[step].append(x)
            self.first.append(-1 if store.is_input else min(position[s] for s in store.writers))
            self.last.append(count if store.is_output else max((position[s] for s in touch), default=-1))
            change[self.first[x] + 1] += store.size
            change[self.last[x] + 1] -= store.size
        for (step, x, y), saved in problem.savings.items():
            if problem.stores[y].writers == (step,):
                self.savings[step].append((x, y, saved))
        self.held = list(accumulate(change))  # bytes held just before each position

    def segment(self, begin: int, end: int) -> Segment:
        steps = self.order[begin:end]
        local = {step: i for i, step in enumerate(steps)}
        touched = sorted({x for step in steps for x in self.touched[step]})
        here = {x: i for i, x in enumerate(touched)}
        base = self.held[begin]
        stores = []
        for x in touched:
            store = self.problem.stores[x]
            is_input = self.first[x] < begin
            base -= store.size if is_input else 0
            stores.append(
                Store(
                    store.name,
                    store.size,
                    tuple(local[s] for s in store.writers if s in local),
                    tuple(local[s] for s in store.readers if s in local),
                    is_input=is_input,
                    is_output=self.last[x] >= end,
                )
            )
        problem = OrderProblem(
            steps=tuple(self.problem.steps[s] for s in steps),
            before=tuple(tuple(local[p] for p in self.problem.before[s] if p in local) for s in steps),
            stores=tuple(stores),
            savings={(local[s], here[x], here[y]): saved for s in steps for x, y, saved in self.savings[s]},
            scratch=tuple(self.problem.scratch[s] for s in steps),
        )
        return Segment(tuple(steps), problem, base)
