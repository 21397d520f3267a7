"""Routes through the cuts of an order: a sequence of stages with the least extra work within a memory limit.

Peak RAM is a maximum over stages and extra work is a sum, so for each limit the best route is a shortest path over the
candidates within it. Lowering the limit step by step gives every point of the front of RAM against work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from ..memory.ordering import order
from ..memory.pricing import Candidate, StageKey
from ..memory.problems import PlanningProblem
from ..program import FusionSchedule
from .choice import PlanChoice
from .prices import Prices
from .pricing import TilePricer

LOWEST = 0.4  # of the peak by rows: the least that tiles may reach
ROOMY = 0.001  # instructions per MAC of the network: assumed cost of a stage that fills the limit
FINER = 0.99  # of the last peak, for the next point of a front
_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class Route:
    """Stages from the first layer to the last. Its memory is an estimate; only the layout gives the real peak."""

    cuts: tuple[Candidate, ...]

    @property
    def peak(self) -> int:
        return max((cut.memory for cut in self.cuts), default=0)

    @property
    def macs(self) -> int:
        """MACs that are recomputed."""
        return sum(cut.macs for cut in self.cuts)

    @property
    def effort(self) -> int:
        """Estimated instructions beyond those of whole layers with unlimited memory."""
        return sum(cut.effort for cut in self.cuts)

    @property
    def schedules(self) -> tuple[FusionSchedule, ...]:
        return tuple(cut.schedule for cut in self.cuts if cut.schedule)


class Routes:
    """All routes of a network. Groups in tiles are priced only if a limit cannot be met without them.

    `room` is memory that is available anyway: routes within it are considered even if others need less. `bound` is a
    lower bound for all plans: layers that run whole within it need no group. Groups that recompute more than
    `most_macs` are left out.
    """

    def __init__(
        self,
        problem: PlanningProblem,
        prices: Prices,
        room: int = 0,
        most_macs: int | None = None,
        bound: int = 0,
    ) -> None:
        self.pricer = TilePricer(problem, order(problem.order_problem()).steps, prices, most_macs)
        self.network = problem.network
        self.room, self.bound = room, bound
        self._tiled: dict[int, list[Candidate]] = {}  # by end

    @cached_property
    def _free(self) -> list[list[Candidate]]:
        """The candidates that recompute nothing, by end: whole layers and groups that run by rows."""
        pricer = self.pricer
        wholes = [[pricer.whole(at)] for at in range(len(pricer.layers))]
        limit = max(self.room, self.by_rows.peak)
        # Candidates that only pay with more memory need not be longer than those that pay with less.
        reach = min(limit, self.by_rows.peak)
        arriving = pricer.arriving(wholes, limit, max(int(self.by_rows.peak * LOWEST), self.bound), reach)
        for at, ending in enumerate(arriving):
            more = [scratch for cut in ending if (scratch := pricer.with_scratch(cut)) and scratch.memory <= limit]
            ending += [*more, *pricer.with_more_memory(at)]
        return arriving

    @cached_property
    def by_rows(self) -> Route:
        """The route with the least peak that has no tiles."""
        return Route(tuple(self.pricer.best()))

    def reach(self, limit: int) -> bool:
        """Prices the groups in tiles that may get below the limit; returns whether there are any."""
        for at in self._stuck(limit):
            ends = [last for last in range(at + 1, len(self._outside)) if self._lightest(at, last) <= limit]
            for last in ends:
                if last not in self._tiled:
                    self._tiled[last] = self.pricer.tiled(last, self.by_rows.peak)
            if not any(cut.first <= at and cut.memory <= limit for last in ends for cut in self._tiled[last]):
                return False
        return True

    def _stuck(self, limit: int) -> list[int]:
        """The layers that no stage without tiles can run within the limit."""
        change = [0] * (len(self._free) + 1)
        for cut in (cut for cuts in self._free for cut in cuts if cut.memory <= limit):
            change[cut.first] += 1
            change[cut.last] -= 1
        return [at for at, covering in enumerate(accumulate(change[:-1])) if not covering]

    def _lightest(self, at: int, last: int) -> int:
        """The fewest bytes outside any group that contains this layer and ends right before `last`."""
        return min(self._outside[last][self.pricer.earliest(last) : at + 1], default=_UNLIMITED)

    @cached_property
    def _outside(self) -> list[list[int]]:
        """Lower bounds, by end and beginning, of the bytes live beside a group."""
        ends = range(1, len(self._free) + 1)
        return [[], *([memory - shared for memory, shared in self.pricer.outside(last)] for last in ends)]

    @property
    def arriving(self) -> list[list[Candidate]]:
        return [[*cuts, *self._tiled.get(at + 1, ())] for at, cuts in enumerate(self._free)]

    @property
    def priced(self) -> int:
        """The number of candidates priced so far."""
        return sum(map(len, self.arriving))

    def cheapest(self, limit: int, is_roomy: bool = False, without: Collection[StageKey] = ()) -> Route | None:
        """The route within the limit with the least extra MACs, and among these the fewest extra instructions.

        With `is_roomy`, stages that need less memory are preferred if that costs little: chains of overlapping outputs
        often cannot be laid out as tightly as they are priced. Stages in `without` are not used.
        """
        fee = ROOMY * self.network.total_macs / max(1, limit) if is_roomy else 0.0
        best: list[tuple[int, float] | None] = [(0, 0)]
        taken: list[Candidate | None] = [None]
        for cuts in self.arriving:
            cheapest_end: tuple[int, float] | None = None
            chosen = None
            for cut in cuts:
                before = best[cut.first]
                if cut.memory > limit or before is None or cut.key in without:
                    continue
                total = before[0] + cut.macs, before[1] + cut.effort + fee * cut.memory
                if cheapest_end is None or total < cheapest_end:
                    cheapest_end, chosen = total, cut
            best.append(cheapest_end)
            taken.append(chosen)
        return None if best[-1] is None else _backwards(taken)

    def choice(self, route: Route) -> PlanChoice:
        """The decisions of the route, from which its plan is made."""
        at = {layer.name: index for index, layer in enumerate(self.network.layers)}
        schedules, scratch, no_overlap = [], [], []
        for cut in route.cuts:
            name = self.pricer.names[cut.first]
            if cut.schedule:
                layers = tuple(sorted(cut.schedule.layers, key=at.__getitem__))
                schedules.append(replace(cut.schedule, layers=layers))
                name = schedules[-1].name
            if cut.scratch:
                scratch.append((name, cut.scratch))
            if cut.no_overlap:
                no_overlap.append(name)
        return PlanChoice(tuple(schedules) or None, frozenset(no_overlap), tuple(sorted(scratch)))

    def front(self) -> Iterator[Route]:
        """Routes with decreasing peaks, starting with the one without tiles, each with the least extra MACs for its
        peak."""
        route: Route | None = self.by_rows
        while route is not None:
            yield route
            # Slightly finer than people would distinguish; below that, the very next one.
            limits = (min(int(route.peak * FINER), route.peak - 1), route.peak - 1)
            route = next((below for limit in limits if (below := self.below(limit))), None)

    def below(self, limit: int) -> Route | None:
        """The cheapest route within the limit, tiles included."""
        return self.cheapest(limit) if self._free and self.reach(limit) else None


def _backwards(taken: list[Candidate | None]) -> Route:
    stages: list[Candidate] = []
    at = len(taken) - 1
    while at:
        cut = taken[at]
        assert cut is not None
        stages.append(cut)
        at = cut.first
    return Route(tuple(stages[::-1]))
