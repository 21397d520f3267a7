"""Which buffers of two scenarios must not overlap so that switching between them takes no longer than a limit.

The limit is on the worst delay under `OVERLAP`, and on the wait for a switch point under `OVERTAKE`. Under `FINISH` and
`ABORT` the plans are never active together, and no limit requires anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, combinations, pairwise, permutations

from ..application.preemption_points import RunPieces
from ..errors import InputError
from ..kernels.check import SCRATCH_ALIGNMENT, faults
from ..kernels.select import select
from ..kernels.sites import NetworkFacts
from ..memory.joint.conflicts import trailing
from ..memory.joint.layout import with_buffers
from ..memory.layout import ConflictGraph
from ..memory.layout.problem import align_up
from ..program import Plan
from .plan_turns import Hulls, PlanTurns, joined

ROUNDING = 1e-9  # relative tolerance for sums of floating-point times


@dataclass(frozen=True)
class ScenarioPlan:
    """A scenario with one plan on one processor, and the times of its stages, turn by turn and the rest."""

    name: str
    plan: Plan
    pieces: RunPieces
    facts: NetworkFacts | None = None  # with which its kernels were selected

    def __post_init__(self) -> None:
        if len(self.plan.arenas) > 1:
            raise InputError(
                f"the plan of scenario '{self.name}' lies in {len(self.plan.arenas)} memories; plan it for one"
            )

    @cached_property
    def turns(self) -> PlanTurns:
        return PlanTurns.of(self.plan, self.pieces.stages)

    def moved(self, offsets: Mapping[str, int]) -> ScenarioPlan:
        """The scenario with its buffers at other addresses, and other kernels where overlaps of outputs and inputs
        change."""
        buffers = (replace(b, offset=offsets.get(b.name, b.offset)) for b in self.plan.buffers)
        found = replace(self, plan=with_buffers(self.plan, tuple(buffers)))
        if self.facts is not None and next(faults(found.plan, self.facts), None) is not None:
            return replace(found, plan=select(found.plan, self.facts))
        found.__dict__["turns"] = self.turns  # independent of addresses
        return found

    @cached_property
    def buffers(self) -> Sequence[str]:
        """The buffers of the arena; those in the caller's memory share nothing."""
        return [buffer.name for buffer in self.plan.buffers if buffer.memory in self.plan.arenas]

    @cached_property
    def ends(self) -> Sequence[float]:
        """By count of turns: when that many have ended."""
        return [0.0, *accumulate(turn.time for turn in self.turns.turns)]

    @property
    def time(self) -> float:
        """The time of one frame."""
        return self.ends[-1]

    @cached_property
    def first_write(self) -> Mapping[str, int]:
        """The turn in which each buffer is first written."""
        found: dict[str, int] = {}
        for at, turn in enumerate(self.turns.turns):
            for name in turn.writes:
                found.setdefault(name, at)
        return found

    @cached_property
    def uses(self) -> Mapping[str, int]:
        """The number of ended turns after which each buffer is no longer in use."""
        return {name: at + 1 for at, turn in enumerate(self.turns.turns) for name in (*turn.reads, *turn.writes)}

    @cached_property
    def waits(self) -> Mapping[float, tuple[int, ...]]:
        """Sets of switch points, as counts of turns, by increasing longest wait.

        Each set has all points with at most a certain number of live bytes. The longer the wait, the fewer points.
        """
        live = [sum(high - low for low, high in turn.live.values()) for turn in self.turns.turns]
        found: dict[float, tuple[int, ...]] = {}
        for most in sorted({*live[:-1]}, reverse=True):
            points = [count for count, size in enumerate(live[:-1], start=1) if size <= most]
            found[self._longest_wait(points)] = tuple(points)
        return dict(sorted(found.items()))

    @property
    def least_wait(self) -> float:
        """The longest time between switch points if all are used."""
        return min(self.waits, default=self.time)

    def _longest_wait(self, points: Sequence[int]) -> float:
        """The longest time from one point to the next, or to the end of the frame."""
        times = [self.ends[count] for count in (0, *points, len(self.turns.turns))]
        return max(after - before for before, after in pairwise(times))

    def live(self, wait: float) -> Hulls:
        """The live bytes at the switch points with the fewest live bytes that come at least every `wait` seconds, or as
        often as possible. Empty if the frame itself is not longer."""
        most = max(wait, self.least_wait) * (1 + ROUNDING)
        if most >= self.time:
            return {}
        *_, points = (points for longest, points in self.waits.items() if longest <= most)
        return joined(self.turns.turns[count - 1].live for count in points)


@dataclass(frozen=True)
class SwitchConflicts:
    """The conflicts between all buffers of several scenarios; a buffer's name includes its scenario."""

    scenarios: Sequence[ScenarioPlan]

    @cached_property
    def alignment(self) -> int:
        """The alignment of all buffers: that of the plans, and that of kernels' scratch."""
        scratch = (SCRATCH_ALIGNMENT for one in self.scenarios if one.plan.selections)
        return max(*(one.plan.alignment for one in self.scenarios), *scratch)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        return {
            key(one, name): align_up(one.plan.buffer_named[name].size, self.alignment)
            for one in self.scenarios
            for name in one.buffers
        }

    def within(self) -> ConflictGraph:
        """The conflicts inside the plans: buffers in use at the same time, except for outputs that overlap their
        input."""
        pairs, gaps = set(), {}
        for one in self.scenarios:
            named = one.plan.buffer_named
            for x, y in combinations(one.buffers, 2):
                if named[x].first <= named[y].last and named[y].first <= named[x].last:
                    pairs.add((key(one, x), key(one, y)))
                    if (gap := trailing(one.plan, x, y, self.alignment)) is not None:
                        gaps[key(one, x), key(one, y)] = gap
        return ConflictGraph(self.sizes, frozenset(pairs), gaps, self.alignment)

    def for_delay(self, limit: float) -> ConflictGraph:
        """The conflicts for a worst delay of at most `limit` under `OVERLAP`, with separate processors.

        The new scenario may start turn i when the first K(i) old turns have ended, with K(i) = max{k: E(k) + R(i) <=
        limit}: E(k) is the end of the first k old turns, R(i) the time from turn i to the end of the new frame. So an
        old buffer and a new one must not overlap if the old one is in use after the first K(i) turns, where i is the
        turn that writes the new one first; R falls with i, so later writes may wait longer. If the limit is below the
        new scenario's own time, that time counts as the limit.
        """
        graph = self.within()
        pairs = set(graph.pairs)
        for old, new in permutations(self.scenarios, 2):
            most = max(limit, new.time) * (1 + ROUNDING)
            free = {
                name: max(0, bisect_right(old.ends, most - (new.time - new.ends[at])) - 1)
                for name, at in new.first_write.items()
            }
            for mine in new.buffers:
                if mine in free:
                    pairs |= {
                        ordered(key(old, theirs), key(new, mine))
                        for theirs in old.buffers
                        if old.uses.get(theirs, 0) > free[mine]
                    }
        return ConflictGraph(graph.sizes, frozenset(pairs), graph.gaps, graph.alignment)

    def for_wait(self, wait: float) -> ConflictGraph:
        """The conflicts for switch points at least every `wait` seconds under `OVERTAKE`.

        Live bytes of a buffer at one of the points must not overlap any buffer of the other scenarios.
        """
        graph = self.within()
        pairs, gaps = set(graph.pairs), dict(graph.gaps)
        lives = {one.name: one.live(wait) for one in self.scenarios}
        for one, other in combinations(self.scenarios, 2):
            for x in one.buffers:
                for y in other.buffers:
                    pair = key(one, x), key(other, y)
                    wanted = []  # least distances from x to a higher y, and from y to a higher x
                    if (span := lives[one.name].get(x)) is not None:
                        wanted.append(self._apart(span, self.sizes[pair[1]]))
                    if (span := lives[other.name].get(y)) is not None:
                        wanted.append(self._apart(span, self.sizes[pair[0]])[::-1])
                    if wanted:
                        pairs.add(pair)
                        gaps[pair] = max(gap[0] for gap in wanted), max(gap[1] for gap in wanted)
        return ConflictGraph(graph.sizes, frozenset(pairs), gaps, graph.alignment)

    def _apart(self, span: tuple[int, int], size: int) -> tuple[int, int]:
        """The least distances from a buffer with a live span to a buffer of another size above it, and vice versa."""
        first, end = span
        return align_up(end, self.alignment), size - first // self.alignment * self.alignment


def key(scenario: ScenarioPlan, buffer: str) -> str:
    return f"{scenario.name}:{buffer}"


def ordered(x: str, y: str) -> tuple[str, str]:
    return (x, y) if x < y else (y, x)
