"""The joint search: the least RAM for a given amount of extra work, over all ways to run every fusion group.

Routes (`routes`) are compared by estimates. A route that is returned has been laid out, and its figures are those of
its plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from joblib import Parallel, delayed

from .. import text
from ..errors import Infeasible
from ..interrupts import keeping_best
from ..memory import plan as make_plan
from ..memory.fit import dominating
from ..memory.planner import alignment_of, least_bound
from ..memory.pricing import StageKey
from ..memory.request import USUAL_SLOWDOWN, PlanRequest
from ..memory.row_windows import pullable
from ..network import Network
from ..platform import Board, boards_with
from ..platform.target import Target
from ..program import Plan
from ..program.weights import without_weights
from ..progress import tell
from .choice import (
    FoundPlan,
    PlanChoice,
    PlanMaker,
    PlannedChoice,
    interrupted,
    is_interrupted,
    trade_off_of,
    undominated,
    undominated_trade_offs,
)
from .faster import fastest, speed_up
from .prices import Prices
from .routes import Route, Routes
from .timing import Timing
from .whole import fastest_whole_layers

TRIES = 12  # routes laid out at most for one plan
BETWEEN = 8  # limits between the peak by rows and that of whole layers, each with its own route
MANY = 4  # plans; from here on parallel processes make them
MANY_LAYERS = 200  # with more layers, the last bytes take minutes
LARGE = 40  # layers from which on parallel processes pay
DETOURS = 2  # around stages that need more than priced
LAYOUT_SLACK = 1.05  # times the priced peak; a larger layout is tried again with more room
JOINT = "joint search: the cheapest route through all priced ways"


@dataclass(frozen=True)
class Front:
    """Pareto-optimal plans of RAM and extra work, from most RAM to least."""

    plans: tuple[Plan, ...]
    plain: Plan  # order and layout only


def front(
    network: Network,
    board: Board | None = None,
    request: PlanRequest | None = None,
    *,
    most: int = 16,
    target: Target | str | None = None,
) -> Front:
    """The Pareto front of RAM against MACs, thinned to a given number of plans."""
    request = request or PlanRequest()
    search = PlanSearch(network, request, board, target)
    limit = request.extra_macs(network)
    plans = [search.least_whole.plan, search.by_rows.plan]
    try:
        with keeping_best():
            routes = [route for route in search.routes.front() if limit is None or route.macs <= limit][1:]
            if len(routes) > most:  # of routes with the same MACs the last
                routes = list({route.macs: route for route in routes}.values())
            for plan in search.plans(_spread(routes, most)):
                plans.append(plan)
    except KeyboardInterrupt:
        plans = [interrupted(plan) for plan in plans]
    plans = [replace(plan, searched=search.routes.priced) for plan in plans]
    plain = make_plan(network, board, plain=True, explain=False, alignment=request.alignment)
    return Front(undominated(plans, lambda plan: (plan.peak_bytes, plan.macs)), plain)


class PlanSearch:
    """The routes of a network, and the plans made from them."""

    def __init__(
        self,
        network: Network,
        request: PlanRequest,
        board: Board | None = None,
        target: Target | str | None = None,
        *,
        room: int = 0,
        reserved: tuple[str, int] | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.network, self.request = network, request
        self.maker = PlanMaker(network, timing or Timing(target), request, board, reserved)
        self._unit, self._room = alignment_of(network, board, request.alignment), room
        self.whole = fastest_whole_layers(self.maker)
        self._streamed: list[PlannedChoice] = []  # when first requested

    @cached_property
    def least_whole(self) -> PlannedChoice:
        """Whole layers in the least RAM, regardless of speed."""
        return self.maker.make(PlanChoice())

    @cached_property
    def by_rows(self) -> PlannedChoice:
        planned = PlannedChoice(PlanChoice(), self.maker.by_rows())
        self._streamed.append(planned)
        return planned

    @cached_property
    def routes(self) -> Routes:
        prices = Prices(self.network, self.maker.timing.costs(self.network))
        room = max(self._room, self.whole.peak if self.request.max_slowdown is not None else 0)
        macs = self.request.extra_macs(self.network)
        return Routes(self.maker.unfused, prices, room, macs, self.bound)

    @cached_property
    def bound(self) -> int:
        """A lower bound in bytes for every plan."""
        return least_bound(self.network, self.maker.techniques, self._unit)

    @property
    def enough(self) -> int:
        """A peak that is good enough: the bound, and in large networks 0.1 % more."""
        return self.bound + (self.bound // 1000 if len(self.network.layers) > MANY_LAYERS else 0)

    @property
    def budget(self) -> float:
        """The number of instructions that a plan may take."""
        slowdown = self.request.max_slowdown
        return float("inf") if slowdown is None else self.maker.timing.within(self.whole.cost, slowdown)

    def allows(self, planned: PlannedChoice) -> bool:
        return self.request.allows_macs(planned.plan) and planned.cost <= self.budget

    def fitting(self, ram: int) -> FoundPlan:
        """The plan with the least extra work that fits; if there is none, an error gives the least RAM possible."""
        for planned in self.cheapest_first(ram):
            if planned.peak <= ram and self.allows(planned):
                return self._found(planned.plan)
        best = self.least()
        if best.plan.peak_bytes <= ram:
            return best
        if is_interrupted(best.plan):
            raise KeyboardInterrupt  # no plan that fits was found, and the search is incomplete
        raise Infeasible(_too_small(best.plan, ram, self))

    def least(self) -> FoundPlan:
        """The least peak over the routes within the limits; the most promising are laid out, lowest first."""
        best = self.whole
        try:
            with keeping_best():
                for planned in self._lower(best):
                    best = planned
        except KeyboardInterrupt:
            return self._found(interrupted(best.plan))
        searched = 0 if best.peak <= self.bound else self.routes.priced
        return self._found(replace(best.plan, bound_bytes=min(self.bound, best.peak), searched=searched))

    def _found(self, plan: Plan) -> FoundPlan:
        """The plan, together with the other plans that were laid out."""
        made = [*self.maker.all_made, *(extra.timed for extra in self._streamed)]
        allowed = [trade_off_of(timed, self.whole.cost) for timed in made if self.request.allows_macs(timed.plan)]
        own = trade_off_of(self.maker.timed(plan), self.whole.cost)
        others = [trade for trade in allowed if trade.peak_bytes != own.peak_bytes]
        return FoundPlan(plan, self.whole.plan, undominated_trade_offs([*others, own]))

    def _lower(self, best: PlannedChoice) -> Iterator[PlannedChoice]:
        """Plans with less and less RAM than `best`."""
        for planned in (self.least_whole, self.by_rows):
            if self.allows(planned) and planned.peak < best.peak:
                yield (best := planned)
        if best.peak <= self.enough:
            return
        tell("pricing layers in parts")
        promising = self._promising()
        for number, route in enumerate(promising):
            tell("laying out plans in parts", number / len(promising))
            if route.peak >= best.peak or best.peak <= self.enough:
                return
            planned = self._laid_out(route)
            if not self.request.allows_macs(planned.plan):
                continue
            if planned.cost > self.budget:
                hasty = speed_up(self.maker, planned.choice, self.budget, best.peak)
                if hasty is None:
                    continue
                planned = hasty
            if planned.peak < best.peak:
                yield (best := self._explained(planned))

    def _laid_out(self, route: Route) -> PlannedChoice:
        """The plan of a route, or of the best alternative if the layout needs far more RAM than estimated."""
        best = self.candidate(route)
        for other in self._detours(route):
            if best.peak <= LAYOUT_SLACK * route.peak:
                break
            best = min(best, self.candidate(other), key=lambda one: (one.peak, one.cost))
        return best

    def _detours(self, route: Route) -> Iterator[Route]:
        """Alternative routes with the same estimated peak: one that prefers small stages, and those without the stages
        whose layout exceeded the estimate."""
        limit, missed = route.peak, set[StageKey]()
        if roomy := self.routes.cheapest(limit, is_roomy=True):
            yield roomy
        for _ in range(DETOURS):
            plan = self.candidate(route).plan
            stages = zip(plan.program.stages, plan.live_bytes, strict=True)
            over = {name for stage, live in stages if live > limit for name in stage.layers}
            missed |= {cut.key for cut in route.cuts if self.routes.pricer.names[cut.first] in over}
            detour = self.routes.cheapest(limit, without=missed)
            if detour is None:
                return
            yield (route := detour)

    def _promising(self) -> list[Route]:
        """Routes in the order of their estimated peak, lowest first."""
        allowed = self.request.extra_macs(self.network)
        low = [route for route in self.routes.front() if allowed is None or route.macs <= allowed][::-1]
        if self.request.max_slowdown is None:
            return low[:TRIES]
        start, end = (low[-1] if low else self.routes.by_rows).peak, self.whole.peak
        limits = [round(start * (end / max(1, start)) ** (n / BETWEEN)) for n in range(1, BETWEEN + 1)]
        between = [route for limit in limits if limit > start and (route := self.routes.cheapest(limit))]
        routes = dict.fromkeys([*low, *sorted(between, key=lambda route: route.peak)])
        return _spread(list(routes), TRIES)

    def cheapest_first(self, ram: int) -> Iterator[PlannedChoice]:
        """Plans that should fit the RAM, in order of preference: whole layers first, unless they are slow."""
        yield self.whole
        slow = None
        if self.least_whole.peak <= ram:
            shared = self._within(self.least_whole, ram)
            if shared.cost <= self.maker.timing.within(self.whole.cost, USUAL_SLOWDOWN):
                yield shared
            slow = shared
        for planned in self._along_routes(ram):
            if slow is not None and (planned.peak > ram or planned.cost >= slow.cost):
                yield slow
            yield planned
        if slow is not None:
            yield slow

    def _along_routes(self, ram: int) -> Iterator[PlannedChoice]:
        """Plans of routes that should fit the RAM, by increasing extra work."""
        limit = ram
        for _ in range(TRIES):
            route = self.routes.below(limit)
            if route is None:
                return
            planned = self.candidate(route)
            yield self._explained(self._within(planned, ram))
            limit = min(limit, route.peak) - max(1, planned.peak - ram)

    def _within(self, planned: PlannedChoice, ram: int) -> PlannedChoice:
        """The plan made faster with the remaining RAM, if it exceeds the instruction limit."""
        budget = self.maker.timing.within(self.whole.cost, USUAL_SLOWDOWN)
        if planned.cost <= budget or planned.peak > ram:
            return planned
        return fastest(self.maker, planned.choice, budget, ram + 1)

    def candidate(self, route: Route) -> PlannedChoice:
        return self.maker.make(self.routes.choice(route))

    @staticmethod
    def _explained(planned: PlannedChoice) -> PlannedChoice:
        method = f"{JOINT}; {planned.plan.method}"
        return replace(planned, timed=replace(planned.timed, plan=replace(planned.plan, method=method)))

    def plans(self, routes: Sequence[Route]) -> Iterator[Plan]:
        """The plans of several routes; many large ones are made in parallel processes."""
        choices = [self.routes.choice(route) for route in routes]
        plans: Iterable[Plan]
        if len(routes) < MANY or len(self.network.layers) < LARGE:
            plans = (self.maker.make(choice).plan for choice in choices)
        else:
            light = without_weights(self.network)  # weights need not be sent to processes
            made = Parallel(n_jobs=-1)(delayed(self.maker.plan)(choice, light) for choice in choices)
            plans = [replace(plan, program=replace(plan.program, network=self.network)) for plan in made]
        for plan in plans:
            yield replace(plan, method=f"{JOINT}; {plan.method}")


def _spread(routes: Sequence[Route], most: int) -> list[Route]:
    """At most `most` of the routes, evenly spread, including the first and the last."""
    if len(routes) <= most:
        return list(routes)
    places = {round(i * (len(routes) - 1) / (most - 1)) for i in range(most)}
    return [routes[at] for at in sorted(places)]


def _too_small(best: Plan, ram: int, search: PlanSearch) -> str:
    """The error text for too little RAM: the least possible, the buffers that fill it, and what to try."""
    within = " within these limits" if search.request.is_limited else ""
    hints = ["to allow more overhead"] if within else []
    if not search.request.pull_rows and pullable(best.network):
        hints.append("to pull the input by rows (--pull-input)")
    if boards := boards_with(best.peak_bytes, best.flash_bytes):
        hints.append(f"another board: {' or '.join(boards)} would do")
    hint = f"; try {', or '.join(hints)}" if hints else ""
    return (
        f"does not fit: '{best.network.name}' needs {text.size(best.peak_bytes)} at least{within}, "
        f"and {text.size(ram)} are there: {dominating(best)}{hint}"
    )
