"""Merges pairs of steps that may run back to back without loss: fewer steps, the same least peak.

`solve` orders what remains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .problem import OrderProblem, Store


@dataclass(frozen=True)
class Contracted:
    """A smaller problem, and the original steps of each of its steps."""

    problem: OrderProblem
    stands_for: tuple[tuple[int, ...], ...]

    def expand(self, order: Sequence[int]) -> tuple[int, ...]:
        """The order in terms of the original steps."""
        return tuple(step for group in order for step in self.stands_for[group])


def contract(problem: OrderProblem) -> Contracted:
    """The problem with steps u -> v merged repeatedly, if some best order runs them back to back.

    `_merged` gives the condition and its proof.
    """
    draft = _Draft(problem)
    todo = list(range(len(problem.stores)))
    while todo:
        between = todo.pop()
        pair = draft.pair(between)
        if pair is not None and (merged := _merged(draft, *pair, between)) is not None:
            draft.replace(*pair, between, merged)
            todo += [*merged.reads, *merged.writes]
    return draft.finished()


@dataclass
class _Node:
    """A step, or several that run back to back."""

    steps: tuple[int, ...]
    before: set[int]
    reads: set[int]
    writes: set[int]
    scratch: int
    saves: dict[tuple[int, int], int] = field(default_factory=dict)  # (store read, store written): bytes shared


class _Draft:
    """A partial problem. A node is named by its first step; stores keep their numbers."""

    def __init__(self, problem: OrderProblem) -> None:
        self.problem = problem
        self.sizes = [store.size for store in problem.stores]
        self.readers = [set(store.readers) for store in problem.stores]
        self.writers = [set(store.writers) for store in problem.stores]
        self.gone: set[int] = set()  # stores inside a node
        self.nodes = {
            step: _Node((step,), set(problem.before[step]), set(), set(), problem.scratch[step])
            for step in range(len(problem.steps))
        }
        for index, store in enumerate(problem.stores):
            for step in store.readers:
                self.nodes[step].reads.add(index)
            for step in store.writers:
                self.nodes[step].writes.add(index)
        for (step, x, y), saved in problem.savings.items():
            self.nodes[step].saves[x, y] = saved
        self.after: dict[int, set[int]] = {step: set() for step in self.nodes}
        for step, node in self.nodes.items():
            for p in node.before:
                self.after[p].add(step)

    def pair(self, between: int) -> tuple[int, int] | None:
        """(u, v) when only u writes the store and only v reads it, and each writes one store of its own."""
        store = self.problem.stores[between]
        lone = len(self.writers[between]) == len(self.readers[between]) == 1
        if between in self.gone or store.is_input or store.is_output or not lone:
            return None
        (u,), (v,) = self.writers[between], self.readers[between]
        own = all(len(self.nodes[i].writes) == 1 and self.writers[min(self.nodes[i].writes)] == {i} for i in (u, v))
        return (u, v) if own and u != v else None

    def dies(self, store: int, node: int) -> bool:
        """Whether the store certainly dies at this node: it has no other reader and is not kept."""
        known = self.problem.stores[store]
        return self.readers[store] == {node} and not known.is_output and node not in self.writers[store]

    def replace(self, u: int, v: int, between: int, merged: _Node) -> None:
        """Replaces both nodes by the merged one, under u's number."""
        self.gone.add(between)
        (target,) = merged.writes
        self.writers[target] = {u}
        for s in self.after.pop(v):
            self.nodes[s].before.discard(v)
            self.nodes[s].before.add(u)
            self.after[u].add(s)
        self.after[u].discard(v)
        del self.nodes[v]
        self.nodes[u] = merged

    def finished(self) -> Contracted:
        heads = sorted(self.nodes)
        new = {head: at for at, head in enumerate(heads)}
        kept = [index for index in range(len(self.sizes)) if index not in self.gone]
        place = {index: at for at, index in enumerate(kept)}
        stores = []
        for index in kept:
            old = self.problem.stores[index]
            writers, readers = (tuple(sorted(new[s] for s in steps[index])) for steps in (self.writers, self.readers))
            stores.append(Store(old.name, old.size, writers, readers, old.is_input, old.is_output))
        savings = {
            (new[head], place[x], place[y]): saved
            for head, node in self.nodes.items()
            for (x, y), saved in node.saves.items()
        }
        problem = OrderProblem(
            tuple(self.problem.steps[head] for head in heads),
            tuple(tuple(sorted(new[p] for p in self.nodes[head].before)) for head in heads),
            tuple(stores),
            savings,
            tuple(self.nodes[head].scratch for head in heads),
        )
        return Contracted(problem, tuple(self.nodes[head].steps for head in heads))


def _merged(draft: _Draft, u: int, v: int, between: int) -> _Node | None:
    """The two nodes as one, if running them back to back is never worse; None if it might be.

    Let u write T, read by v alone, which reads nothing else and writes Y. Sizes carry the names of their stores.

    *u reads X alone*, which is certain to die there: two links of a chain. Let hill(u) = X + T + scratch - saving and
    hill(v) = T + Y + scratch - saving. Then u may be put off until directly before v, if X <= T (meanwhile memory
    changes by X - T) and hill(u) <= hill(v) (at its new place u needs no more than v does). Or v may be brought
    forward to directly after u, if Y <= T (what follows carries Y in place of T) and hill(v) <= hill(u). When T is no
    smaller than X and Y one of the two holds, so only a true valley keeps a chain apart. The merged node has the
    higher hill, said with scratch and a saving between X and Y.

    *u reads anything else*: D bytes may die there, and at most D be shared. v may be brought forward if Y <= T and
    hill(v) <= T + scratch(u), since then memory while v runs is no more than while u runs. With Y = T the merged node
    is u itself, writing Y.
    """
    first, second = draft.nodes[u], draft.nodes[v]
    (target,) = second.writes
    if second.reads != {between} or not second.before <= {u}:
        return None
    t, y = draft.sizes[between], draft.sizes[target]
    hill_v = t + y + second.scratch - min(y, second.saves.get((between, target), 0))
    steps = first.steps + second.steps
    if len(first.reads) == 1 and draft.dies(source := min(first.reads), u):
        x = draft.sizes[source]
        hill_u = x + t + first.scratch - min(t, first.saves.get((source, between), 0))
        if (x <= t and hill_u <= hill_v) or (y <= t and hill_v <= hill_u):
            scratch = max(hill_u, hill_v) - max(x, y)
            return _Node(steps, first.before, first.reads, {target}, scratch, {(source, target): min(x, y)})
    if y == t and hill_v <= t + first.scratch:
        saves = {(x, target): saved for (x, _), saved in first.saves.items()}
        return _Node(steps, first.before, first.reads, {target}, first.scratch, saves)
    return None
