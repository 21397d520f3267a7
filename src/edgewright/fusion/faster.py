"""Makes a plan faster by spending RAM: scratch for kernels, outputs that do not overlap inputs, more rows per step.

Every change is planned in full. The change that saves the most instructions per byte is taken, until the plan meets its
limit or the RAM is used up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..errors import InputError
from ..kernels.cost.call_context import AMPLE
from ..kernels.cost.stages import columns_of, cuts
from ..program import FusionSchedule, RowTrace
from .choice import PlanChoice, PlanMaker, PlannedChoice
from .timing import TimedPlan

MOST_ROUNDS = 6
MOST_MOVES = 5  # planned in a round
WORK = 400  # moves times layers in a round; beyond it fewer are tried
STEPS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)  # rows
GAIN_TARGETS = (0.5, 0.85, 0.97)  # shares of the largest possible gain
MOST_ROOM = 1 << 17  # bytes of scratch that a kernel may use
LEAST_GAIN = 0.002  # minimum saving of a change, as a share of all instructions


@dataclass(frozen=True)
class Move:
    """A change of a choice, and the instructions it is expected to save."""

    gain: float
    choice: PlanChoice


def speed_up(maker: PlanMaker, choice: PlanChoice, budget: float, below: int) -> PlannedChoice | None:
    """A faster choice with at most `budget` instructions in less than `below` bytes; None if there is none."""
    faster = fastest(maker, choice, budget, below)
    return faster if faster.cost <= budget and faster.peak < below else None


def fastest(maker: PlanMaker, choice: PlanChoice, budget: float, below: int) -> PlannedChoice:
    """The choice, made faster step by step while it is above the instruction budget and RAM is left."""
    at = maker.make(choice)
    for _ in range(MOST_ROUNDS):
        if at.peak >= below or at.cost <= budget:
            break
        tried = [faster for faster in _tried(maker, at) if faster.peak < below and faster.cost < at.cost]
        if not tried:
            break
        within = [faster for faster in tried if faster.cost <= budget]
        at = (
            min(within, key=lambda c: (c.peak, c.cost))
            if within
            else min(tried, key=lambda c: _bytes_per_instruction_saved(c, at))
        )
    return at


def _bytes_per_instruction_saved(other: PlannedChoice, before: PlannedChoice) -> float:
    """The price of a change: bytes of RAM per instruction saved."""
    return max(1, other.peak - before.peak) / (before.cost - other.cost)


def _tried(maker: PlanMaker, at: PlannedChoice) -> Iterator[PlannedChoice]:
    least = LEAST_GAIN * at.cost
    moves = sorted((move for move in moves_of(at) if move.gain > least), key=lambda move: -move.gain)
    most = max(2, min(MOST_MOVES, WORK // max(1, len(maker.network.layers))))
    for move in moves[:most]:
        try:
            yield maker.make(move.choice)
        except InputError:  # this many rows cannot be kept
            continue


def moves_of(at: PlannedChoice) -> Iterator[Move]:
    """All changes of a choice that are expected to save instructions."""
    timed = at.timed
    schedules = {schedule.name: schedule for schedule in at.choice.schedules or ()}
    for index, stage in enumerate(timed.plan.program.stages):
        now = timed.steps(index)
        if now - timed.steps(index, room=AMPLE) > LEAST_GAIN * at.cost:
            sizes = _scratch_sizes(timed, index, now)
            yield from (Move(gain, at.choice.with_scratch(stage.name, room)) for gain, room in sizes)
        if timed.is_shared(index):
            yield Move(now - timed.without_overlap(index), at.choice.with_no_overlap(frozenset(stage.layers)))
        if stage.name in schedules and stage.schedule.streamed and not stage.schedule.splits:
            chains = _Chains(timed, index, RowTrace(timed.plan.program.fused(stage)))
            for gain, schedule in chains.schedules(schedules[stage.name]):
                yield Move(gain, at.choice.with_schedule(schedule))


def _scratch_sizes(timed: TimedPlan, index: int, now: float) -> Iterator[tuple[float, int]]:
    """(instructions saved, bytes) for scratch of a stage: for part of the saving, and for all of it."""
    ample = timed.steps(index, room=AMPLE)
    words = range(min(timed.plan.largest_gap(index)[2], MOST_ROOM) // 8, MOST_ROOM // 8)
    for share in GAIN_TARGETS:
        target = now - share * (now - ample)
        room = 8 * (words.start + bisect_left(words, -target, key=lambda n: -timed.steps(index, room=8 * n)))
        yield now - timed.steps(index, room=room), room


class _Chains:
    """The chains of layers that run row by row, and their cost with more rows per step."""

    def __init__(self, timed: TimedPlan, index: int, trace: RowTrace) -> None:
        self.timed, self.index, self.trace = timed, index, trace

    def schedules(self, schedule: FusionSchedule) -> Iterator[tuple[float, FusionSchedule]]:
        """Variants of the schedule with more rows per step: for each chain separately, and for all together."""
        pulled = set(self.timed.plan.pulled)
        each = [self._options(chain) for chain in range(len(self.trace.chains)) if not self._reads(chain, pulled)]
        for options in each:
            for gain, change in options:
                yield gain, _changed(schedule, [change])
        for rank in range(len(GAIN_TARGETS)):
            chosen = [options[min(rank, len(options) - 1)] for options in each if options]
            if len(chosen) > 1:
                yield sum(gain for gain, _ in chosen), _changed(schedule, [change for _, change in chosen])

    def _reads(self, chain: int, names: set[str]) -> bool:
        by_name = self.timed.plan.network.by_name
        return any(names & set(by_name[layer].inputs) for layer in self.trace.chains[chain].layers)

    def _options(self, index: int) -> list[tuple[float, tuple[str, int]]]:
        """The fewest rows per step of one chain that reach each target, with the instructions saved."""
        chain, height = self.trace.chains[index], self.trace.heights[index]
        now = self._cost(index, chain.rows, chain.columns)
        costs = {
            more: self._cost(index, more, 0) for more in (chain.rows, *STEPS) if chain.rows <= more <= max(height, 1)
        }
        best = min(costs.values(), default=now)
        options = []
        for share in GAIN_TARGETS:
            enough = [more for more, cost in costs.items() if cost <= now - share * (now - best)]
            if best < now and enough:
                options.append((now - costs[min(enough)], (chain.last, min(enough))))
        return list(dict.fromkeys(options))

    def _cost(self, index: int, rows: int, width: int) -> float:
        total = 0.0
        for part, often in cuts(self.trace.heights[index], rows):
            for columns, times in columns_of(self.trace, index, width):
                for layer in self.trace.chains[index].layers:
                    step = self.trace.step(layer, part, columns)
                    cost = self.timed.costs.step(step, self.timed.context(self.index, step))
                    total += often * times * cost
        return total


def _changed(schedule: FusionSchedule, changes: list[tuple[str, int]]) -> FusionSchedule:
    """The schedule with new rows per step, by the last layer of each chain; these chains process all columns at
    once."""
    rows = {**dict(schedule.rows), **dict(changes)}
    columns = {**dict(schedule.columns), **{name: 0 for name, _ in changes}}
    return replace(schedule, rows=tuple(rows.items()), columns=tuple(columns.items()))
