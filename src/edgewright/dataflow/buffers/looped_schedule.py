"""Looped schedules: repeated firings written once with a count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .schedule import Runs, Schedule

LONGEST_BODY = 1024  # steps of a loop; longer loops are not searched
MOST_WORK = 500_000_000  # steps compared: about a second; beyond it each length is tried once
# Names that need no quotes.
_PLAIN = re.compile(r"[^\W\d][^\s()'\";]*|[/.][^\s()'\";]*")


@dataclass(frozen=True)
class ScheduleLoop:
    """An actor, or a sequence of steps, with a repetition count."""

    times: int
    body: str | tuple[ScheduleLoop, ...]

    def __str__(self) -> str:
        if isinstance(self.body, str):
            what = self.body if _PLAIN.fullmatch(self.body) else repr(self.body)
        else:
            what = f"({' '.join(map(str, self.body))})"
        return what if self.times == 1 else f"{self.times} {what}"


def schedule_text(schedule: Schedule) -> str:
    """The schedule in one line, `2 a 3 (b 2 c)`: the part before a semicolon fires once, the rest forever."""
    first, again = (" ".join(map(str, looped(runs))) for runs in (schedule.first, schedule.again))
    return f"{first}; {again}" if first else again


def nested(loops: Sequence[ScheduleLoop]) -> list[object]:
    """The loops as nested lists of a count and an actor, or a count and such lists."""
    return [[loop.times, loop.body if isinstance(loop.body, str) else nested(loop.body)] for loop in loops]


def looped(runs: Runs) -> tuple[ScheduleLoop, ...]:
    """The runs with repetitions folded, short ones first, so that loops nest."""
    table = _Table()
    row = np.array([table.number(ScheduleLoop(count, actor)) for actor, count in runs], dtype=np.int64)
    length, work = 1, 0
    while 2 * length <= len(row) and length <= LONGEST_BODY:
        work += len(row)
        folded = _folded(row, length, table)
        # the shorter sequence may repeat at a length already tried
        length = 1 if len(folded) < len(row) and work < MOST_WORK else length + 1
        row = folded
    return tuple(table.loops[number] for number in row)


class _Table:
    """Loops by number, so that equal loops have equal numbers."""

    def __init__(self) -> None:
        self.loops: list[ScheduleLoop] = []
        self._numbers: dict[ScheduleLoop, int] = {}

    def number(self, loop: ScheduleLoop) -> int:
        if loop not in self._numbers:
            self._numbers[loop] = len(self.loops)
            self.loops.append(loop)
        return self._numbers[loop]

    def repeated(self, body: Sequence[int], times: int) -> int:
        """The number of a loop over these steps; nested counts of a single loop are multiplied."""
        steps = tuple(self.loops[number] for number in body)
        if len(steps) == 1:
            return self.number(ScheduleLoop(times * steps[0].times, steps[0].body))
        return self.number(ScheduleLoop(times, steps))


def _folded(row: NDArray[np.int64], length: int, table: _Table) -> NDArray[np.int64]:
    """The sequence with each repetition of `length` steps folded."""
    pieces: list[NDArray[np.int64]] = []
    done = 0
    for start, times in _repetitions(row, length):
        pieces.append(row[done:start])
        pieces.append(np.array([table.repeated(row[start : start + length].tolist(), times)], dtype=np.int64))
        done = start + times * length
    return np.concatenate([*pieces, row[done:]]) if pieces else row


def _repetitions(row: NDArray[np.int64], length: int) -> Iterator[tuple[int, int]]:
    """The positions and counts of repeated steps of this length, without overlaps."""
    same = np.concatenate([[False], row[length:] == row[:-length], [False]])
    edges = np.flatnonzero(same[1:] != same[:-1])
    free = 0
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        start = max(begin, free)
        if end - start >= length:
            times = (end - start) // length + 1
            free = start + times * length
            yield start, times
