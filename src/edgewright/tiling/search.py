"""The joint search: the least RAM for a given amount of extra work, over every way to run every stretch.

Routes (`routes`) are priced by what their stages keep; each one that is handed out has been laid out for real, and
figures are those of its plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from joblib import Parallel, delayed

from .. import words
from ..errors import Infeasible, InputError
from ..memory import Techniques, Way
from ..memory import plan as make_plan
from ..memory.fullest import dominating
from ..memory.planner import alignment_of, pulled_inputs
from ..memory.pulled import pullable
from ..network import Network
from ..platform import Board
from ..program import Plan
from ..program.weightless import without_weights
from .cost import estimate
from .routes import Route, Routes

TRIES = 12  # routes that are laid out at most when one is wanted
MANY = 4  # plans from which on several processes make them
LARGE = 40  # layers from which on that pays


@dataclass(frozen=True)
class Front:
    """Plans of which none is better than another in RAM and in work, from most RAM to least."""

    plans: tuple[Plan, ...]
    plain: Plan  # order and layout only


@dataclass(frozen=True)
class Limits:
    """How much a plan may cost beyond running every layer once: each a share, None for any."""

    overhead: float | None = None  # of MACs
    slowdown: float | None = None  # of estimated instructions
    target: str | None = None  # for which they are estimated

    def allows(self, plan: Plan, whole: Plan) -> bool:
        if self.overhead is not None and plan.macs > plan.macs_plain * (1 + self.overhead):
            return False
        if self.slowdown is None:
            return True
        if self.target is None:
            raise InputError("a limit on time needs a board or target to estimate it for")
        slowest = estimate(whole, self.target).instructions * (1 + self.slowdown)
        return estimate(plan, self.target).instructions <= slowest


def front(
    network: Network,
    board: Board | None = None,
    *,
    alignment: int | None = None,
    pull_rows: bool = False,
    max_overhead: float | None = None,
    most: int = 16,
) -> Front:
    """The plans worth choosing from: RAM against MACs, no more than so many."""
    search = _Search(network, board, alignment, pull_rows)
    limit = None if max_overhead is None else int(network.total_macs * max_overhead)
    routes = [route for route in search.routes.front() if limit is None or route.macs <= limit]
    plans = [search.whole, search.by_rows, *search.plans(_spread(routes[1:], most))]
    plans = [replace(plan, searched=search.routes.priced) for plan in plans]
    plain = make_plan(network, board, plain=True, explain=False, alignment=alignment)
    return Front(_undominated(plans), plain)


def least(
    network: Network,
    board: Board | None = None,
    *,
    alignment: int | None = None,
    pull_rows: bool = False,
    max_overhead: float | None = None,
    max_slowdown: float | None = None,
    target: str | None = None,
) -> Plan:
    """The plan with the least RAM whose extra work stays within the limits; without limits, the least there is."""
    search = _Search(network, board, alignment, pull_rows)
    return search.least(Limits(max_overhead, max_slowdown, target))


def fitting(
    network: Network,
    ram: int,
    board: Board | None = None,
    *,
    alignment: int | None = None,
    pull_rows: bool = False,
    max_overhead: float | None = None,
    max_slowdown: float | None = None,
    target: str | None = None,
) -> Plan:
    """The plan with the least extra work that fits the RAM; an error that says the least possible where none does."""
    search = _Search(network, board, alignment, pull_rows, ram)
    limits = Limits(max_overhead, max_slowdown, target)
    for plan in search.cheapest_first(ram):
        if plan.peak_bytes <= ram and limits.allows(plan, search.whole):
            return plan
    best = search.least(limits)
    if best.peak_bytes <= ram:
        return best
    raise Infeasible(_too_small(best, ram, limits, search))


class _Search:
    """The routes of a network, and the plans they become."""

    def __init__(
        self, network: Network, board: Board | None, alignment: int | None, pull_rows: bool, room: int = 0
    ) -> None:
        self.network, self.pull_rows = network, pull_rows
        self._make = partial(make_plan, board=board, alignment=alignment, explain=False, pull_rows=pull_rows)
        pulled = pulled_inputs(network) if pull_rows else ()
        techniques = replace(Techniques(), pulled=pulled)
        self.routes = Routes(network, techniques, alignment_of(network, board, alignment), room)
        self.whole = self._made()
        self.by_rows = self._made(phases=True)
        self._known: dict[tuple[Way, ...], Plan] = {(): self.whole}

    def least(self, limits: Limits) -> Plan:
        """The least peak over the routes within the limits: the most promising are laid out, lowest first."""
        start = [plan for plan in (self.by_rows, self.whole) if limits.allows(plan, self.whole)]
        best = min(start, key=lambda plan: plan.peak_bytes, default=None)
        if best is not None and best.optimal:
            return best
        allowed = None if limits.overhead is None else int(self.network.total_macs * limits.overhead)
        routes = [route for route in self.routes.front() if allowed is None or route.macs <= allowed]
        for route in routes[::-1][:TRIES]:
            if best is not None and route.peak >= best.peak_bytes:
                break
            plan = self.plan(route)
            if limits.allows(plan, self.whole) and (best is None or plan.peak_bytes < best.peak_bytes):
                best = plan
        return replace(best or self.whole, searched=self.routes.priced)

    def cheapest_first(self, ram: int) -> Iterator[Plan]:
        """Plans that should fit the RAM, those that run layers whole before others."""
        yield self.whole
        limit = ram
        for _ in range(TRIES):
            route = self.routes.below(limit)
            if route is None:
                return
            plan = self.plan(route)
            yield plan
            limit = min(limit, route.peak) - max(1, plan.peak_bytes - ram)

    def plan(self, route: Route) -> Plan:
        if route.ways not in self._known:
            self._known[route.ways] = self._explained(self._made(ways=route.ways))
        return self._known[route.ways]

    @staticmethod
    def _explained(plan: Plan) -> Plan:
        return replace(plan, method=f"joint search: the cheapest route through all priced ways; {plan.method}")

    def plans(self, routes: Sequence[Route]) -> list[Plan]:
        """The plans of several routes; with many large ones, each core makes some."""
        if len(routes) < MANY or len(self.network.layers) < LARGE:
            return [self.plan(route) for route in routes]
        light = without_weights(self.network)
        found = Parallel(n_jobs=-1)(delayed(self._make)(light, ways=route.ways) for route in routes)
        whole = [replace(plan, program=replace(plan.program, network=self.network)) for plan in found]
        return [self._explained(plan) for plan in whole]

    def _made(self, *, phases: bool = False, ways: Sequence[Way] | None = None) -> Plan:
        return self._make(self.network, phases=phases, ways=ways)


def _spread(routes: Sequence[Route], most: int) -> list[Route]:
    """No more than so many, spread over the range; the first and the last always."""
    if len(routes) <= most:
        return list(routes)
    places = {round(i * (len(routes) - 1) / (most - 1)) for i in range(most)}
    return [routes[at] for at in sorted(places)]


def _undominated(plans: Sequence[Plan]) -> tuple[Plan, ...]:
    """Those that no other beats in RAM and MACs, from most RAM to least."""
    found: list[Plan] = []
    for plan in sorted(plans, key=lambda p: (p.peak_bytes, p.macs)):
        if not found or plan.macs < found[-1].macs:
            found.append(plan)
    return tuple(found[::-1])


def _too_small(best: Plan, ram: int, limits: Limits, search: _Search) -> str:
    """Why the RAM does not do: the least possible, what fills it, what to try."""
    within = " within these limits" if limits.overhead is not None or limits.slowdown is not None else ""
    hints = ["allow more overhead"] if within else []
    if not search.pull_rows and pullable(best.network):
        hints.append("pull the input by rows (--pull-input)")
    hint = f"; try to {' or '.join(hints)}" if hints else ""
    return (
        f"'{best.network.name}' needs {words.size(best.peak_bytes)} at least{within}, and {words.size(ram)} are there: "
        f"{dominating(best)}{hint}"
    )
