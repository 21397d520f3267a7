"""Arena size against the worst switching delay: layouts of scenarios in one arena, for falling limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from ..application.blocking import undominated
from ..errors import InputError
from ..memory.joint.conflicts import BufferUse, JointBuffer
from ..memory.joint.placing import place
from ..memory.layout import ConflictGraph, LayoutEffort, Placement
from ..program import Plan
from ..program.switching import SwitchPolicy
from .plan_check import TracedScenario, overwritten
from .planned import PlannedPart, PlannedScenario, planned_scenarios
from .switch_conflicts import ScenarioPlan, SwitchConflicts, key
from .transition import Transition, transition

POINTS = 12  # delay limits tried
_ROUNDS = 4  # placements until kernels no longer change with addresses


@dataclass(frozen=True)
class SwitchLayout:
    """One layout of all scenarios with its transitions, approved by the judge."""

    policy: SwitchPolicy
    limit: float  # of the worst delay, or of the wait for a switch point
    arena_bytes: int
    bound_bytes: int  # lower bound for layouts with the conflicts that the limit requires between whole buffers
    scenarios: Mapping[str, PlannedScenario]  # with their plans in the common arena
    transitions: Mapping[tuple[str, str], Transition]

    @property
    def plans(self) -> Mapping[str, Plan]:
        return {name: one.parts[0].plan for name, one in self.scenarios.items()}

    @property
    def is_least(self) -> bool:
        """Whether the layout is proven the smallest for these plans and this limit."""
        return self.arena_bytes == self.bound_bytes

    @cached_property
    def delays(self) -> Mapping[tuple[str, str], float]:
        """The worst delay of each pair: (old, new)."""
        return {pair: one.worst_delay for pair, one in self.transitions.items()}

    @property
    def worst_delay(self) -> float:
        return max(self.delays.values())

    @property
    def mean_delay(self) -> float:
        """The mean over all pairs of their worst delays."""
        return sum(self.delays.values()) / len(self.delays)


@dataclass(frozen=True)
class SwitchFront:
    """Scenarios that switch under a policy, and their layouts."""

    scenarios: Sequence[ScenarioPlan]
    policy: SwitchPolicy
    processors: int = 1
    effort: LayoutEffort = LayoutEffort.NORMAL

    def __post_init__(self) -> None:
        if len(self.scenarios) < 2 or len({one.name for one in self.scenarios}) < len(self.scenarios):
            raise InputError("switching takes two or more scenarios, each with a name of its own")

    @cached_property
    def conflicts(self) -> SwitchConflicts:
        return SwitchConflicts(self.scenarios)

    def points(self, count: int = POINTS) -> tuple[SwitchLayout, ...]:
        """Pareto-optimal layouts of size and worst delay, from the largest arena to the smallest.

        `count` limits, two or more, are tried, and before them the layout with each switch at its fastest, if that
        takes a larger arena.
        """
        found: list[SwitchLayout] = []
        for limit in self.limits(count):
            if not found or limit < self._reached(found[-1]):
                found.append(self.at(limit))
        front = undominated(found, lambda point: (point.arena_bytes, point.worst_delay))
        fastest = self.fastest_within()
        is_faster = fastest.mean_delay < front[0].mean_delay and fastest.arena_bytes > front[0].arena_bytes
        return (fastest, *front) if is_faster else front

    @cached_property
    def slackest(self) -> SwitchLayout:
        """The layout without constraints between plans: the smallest arena, with the longest delays."""
        return self.at(self.limits()[0])

    def fastest_within(self, ram: int | None = None) -> SwitchLayout:
        """The layout for the smallest limit whose arena fits, by bisection; the slackest one if no other fits."""
        limits = (*self.limits(), *self._shorter_limits)
        low, high = 0, len(limits)  # the layout for limits[low] fits, that for limits[high] does not
        at = high - 1  # usually everything fits
        while low < at < high:
            one = self.at(limits[at])
            if ram is None or one.arena_bytes <= ram:
                low = at
            else:
                high = at
            at = (low + high) // 2
        return self.at(limits[low])

    def within(self, delay: float) -> SwitchLayout | None:
        """The layout for the slackest limit whose worst delay is at most `delay`, by bisection; None if there is none.

        Because of heuristics a larger limit may cost more; the result keeps `delay` in any case.
        """
        limits = self.limits()
        if self.slackest.worst_delay <= delay:
            return self.slackest
        if self.policy is SwitchPolicy.OVERLAP and limits[-1] <= delay <= limits[0]:
            return self._fastest_of(self.at(delay))  # made for exactly this delay
        low, high = 0, len(limits)  # limits[low] is too slack; limits[high], if any, is not
        while high - low > 1:
            at = (low + high) // 2
            low, high = (low, at) if self.at(limits[at]).worst_delay <= delay else (at, high)
        return self._fastest_of(self.at(limits[high])) if high < len(limits) else None

    def _fastest_of(self, found: SwitchLayout) -> SwitchLayout:
        """The layout with the least delay among all made so far that are no larger."""
        no_larger = [one for one in self._made.values() if one.arena_bytes <= found.arena_bytes]
        return min(no_larger, key=lambda one: (one.worst_delay, one.arena_bytes))

    def _reached(self, layout: SwitchLayout) -> float:
        """The least limit that a layout keeps, possibly less than the one it was made for."""
        own = 1 if self.policy is SwitchPolicy.OVERTAKE else 0
        return max(one.worst_delay - own * one.new.latency for one in layout.transitions.values())

    @property
    def _shorter_limits(self) -> tuple[float, ...]:
        """Limits below the least that all scenarios keep: they speed up switches to or from short scenarios."""
        leasts = {
            SwitchPolicy.OVERLAP: {one.time for one in self.scenarios},
            SwitchPolicy.OVERTAKE: {one.least_wait for one in self.scenarios},
        }.get(self.policy, set())
        return tuple(sorted(leasts, reverse=True)[1:])

    def limits(self, count: int = POINTS) -> tuple[float, ...]:
        """From the slackest limit, without constraints between plans, to the least possible one."""
        return tuple(dict.fromkeys(self._limits(count)))

    def _limits(self, count: int) -> Iterator[float]:
        times = [one.time for one in self.scenarios]
        match self.policy:
            case SwitchPolicy.OVERLAP:
                least, most = max(times), max(a + b for a, b in permutations(times, 2))
                yield from (most + (least - most) * at / (count - 1) for at in range(count))
            case SwitchPolicy.OVERTAKE:
                least = max(one.least_wait for one in self.scenarios)
                waits = {*times, *(wait for one in self.scenarios for wait in one.waits)}
                allowed = sorted((wait for wait in waits if least <= wait), reverse=True)
                yield from (allowed[at * (len(allowed) - 1) // (count - 1)] for at in range(count))
            case _:
                yield max(a + b for a, b in permutations(times, 2))

    @cached_property
    def _made(self) -> dict[float, SwitchLayout]:
        return {}

    def at(self, limit: float) -> SwitchLayout:
        """The layout for one limit, checked."""
        if limit not in self._made:
            self._made[limit] = self._at(limit)
        return self._made[limit]

    def _at(self, limit: float) -> SwitchLayout:
        moved, placement = self._placed(limit)
        parts = {one.name: [PlannedPart(one.name, one.plan, one.turns)] for one in moved}
        planned = planned_scenarios(parts)
        traced = {name: TracedScenario(one) for name, one in planned.items()}
        table = {}
        for old, new in permutations(planned, 2):
            one = transition(planned[old].scenario, planned[new].scenario, self.policy, self.processors)
            wrong = next(overwritten(traced[old], traced[new], one), None)
            assert wrong is None, wrong
            table[old, new] = one
        size = max(part.plan.peak_bytes for (part,) in parts.values())
        return SwitchLayout(self.policy, limit, size, min(placement.bound, size), planned, table)

    def _placed(self, limit: float) -> tuple[Sequence[ScenarioPlan], Placement]:
        """The scenarios at their addresses; placed again if that changed kernels whose scratch has no place."""
        scenarios = self.scenarios
        for _ in range(_ROUNDS):
            graph = self._demanded(SwitchConflicts(scenarios), limit)
            placement = place_scenarios(scenarios, graph, self.effort)
            before, scenarios = scenarios, [_moved(one, placement) for one in scenarios]
            if all(one.buffers == other.buffers for one, other in zip(before, scenarios, strict=True)):
                break
        return scenarios, placement

    def _demanded(self, conflicts: SwitchConflicts, limit: float) -> ConflictGraph:
        if self.policy is SwitchPolicy.OVERLAP:
            return conflicts.for_delay(limit)
        if self.policy is SwitchPolicy.OVERTAKE:
            return conflicts.for_wait(limit)
        return conflicts.within()


def place_scenarios(scenarios: Sequence[ScenarioPlan], graph: ConflictGraph, effort: LayoutEffort) -> Placement:
    """Addresses for all buffers. A plan without conflicts with other plans keeps its own."""
    buffers = {
        key(one, b.name): JointBuffer(
            key(one, b.name),
            graph.sizes[key(one, b.name)],
            uses=(BufferUse(one.name, b.name, b.first, b.last),),
            planned=b.offset,
        )
        for one in scenarios
        for b in one.plan.buffers
        if key(one, b.name) in graph.sizes
    }
    plans = {one.name: one.plan for one in scenarios}
    return place(graph, buffers, plans, max(plan.bound_bytes for plan in plans.values()), effort)


def _moved(scenario: ScenarioPlan, placement: Placement) -> ScenarioPlan:
    """The scenario with its buffers at their addresses in the common arena."""
    return scenario.moved({name: placement.offsets[key(scenario, name)] for name in scenario.buffers})
