"""Local search over cells: slots move, swap and registers merge as long as that makes the layout cheaper.

What a register costs depends on nothing outside it, so that every move is judged by the two registers it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..analysis.spaces import Space
from ..language.meaning import Natures
from .assembling import Assembly, registers_of
from .cells import Cell
from .code_bytes import CodeBytes
from .cost import Work, register_cost
from .rules import Rules

Key = tuple[frozenset[str], int]  # slots and lanes of a cell
Measure = Callable[
    [Mapping[str, int]], tuple[int, int]
]  # bytes of registers by space -> size of the map, bytes over
OVER = 10**9  # what a byte above the limit costs: more than anything else


@dataclass(slots=True)
class Search:
    """The cells of some spaces, and what is known about the cost of others."""

    natures: Natures
    how: Assembly
    weights: tuple[int, int, int]
    sizes: CodeBytes
    works: Sequence[Work]
    rules: Mapping[str, Rules]
    spaces: Mapping[str, Space]
    measure: Measure
    cells: dict[str, list[Key]]  # only what may change
    known: dict[tuple[str, Key], tuple[int, int]] = field(default_factory=dict)

    def run(self) -> dict[str, tuple[Cell, ...]]:
        """The cells once no single change makes them cheaper."""
        best = self._score()
        improved = True
        while improved:
            improved = False
            for name in self.cells:
                for changed in self._changes(name):
                    if not all(self.rules[name].is_whole(slots) for slots, _ in changed):
                        continue
                    before = self.cells[name]
                    self.cells[name] = changed
                    score = self._score()
                    if score < best:
                        best, improved = score, True
                        break
                    self.cells[name] = before
        return {name: tuple(self._cell(name, key) for key in keys) for name, keys in self.cells.items()}

    def _score(self) -> int:
        total = 0
        sizes = {}
        for name, keys in self.cells.items():
            costs = [self._cost(name, key) for key in keys]
            total += sum(score for score, _ in costs)
            sizes[name] = sum(size for _, size in costs)
        size, over = self.measure(sizes)
        return total + self.weights[2] * size + OVER * over

    def _cost(self, name: str, key: Key) -> tuple[int, int]:
        """Code and accesses of a register, weighed, and its bytes."""
        if (name, key) not in self.known:
            space = self.spaces[name]
            (register, _), *_ = registers_of(space, self._cell(name, key), self.rules[name].bus, self.how)
            code = accesses = 0
            for work in self.works:
                if work.space == name and work.slots & key[0]:
                    here, bus, _ = register_cost(self.natures, space, register, work, self.sizes)
                    code, accesses = code + here, accesses + bus
            self.known[name, key] = self.weights[0] * code + self.weights[1] * accesses, register.end
        return self.known[name, key]

    def _cell(self, name: str, key: Key) -> Cell:
        return Cell(tuple(s.name for s in self.spaces[name].slots if s.name in key[0]), key[1])

    def _changes(self, name: str) -> Iterator[list[Key]]:
        """Every lawful neighbour of the cells of a space."""
        keys, rules = self.cells[name], self.rules[name]
        for n, (slots, lanes) in enumerate(keys):
            others = [*keys[:n], *keys[n + 1 :]]
            yield from self._lanes(rules, slots, lanes, others)
            for m, (more, more_lanes) in enumerate(others):
                if lanes > 1 or more_lanes > 1:
                    continue
                rest = [*others[:m], *others[m + 1 :]]
                if m >= n and rules.together(sorted(slots | more)):
                    yield [*rest, (slots | more, 1)]
                yield from _moves(rules, slots, more, rest)

    def _lanes(self, rules: Rules, slots: frozenset[str], lanes: int, others: list[Key]) -> Iterator[list[Key]]:
        """Lanes instead of elements or the reverse, and slots that leave for a register of their own."""
        if len(slots) == 1:
            most = rules.lanes(next(iter(slots)))
            if most > 1:
                yield [*others, (slots, 1 if lanes > 1 else most)]
            return
        for slot in sorted(slots):
            rest = slots - {slot}
            yield [*others, (rest, 1), (frozenset({slot}), 1)]
            if rules.lanes(slot) > 1:
                yield [*others, (rest, 1), (frozenset({slot}), rules.lanes(slot))]


def _moves(rules: Rules, slots: frozenset[str], more: frozenset[str], rest: list[Key]) -> Iterator[list[Key]]:
    """One slot goes over to the other register, or two change places."""
    for slot in sorted(slots):
        left = slots - {slot}
        if left and rules.together(sorted(more | {slot})):
            yield [*rest, (left, 1), (more | {slot}, 1)]
        for other in sorted(more):
            here, there = left | {other}, (more - {other}) | {slot}
            if slot < other and rules.together(sorted(here)) and rules.together(sorted(there)):
                yield [*rest, (here, 1), (there, 1)]
