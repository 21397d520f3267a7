"""Buffer size against throughput: for each total size of the channels the best possible period, proven.

Capacities too small for a period are so because of a cycle of waits, and that cycle names some channels: regardless of
the others, one of these must grow. Such cuts are collected, each made as strong as possible, and the cheapest
capacities that satisfy all are tried next. Once those reach the period, no smaller ones can. Cuts stay valid as the
wanted period becomes shorter, so one search gives the whole front. (Stuijk, Geilen and Basten 2008 enumerate the
capacities that such dependencies lead to; here a solver selects among them.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...cpsat import cp_model, repeatable_solver, solve
from ...errors import ModelError
from ..checks.liveness import blocked
from ..graph import Graph
from .storage import Cut, Levels, SizedChannel, Storage

EFFORT = 200_000_000  # table entries examined: a minute or two
ENDLESS = 50  # points listed of an endless front, if only the channels limit the period


@dataclass(frozen=True)
class Point:
    """Capacities, and their period: none of that size or less are faster, and none of less size as fast."""

    tokens: int
    bytes: int
    period: Fraction
    capacities: Mapping[str, int]


@dataclass(frozen=True)
class Pareto:
    """The front, smallest first; `complete` if its last point has the best period of any capacities."""

    points: tuple[Point, ...]  # proven
    best_period: Fraction  # with channels of any size
    complete: bool
    proven: int  # the best period of each size below this one is among the points
    next: Point | None = None  # the best known point beyond the proven ones


def pareto(graph: Graph, *, in_bytes: bool = False, most_points: int | None = None, effort: int = EFFORT) -> Pareto:
    """The exact trade-off between the total size of the channels, in tokens or in bytes, and the period."""
    deadlock = blocked(graph)
    if deadlock is not None:
        raise ModelError(str(deadlock))
    return _Front(graph, in_bytes, most_points, effort).explored()


class _Front:
    """The state of one search."""

    def __init__(self, graph: Graph, in_bytes: bool, most_points: int | None, effort: int) -> None:
        self.graph = graph
        self.storage = Storage(graph, in_bytes)
        best = self.storage.period({})
        assert best is not None, "live graphs have a period"
        self.best_period = best
        self.most_points = most_points or (None if best else ENDLESS)
        self.effort = effort
        self.cuts: list[Cut] = []
        self.least = 0  # cost of any levels with a period below the wanted one
        self.wanted: Fraction | None = None  # the period must be below this; None: any
        self.points: list[Point] = []
        self.point: Point | None = None
        self.point_cost = 0

    def explored(self) -> Pareto:
        while self.wanted != self.best_period:
            levels = self._cheapest_faster()
            if self.point is not None and self.least > self.point_cost:
                self._keep(self.point)
            if levels is None or len(self.points) == self.most_points:
                return self._result()
            self.point, self.point_cost = self._point(levels), self.least
            self.wanted = self.point.period
        assert self.point is not None
        self._keep(self.point)
        self.least += 1
        return self._result()

    def _keep(self, point: Point) -> None:
        self.points.append(point)
        self.point = None

    def _result(self) -> Pareto:
        complete = bool(self.points) and self.points[-1].period == self.best_period
        return Pareto(tuple(self.points), self.best_period, complete, self.least, self.point)

    def _cheapest_faster(self) -> Levels | None:
        """The cheapest levels with a period below the wanted one; None if the effort is used up first."""
        while True:
            levels = cheapest(self.storage.stores, self.cuts, self.least)
            if levels is None:
                return None
            self.least = self.storage.cost(levels)
            if self.storage.work >= self.effort:
                return None
            if not self._cut_off(levels):
                return levels

    def _cut_off(self, levels: Levels) -> bool:
        """Whether levels are too low. If so, adds cuts, for them and for what they grow into until they suffice."""
        start = len(self.cuts)
        growing = dict(levels)
        while self.storage.work < self.effort or len(self.cuts) == start:
            too_small = self.storage.undersized(growing, self.wanted)
            if not too_small:
                break
            for undersized in too_small:
                cut = self.storage.cut(growing, undersized, self.wanted)
                self.cuts.append(cut)
                name = min(cut, key=lambda name: self._price_to_pass(name, cut, growing))
                growing[name] = cut[name] + 1
        return len(self.cuts) > start

    def _price_to_pass(self, name: str, cut: Cut, levels: Levels) -> int:
        store = self.storage.stores[name]
        return store.cost(cut[name] + 1) - store.cost(levels[name])

    def _point(self, levels: Levels) -> Point:
        capacities = self.storage.capacities(levels)
        period = self.storage.period(levels)
        assert period is not None, "no cut forbids these levels"
        size = sum(capacities[channel.name] * channel.token_bytes for channel in self.graph.channels)
        return Point(sum(capacities.values()), size, period, capacities)


_WORK = 20.0  # CP-SAT's deterministic time for one solution: some tens of seconds


def cheapest(stores: Mapping[str, SizedChannel], cuts: Sequence[Cut], least: int) -> dict[str, int] | None:
    """Levels of least cost, known to be at least `least`, such that one channel of each cut passes it (CP-SAT).

    None if that could not be proven within the limit.
    """
    floor = dict.fromkeys(stores, 0)
    for cut in cuts:
        if len(cut) == 1:
            ((name, level),) = cut.items()
            floor[name] = max(floor[name], level + 1)
    open_cuts = [cut for cut in cuts if all(floor[name] <= level for name, level in cut.items())]
    return _solved(stores, floor, open_cuts, least) if open_cuts else floor


def _solved(
    stores: Mapping[str, SizedChannel], floor: Mapping[str, int], cuts: Sequence[Cut], least: int
) -> dict[str, int] | None:
    model = cp_model.CpModel()

    # Variables: the level of each channel, which is its floor or just passes a cut; whether it passes each cut.
    passing = {name: {low} for name, low in floor.items()}
    for cut in cuts:
        for name, level in cut.items():
            passing[name].add(level + 1)
    domains = {name: cp_model.Domain.from_values(sorted(levels)) for name, levels in passing.items()}
    chosen = {name: model.new_int_var_from_domain(domain, name) for name, domain in domains.items()}
    pairs = sorted({pair for cut in cuts for pair in cut.items()})
    passes = {pair: model.new_bool_var("") for pair in pairs}

    # Constraints: each cut is passed by one of its channels.
    for (name, level), literal in passes.items():
        model.add(chosen[name] > level).only_enforce_if(literal)
        model.add(chosen[name] <= level).only_enforce_if(~literal)
    for cut in cuts:
        model.add_bool_or([passes[pair] for pair in cut.items()])

    # Objective
    cost = sum(store.price * (store.tokens + store.step * chosen[name]) for name, store in stores.items())
    model.add(cost >= least)
    model.minimize(cost)
    solver = repeatable_solver(_WORK)
    if solve(solver, model) != cp_model.OPTIMAL:
        return None
    return {name: solver.value(level) for name, level in chosen.items()}
