"""Local search over cells: slots move or swap and registers merge as long as that lowers the cost.

The cost of a register depends on nothing outside it. So a move is evaluated by the two registers that it changes, and a
pair that gained nothing is tried again only when one of them has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .assembly import Assembly, registers_of
from .cells import Cell
from .constraint_model import LayoutPart
from .cost import AccessPattern, RegisterCosts, touching_slots
from .problem import RegisterLayoutProblem
from .rules import Rules

Key = tuple[frozenset[str], int]  # slots and lanes of a cell
Move = tuple[tuple[Key, ...], tuple[Key, ...]]  # the cells that go, and those that come in their place
SWAPS = 64  # pairs of slots of two registers beyond which none change places: full registers have too many
OVER = 10**9  # what a byte above the limit costs: more than anything else


@dataclass(slots=True)
class Search:
    """The cells of some spaces, and what is known about the cost of others."""

    problem: RegisterLayoutProblem
    parts: Mapping[str, LayoutPart]
    cells: dict[str, list[Key]]  # only what may change
    how: Assembly = field(init=False)
    touching: Mapping[tuple[str, str], Sequence[AccessPattern]] = field(init=False)  # the patterns that access a slot
    companions: dict[tuple[str, str], frozenset[str]] = field(init=False)  # slots accessed with a slot
    order: dict[str, dict[str, int]] = field(init=False)  # of the slots of a space
    bytes: dict[str, int] = field(init=False)  # of all registers of a space
    known: dict[tuple[str, Key], tuple[int, int]] = field(default_factory=dict)
    lawful: dict[tuple[str, frozenset[str]], bool] = field(default_factory=dict)
    maps: dict[tuple[str, int], int] = field(default_factory=dict)  # scores of the map, by bytes more in a space
    near: dict[tuple[str, frozenset[str]], frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.how, self.touching = self.problem.how(), touching_slots(self.problem.patterns)
        self.companions = {
            key: frozenset[str]().union(*(pattern.slots | pattern.known for pattern in patterns))
            for key, patterns in self.touching.items()
        }
        spaces = self.problem.spaces
        self.order = {name: {slot.name: n for n, slot in enumerate(space.slots)} for name, space in spaces.items()}
        self.bytes = {name: sum(self._cost(name, key)[1] for key in keys) for name, keys in self.cells.items()}

    def run(self) -> dict[str, tuple[Cell, ...]]:
        """The cells once no single change makes them cheaper."""
        while sum(map(self._settle, self.cells)):
            pass  # sizes of spaces hang together where they are padded or limited
        return {name: tuple(self._cell(name, key) for key in keys) for name, keys in self.cells.items()}

    def _settle(self, name: str) -> bool:
        """Makes all improving moves in one space, and says whether there were any."""
        keys = self.cells[name]
        waiting, moved = list(reversed(keys)), False
        while waiting:
            key = waiting.pop()
            if key not in keys:
                continue
            gain, (gone, come) = min(self._gains(name, key), key=lambda pair: pair[0], default=(0, ((), ())))
            if gain < 0:
                keys[:] = [*(one for one in keys if one not in gone), *come]
                waiting += come
                self.bytes[name] += self._change(name, gone, come)[1]
                self.maps.clear()
                moved = True
        return moved

    def _gains(self, name: str, key: Key) -> Iterator[tuple[int, Move]]:
        """What every lawful move of a cell changes the score by."""
        size = self._map(name, 0)
        for gone, come in self._moves(name, key):
            score, more = self._change(name, gone, come)
            if more:
                score += self._map(name, more) - size
            yield score, (gone, come)

    def _map(self, name: str, more: int) -> int:
        """The score of the map, with so many more bytes in a space."""
        if (name, more) not in self.maps:
            sizes = {**self.bytes, name: self.bytes[name] + more}
            size, limit = self.problem.map_of(self.parts, sizes), self.problem.goal.max_map
            over = 0 if limit is None else max(0, size - limit)
            self.maps[name, more] = self.problem.goal.weights[2] * size + OVER * over
        return self.maps[name, more]

    def _change(self, name: str, gone: Iterable[Key], come: Iterable[Key]) -> tuple[int, int]:
        """The difference in score and bytes when the cells `gone` are replaced by `come`."""
        before, after = ([self._cost(name, key) for key in keys] for keys in (gone, come))
        score, more = (sum(cost[n] for cost in after) - sum(cost[n] for cost in before) for n in (0, 1))
        return score, more

    def _cost(self, name: str, key: Key) -> tuple[int, int]:
        """Code and accesses of a register, weighed, and its bytes."""
        if (name, key) not in self.known:
            space, rules, goal = self.problem.spaces[name], self.problem.rules[name], self.problem.goal
            (register, _), *_ = registers_of(space, self._cell(name, key), rules.bus, self.how)
            code = accesses = 0
            has_views = rules.views and key[1] == 1
            costs = RegisterCosts.of(self.problem.description, space, register, goal.sizes)
            patterns = {id(pattern): pattern for slot in key[0] for pattern in self.touching.get((name, slot), ())}
            for pattern in (part for whole in patterns.values() for part in whole.inside(key[0])):
                here, bus = costs.of_pattern(pattern, has_views)
                code, accesses = code + here, accesses + bus
            addresses = 1 + (len(rules.partial(key[0])) if has_views else 0)
            self.known[name, key] = goal.weights[0] * code + goal.weights[1] * accesses, register.end * addresses
        return self.known[name, key]

    def _cell(self, name: str, key: Key) -> Cell:
        return Cell(tuple(sorted(key[0], key=self.order[name].__getitem__)), key[1])

    def _moves(self, name: str, key: Key) -> Iterator[Move]:
        """Every lawful move of a cell that may gain something: by itself, or with another one."""
        slots, lanes = key
        rules = self.problem.rules[name]
        for come in _split_off(rules, slots, lanes):
            if self._is_lawful(name, come):
                yield (key,), come
        if lanes > 1:
            return
        counts = rules.slots[min(slots)].counts
        near = self._near(name, slots)
        for other in self.cells[name]:
            more, more_lanes = other
            if other == key or more_lanes > 1 or rules.slots[min(more)].counts != counts:
                continue
            for come in self._exchanged(name, slots, more) if near & more else self._merged(name, key, other):
                if self._is_lawful(name, come):
                    yield (key, other), come

    def _near(self, name: str, slots: frozenset[str]) -> frozenset[str]:
        """The slots that some access pattern contains together with one of these."""
        if (name, slots) not in self.near:
            found = (self.companions.get((name, slot), ()) for slot in slots)
            self.near[name, slots] = frozenset[str]().union(*found)
        return self.near[name, slots]

    def _merged(self, name: str, key: Key, other: Key) -> Iterator[tuple[Key, ...]]:
        """Two registers that nothing accesses together as one, if the bytes that saves may be worth the shifts."""
        (slots, _), (more, _) = key, other
        goal = self.problem.goal
        loss = goal.weights[0] * min(goal.sizes.shift, goal.sizes.mask)
        if not self._near(name, slots) or not self._near(name, more):
            loss = 0
        saved = min(self._cost(name, key)[1], self._cost(name, other)[1])
        if self._map(name, -saved) + loss < self._map(name, 0):
            yield ((slots | more, 1),)

    def _exchanged(self, name: str, slots: frozenset[str], more: frozenset[str]) -> Iterator[tuple[Key, ...]]:
        """Two registers become one, a slot goes over to those it is accessed with, or two change places."""
        yield ((slots | more, 1),)
        for here, there in ((slots, more), (more, slots)):
            for slot in sorted(here):
                if not self._near(name, frozenset({slot})) & there:
                    continue
                if len(here) > 1:
                    yield (here - {slot}, 1), (there | {slot}, 1)
                if len(slots) + len(more) > 2 and len(slots) * len(more) <= SWAPS:
                    for other in sorted(there):
                        yield (here - {slot} | {other}, 1), (there - {other} | {slot}, 1)

    def _is_lawful(self, name: str, keys: Iterable[Key]) -> bool:
        return all(self._may_share(name, slots) for slots, _ in keys)

    def _may_share(self, name: str, slots: frozenset[str]) -> bool:
        if (name, slots) not in self.lawful:
            rules = self.problem.rules[name]
            self.lawful[name, slots] = rules.is_whole(slots) and rules.together(sorted(slots))
        return self.lawful[name, slots]


def _split_off(rules: Rules, slots: frozenset[str], lanes: int) -> Iterator[tuple[Key, ...]]:
    """Cells with lanes in place of elements or the reverse, and slots that move to a register of their own."""
    if len(slots) == 1:
        most = rules.lanes(min(slots))
        if most > 1:
            yield ((slots, 1 if lanes > 1 else most),)
        return
    for slot in sorted(slots):
        rest, one = (slots - {slot}, 1), frozenset({slot})
        yield rest, (one, 1)
        if rules.lanes(slot) > 1:
            yield rest, (one, rules.lanes(slot))
