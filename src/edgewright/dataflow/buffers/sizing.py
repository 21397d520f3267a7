"""Least capacities of one block: deadlocks yield conditions for an integer program, whose solution is run in turn.

Every deadlocked state of a run yields conditions on all live capacities (`deadlock_conditions`, `wait_cycles`). The
program finds the cheapest capacities that meet all conditions so far, a lower bound. These are run and, if they
deadlock, raised until they are live, which gives an upper bound and new conditions. The minimum is proven when the
bounds meet. Often they meet at once: the separate least capacity of each channel is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from ...cpsat import cp_model, repeatable_solver, solve
from .bounds import least_capacities
from .deadlock_conditions import Choice, Circle, Need, circles, remedies
from .untimed import UNLIMITED, State, Untimed
from .wait_cycles import LeastSum, least_sum

_ROUNDS = 200  # of running and solving
_WORK = 8.0  # CP-SAT's deterministic time for all rounds: some seconds


@dataclass(frozen=True)
class Sizes:
    """Live capacities of the lines, their cost, and a lower bound for all live ones."""

    capacities: list[int]
    cost: int
    bound: int


def size(graph: Untimed, price: Sequence[int]) -> Sizes:
    """The cheapest live capacities of a graph that is live without limits; of equal cost, the smallest.

    That matters for lines that cost nothing. A line never needs more space than the total produced on it.
    """
    scale = 1 + sum(line.produced[-1] for line in graph.lines) if 0 in price else 1
    scaled = [one * scale + (scale > 1) for one in price]
    sizes = _Sizing(graph, scaled).solve()
    cost = sum(one * size for one, size in zip(price, sizes.capacities, strict=True))
    return Sizes(sizes.capacities, cost, sizes.bound // scale)


class _Sizing:
    """The state of a search: the known conditions, and the sums of cycles already used."""

    def __init__(self, graph: Untimed, price: Sequence[int]) -> None:
        self._graph = graph
        self._price = price
        self._known = Conditions(least_capacities(graph))
        self._sums: dict[Circle, LeastSum | None] = {}

    def solve(self) -> Sizes:
        """The minimum, or after some rounds the best solution and its gap."""
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
        """Live capacities, obtained by raising these; each deadlock on the way adds conditions."""
        raised = list(capacity)
        state = self._graph.start()
        self._graph.run(state, raised)
        is_first = True
        while not self._graph.is_done(state):
            cycles = list(circles(self._graph, state, raised))
            broken = self._broken_sums(cycles, raised)
            # a sum is stronger than a choice; but without one the previous solution would return
            if is_first or not broken:
                self._known.choices.update(self._choices(cycles, state, raised))
            is_first = False
            freed = self._repair(broken, raised) or self._give_way(state, raised)
            self._graph.run(state, raised, freed)
        return raised

    def _broken_sums(self, cycles: Iterable[Circle], capacity: Sequence[int]) -> list[LeastSum]:
        """Sums required by cycles of waits that these capacities do not reach."""
        broken = []
        for circle in cycles:
            if circle not in self._sums:
                self._sums[circle] = least_sum(self._graph, circle)
            least = self._sums[circle]
            if least is not None and not least.allows(capacity):
                broken.append(least)
        self._known.sums.update(dict.fromkeys(broken))
        return broken

    def _choices(self, cycles: Iterable[Circle], state: State, capacity: Sequence[int]) -> dict[Choice, None]:
        """The alternatives in the deadlocked state, for each cycle of waits separately.

        A cycle blocks for any capacities of the lines outside it. Unlimited, these let the others run on until only the
        cycle's own few lines are in the way.
        """
        choices: dict[Choice, None] = {}
        for within in {frozenset(wait.line for wait in circle if wait.is_space): None for circle in cycles}:
            alone = [size if at in within else UNLIMITED for at, size in enumerate(capacity)]
            further = list(state)
            self._graph.run(further, alone)
            choices[tuple(remedies(self._graph, further, alone).values())] = None
        return choices or {tuple(remedies(self._graph, state, capacity).values()): None}

    def _repair(self, broken: Sequence[LeastSum], capacity: list[int]) -> list[int]:
        """Raises the cheapest capacity in each sum; returns the freed actors."""
        freed = []
        for one in broken:
            at, factor = min(one.factors, key=lambda pair: Fraction(self._price[pair[0]], pair[1]))
            lacking = one.least - sum(factor * capacity[at] for at, factor in one.factors)
            if lacking > 0:
                capacity[at] += -(-lacking // factor)
                freed.append(self._graph.lines[at].source)
        return freed

    def _give_way(self, state: State, capacity: list[int]) -> list[int]:
        """Applies the cheapest alternative; returns the freed actor."""
        ways = remedies(self._graph, state, capacity)

        def extra(actor: int) -> int:
            return sum(self._price[at] * (need - capacity[at]) for at, need in ways[actor])

        actor = min(ways, key=extra)
        for at, need in ways[actor]:
            capacity[at] = need
        return [actor]

    def _lowered(self, best: list[int], bound: int) -> Sizes:
        """The capacities lowered as far as possible, one after the other."""
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


_LARGEST = 1 << 60  # larger sums do not fit the solver


@dataclass
class Conditions:
    """Conditions on all live capacities."""

    least: Sequence[int]  # for each line
    choices: dict[Choice, None] = field(default_factory=dict)
    sums: dict[LeastSum, None] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Capacities that meet all conditions, if some were found, and a lower bound of their cost."""

    capacities: list[int] | None
    bound: int
    work: float  # deterministic time used by the solver


def cheapest(known: Conditions, price: Sequence[int], dearest: int, work: float) -> Answer:
    """The capacities of least cost that meet all conditions, by CP-SAT; `dearest` is a cost known to suffice."""
    lowest = sum(one * least for one, least in zip(price, known.least, strict=True))
    most = [least + (dearest - lowest) // one for least, one in zip(known.least, price, strict=True)]
    sums = [one for one in known.sums if sum(factor * most[at] for at, factor in one.factors) < _LARGEST]
    if sum(one * limit for one, limit in zip(price, most, strict=True)) >= _LARGEST:
        return Answer(None, lowest, 0)
    model = cp_model.CpModel()

    # Variables: the capacity of each line.
    capacity = [model.new_int_var(least, limit, "") for least, limit in zip(known.least, most, strict=True)]

    # Constraints: sums are reached; one alternative of each choice is met.
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
    sizes = [solver.value(one) for one in capacity] if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
    if sizes is not None and status == cp_model.OPTIMAL:
        bound = sum(one * size for one, size in zip(price, sizes, strict=True))
    else:
        bound = max(lowest, _downwards(solver.best_objective_bound))
    return Answer(sizes, bound, solver.response_proto.deterministic_time)


def _downwards(bound: float) -> int:
    """An integer safely below the solver's floating-point bound."""
    return ceil(bound - 1e-6 * max(1.0, abs(bound) * 1e-6))


class _NeedLiterals:
    """Literals for needs that are met; equal needs share one."""

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
