"""Least capacities of one block: what a run teaches goes into an integer program, whose answer is run in turn.

Every dead state of every run yields conditions that all live capacities meet (`waits`, `circles`). The program finds
the cheapest capacities that meet those seen so far, which is a bound from below; they are run and, where they die,
raised until they live, which is a bound from above and yields new conditions. The minimum is proven when the two meet.
Most often they meet at the start: each line's own least capacity, taken alone, is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from ...cpsat import cp_model, repeatable_solver, solve
from .bounds import least_capacities
from .circles import LeastSum, least_sum
from .untimed import UNLIMITED, State, Untimed
from .waits import Choice, Circle, Need, circles, remedies

_ROUNDS = 200  # of running and solving
_WORK = 8.0  # CP-SAT's deterministic time for all rounds: some seconds


@dataclass(frozen=True)
class Sizes:
    """Live capacities of the lines, their cost, and what any live ones cost at least."""

    capacities: list[int]
    cost: int
    bound: int


def size(graph: Untimed, price: Sequence[int]) -> Sizes:
    """The cheapest live capacities of a graph that is live without limits; of equal cost, the smallest.

    That matters for lines that cost nothing. A line never needs room for more than is ever made on it.
    """
    scale = 1 + sum(line.made[-1] for line in graph.lines) if 0 in price else 1
    scaled = [one * scale + (scale > 1) for one in price]
    found = _Sizing(graph, scaled).solve()
    cost = sum(one * size for one, size in zip(price, found.capacities, strict=True))
    return Sizes(found.capacities, cost, found.bound // scale)


class _Sizing:
    """A search underway: the conditions known, and the sums of circles already looked at."""

    def __init__(self, graph: Untimed, price: Sequence[int]) -> None:
        self._graph = graph
        self._price = price
        self._known = Conditions(least_capacities(graph))
        self._sums: dict[Circle, LeastSum | None] = {}

    def solve(self) -> Sizes:
        """The minimum, or after some rounds the best and how far below it the minimum may be."""
        best = self._raised(self._known.least)
        cost, bound = self._cost(best), self._cost(self._known.least)
        left = _WORK
        for _ in range(_ROUNDS):
            if cost <= bound or left <= 0:
                break
            answer = cheapest(self._known, self._price, cost, left)
            left -= answer.work
            bound = max(bound, answer.bound)
            if answer.capacities is None:
                break
            raised = self._raised(answer.capacities)
            if self._cost(raised) < cost:
                best, cost = raised, self._cost(raised)
        return Sizes(best, cost, bound) if cost <= bound else self._lowered(best, bound)

    def _cost(self, capacity: Sequence[int]) -> int:
        return sum(one * size for one, size in zip(self._price, capacity, strict=True))

    def _raised(self, capacity: Sequence[int]) -> list[int]:
        """Live capacities, from these; each dead state on the way adds to the conditions."""
        raised = list(capacity)
        state = self._graph.start()
        self._graph.run(state, raised)
        is_first = True
        while not self._graph.is_done(state):
            found = list(circles(self._graph, state, raised))
            broken = self._broken_sums(found, raised)
            # a sum tells more than a choice; but without one the answer that led here would come again
            if is_first or not broken:
                self._known.choices.update(self._choices(found, state, raised))
            is_first = False
            freed = self._repair(broken, raised) or self._give_way(state, raised)
            self._graph.run(state, raised, freed)
        return raised

    def _broken_sums(self, found: Iterable[Circle], capacity: Sequence[int]) -> list[LeastSum]:
        """Sums that circles of waits ask for and these capacities do not reach."""
        broken = []
        for circle in found:
            if circle not in self._sums:
                self._sums[circle] = least_sum(self._graph, circle)
            least = self._sums[circle]
            if least is not None and not least.allows(capacity):
                broken.append(least)
        self._known.sums.update(dict.fromkeys(broken))
        return broken

    def _choices(self, found: Iterable[Circle], state: State, capacity: Sequence[int]) -> dict[Choice, None]:
        """What the dead state leaves open, for each circle of waits by itself.

        A circle blocks whatever the lines outside it can hold. Given no limits these let the others run on, until only
        the circle's own few lines are in the way.
        """
        choices: dict[Choice, None] = {}
        for within in {frozenset(wait.line for wait in circle if wait.is_space): None for circle in found}:
            alone = [size if at in within else UNLIMITED for at, size in enumerate(capacity)]
            further = list(state)
            self._graph.run(further, alone)
            choices[tuple(remedies(self._graph, further, alone).values())] = None
        return choices or {tuple(remedies(self._graph, state, capacity).values()): None}

    def _repair(self, broken: Sequence[LeastSum], capacity: list[int]) -> list[int]:
        """Actors freed by raising, in each sum, what costs least."""
        freed = []
        for one in broken:
            at, factor = min(one.factors, key=lambda pair: Fraction(self._price[pair[0]], pair[1]))
            lacking = one.least - sum(factor * capacity[at] for at, factor in one.factors)
            if lacking > 0:
                capacity[at] += -(-lacking // factor)
                freed.append(self._graph.lines[at].source)
        return freed

    def _give_way(self, state: State, capacity: list[int]) -> list[int]:
        """The actor freed by the cheapest way out."""
        ways = remedies(self._graph, state, capacity)

        def extra(actor: int) -> int:
            return sum(self._price[at] * (need - capacity[at]) for at, need in ways[actor])

        actor = min(ways, key=extra)
        for at, need in ways[actor]:
            capacity[at] = need
        return [actor]

    def _lowered(self, best: list[int], bound: int) -> Sizes:
        """No capacity larger than it must be, given the others."""
        for at in sorted(range(len(best)), key=lambda one: -self._price[one]):
            low, high = self._known.least[at], best[at]
            while low < high:
                best[at] = (low + high) // 2
                low, high = (low, best[at]) if self._is_live(best) else (best[at] + 1, high)
            best[at] = high
        return Sizes(best, self._cost(best), bound)

    def _is_live(self, capacity: Sequence[int]) -> bool:
        state = self._graph.start()
        self._graph.run(state, capacity)
        return self._graph.is_done(state)


_LARGEST = 1 << 60  # sums beyond this do not fit the solver


@dataclass
class Conditions:
    """What all live capacities meet."""

    least: Sequence[int]  # of each line
    choices: dict[Choice, None] = field(default_factory=dict)
    sums: dict[LeastSum, None] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Capacities that meet all conditions, where some were found, and what any of them cost at least."""

    capacities: list[int] | None
    bound: int
    work: float  # of the solver, in its deterministic time


def cheapest(known: Conditions, price: Sequence[int], dearest: int, work: float) -> Answer:
    """The capacities of least cost that meet all conditions, by CP-SAT; `dearest` is a cost that is known to do."""
    lowest = sum(one * least for one, least in zip(price, known.least, strict=True))
    most = [least + (dearest - lowest) // one for least, one in zip(known.least, price, strict=True)]
    sums = [one for one in known.sums if sum(factor * most[at] for at, factor in one.factors) < _LARGEST]
    if sum(one * limit for one, limit in zip(price, most, strict=True)) >= _LARGEST:
        return Answer(None, lowest, 0)
    model = cp_model.CpModel()

    # Variables: the capacity of each line.
    capacity = [model.new_int_var(least, limit, "") for least, limit in zip(known.least, most, strict=True)]

    # Constraints: sums are reached; of each choice one way out is open.
    for one in sums:
        model.add(sum(factor * capacity[at] for at, factor in one.factors) >= one.least)
    ways = _NeedLiterals(model, capacity, most)
    for choice in known.choices:
        model.add_bool_or([ways.open(needs) for needs in choice if ways.can_open(needs)])

    # Objective
    model.minimize(sum(one * size for one, size in zip(price, capacity, strict=True)))
    solver = repeatable_solver(work)
    status = solve(solver, model)
    assert status != cp_model.INFEASIBLE
    found = [solver.value(one) for one in capacity] if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
    if found is not None and status == cp_model.OPTIMAL:
        bound = sum(one * size for one, size in zip(price, found, strict=True))
    else:
        bound = max(lowest, _downwards(solver.best_objective_bound))
    return Answer(found, bound, solver.response_proto.deterministic_time)


def _downwards(bound: float) -> int:
    """A whole number that is surely not above what the solver means: it thinks in floats."""
    return ceil(bound - 1e-6 * max(1.0, abs(bound) * 1e-6))


class _NeedLiterals:
    """Literals that stand for needs which are met; equal needs share one."""

    def __init__(self, model: cp_model.CpModel, capacity: Sequence[cp_model.IntVar], most: Sequence[int]) -> None:
        self._model = model
        self._capacity = capacity
        self._most = most
        self._met: dict[Need, cp_model.IntVar] = {}

    def can_open(self, needs: Iterable[Need]) -> bool:
        return all(least <= self._most[at] for at, least in needs)

    def open(self, needs: Sequence[Need]) -> cp_model.IntVar:
        if len(needs) == 1:
            return self._is_met(needs[0])
        literal = self._model.new_bool_var("")
        for need in needs:
            self._model.add_implication(literal, self._is_met(need))
        return literal

    def _is_met(self, need: Need) -> cp_model.IntVar:
        if need not in self._met:
            at, least = need
            literal = self._met[need] = self._model.new_bool_var("")
            self._model.add(self._capacity[at] >= least).only_enforce_if(literal)
            self._model.add(self._capacity[at] < least).only_enforce_if(~literal)
        return self._met[need]
