"""Routes through the cuts of an order: which fusion group follows which, at the least extra work within a memory limit.

Peak RAM is a maximum over stages and extra work is a sum, so for each limit the best route is a shortest path over the
cuts that stay within it. Lowering the limit step by step gives every point of the front of RAM against work.
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

LOWEST = 0.4  # of the peak by rows: what tiles may hope for
ROOMY = 0.001  # instructions for each MAC of the network: what a stage that fills the limit is taken to cost
FINER = 0.99  # of the last peak: where the next point of a front may lie
_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class Route:
    """Stages from the first layer to the last. Memory is as priced; the layout says what it really is."""

    cuts: tuple[Candidate, ...]

    @property
    def peak(self) -> int:
        return max((cut.memory for cut in self.cuts), default=0)

    @property
    def macs(self) -> int:
        """MACs that are computed more than once."""
        return sum(cut.macs for cut in self.cuts)

    @property
    def effort(self) -> int:
        """Instructions beyond those of whole layers with all the memory they like, as priced."""
        return sum(cut.effort for cut in self.cuts)

    @property
    def schedules(self) -> tuple[FusionSchedule, ...]:
        return tuple(cut.schedule for cut in self.cuts if cut.schedule)


class Routes:
    """All routes of a network. Groups in tiles are priced when a limit is asked for that cannot do without.

    `room` is memory that is there anyway: routes within it are looked for even if there are some with less. Groups
    that compute more than `most_macs` again are left out.
    """

    def __init__(
        self,
        work: PlanningProblem,
        prices: Prices,
        room: int = 0,
        most_macs: int | None = None,
    ) -> None:
        self.pricer = TilePricer(work, order(work.order_problem()).steps, prices, most_macs)
        self.network = work.network
        self.room = room
        self._tiled: dict[int, list[Candidate]] = {}  # by end

    @cached_property
    def _free(self) -> list[list[Candidate]]:
        """By end: whole layers and groups by rows, which compute nothing twice."""
        pricer = self.pricer
        wholes = [[pricer.whole(at)] for at in range(len(pricer.layers))]
        limit = max(self.room, self.by_rows.peak)
        found = pricer.arriving(wholes, limit, int(self.by_rows.peak * LOWEST))
        for at, ending in enumerate(found):
            more = [scratch for cut in ending if (scratch := pricer.with_scratch(cut)) and scratch.memory <= limit]
            ending += [*more, *pricer.with_more_memory(at)]
        return found

    @cached_property
    def by_rows(self) -> Route:
        """The route with the least peak that has no tiles."""
        return Route(tuple(self.pricer.best()))

    def reach(self, limit: int) -> bool:
        """Takes in the groups in tiles that may lead below the limit; whether any may at all."""
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
        """The least that lies outside of any group with this layer in it that ends right before `last`."""
        return min(self._outside[last][self.pricer.earliest(last) : at + 1], default=_UNLIMITED)

    @cached_property
    def _outside(self) -> list[list[int]]:
        """By end and beginning: bytes that lie in memory beside a group at least, whatever is kept inside."""
        ends = range(1, len(self._free) + 1)
        return [[], *([memory - shared for memory, shared in self.pricer.outside(last)] for last in ends)]

    @property
    def arriving(self) -> list[list[Candidate]]:
        return [[*cuts, *self._tiled.get(at + 1, ())] for at, cuts in enumerate(self._free)]

    @property
    def priced(self) -> int:
        """How many candidates, ways to run a group, have been priced so far."""
        return sum(map(len, self.arriving))

    def cheapest(self, limit: int, is_roomy: bool = False, without: Collection[StageKey] = ()) -> Route | None:
        """The route with the least extra MACs, and then the least effort, that stays within the limit.

        A roomy one prefers stages that need less where that costs hardly more: outputs that trail inputs which trail
        others must be laid out far apart. Stages of `without` are not taken.
        """
        fee = ROOMY * self.network.total_macs / max(1, limit) if is_roomy else 0.0
        best: list[tuple[int, float] | None] = [(0, 0)]
        taken: list[Candidate | None] = [None]
        for cuts in self.arriving:
            found: tuple[int, float] | None = None
            chosen = None
            for cut in cuts:
                before = best[cut.first]
                if cut.memory > limit or before is None or cut.key in without:
                    continue
                total = before[0] + cut.macs, before[1] + cut.effort + fee * cut.memory
                if found is None or total < found:
                    found, chosen = total, cut
            best.append(found)
            taken.append(chosen)
        return None if best[-1] is None else _backwards(taken)

    def choice(self, route: Route) -> PlanChoice:
        """What a plan of the route decides."""
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
        """Routes with ever lower peaks, from the one without tiles; each computes the least again that it must."""
        route: Route | None = self.by_rows
        while route is not None:
            yield route
            # A little finer than what people would tell apart; below that, the very next one.
            limits = (min(int(route.peak * FINER), route.peak - 1), route.peak - 1)
            route = next((found for limit in limits if (found := self.below(limit))), None)

    def below(self, limit: int) -> Route | None:
        """The cheapest route within the limit, tiles included."""
        return self.cheapest(limit) if self._free and self.reach(limit) else None


def _backwards(taken: list[Candidate | None]) -> Route:
    found: list[Candidate] = []
    at = len(taken) - 1
    while at:
        cut = taken[at]
        assert cut is not None
        found.append(cut)
        at = cut.first
    return Route(tuple(found[::-1]))
