"""Whole layers on devices, exactly: one device after the other is filled in every way that leaves room for the rest.

This is bin completion (Korf 2003). Little room is left when the fullest device may hold little more than its share, so
that few fillings are possible; layers of equal cost are counted and not told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .vertical import VerticalProblem

MOST_DEVICES = 200  # the search is as deep as there are devices
Counts = list[int]  # layers of each cost


@dataclass
class Completion:
    """Fills devices in steps; `gave_up` after the last of `steps`: then the absence of an answer proves nothing."""

    problem: VerticalProblem
    steps: int
    gave_up: bool = False
    _failed: set[tuple[int, ...]] = field(default_factory=set)
    _sizes: Sequence[int] = ()  # the different costs, largest first
    _left: Counts = field(default_factory=list)
    _rooms: Sequence[tuple[int, int]] = ()  # what each device may hold, and the device; largest first

    def within(self, most: int) -> tuple[int, ...] | None:
        """A device for each layer so that none holds more than `most` or its limit; None if there is none."""
        if self.problem.devices > MOST_DEVICES:
            self.gave_up = True
            return None
        counts = Counter(self.problem.costs)
        self._sizes = sorted((cost for cost in counts if cost), reverse=True)
        self._left = [counts[size] for size in self._sizes]
        rooms = ((min(most, limit), device) for device, limit in enumerate(self.problem.ceilings))
        self._rooms = sorted(rooms, reverse=True)
        self._failed.clear()
        fillings = self._completed(0, self.problem.total)
        return None if fillings is None else self._devices(fillings)

    def _completed(self, at: int, total: int) -> list[Counts] | None:
        """What each device from this one on holds, when these hold all layers that are left."""
        if at == len(self._rooms):
            return [] if total == 0 else None
        key = (at, *self._left)
        if key in self._failed:
            return None
        room, _ = self._rooms[at]
        elsewhere = sum(other for other, _ in self._rooms[at + 1 :])
        for filling in self._fillings(total - elsewhere, room, is_alike=room == self._rooms[-1][0]):
            held = sum(count * size for count, size in zip(filling, self._sizes, strict=True))
            self._take(filling, 1)
            rest = self._completed(at + 1, total - held)
            self._take(filling, -1)
            if rest is not None:
                return [filling, *rest]
        if not self.gave_up:
            self._failed.add(key)
        return None

    def _take(self, filling: Counts, sign: int) -> None:
        for index, count in enumerate(filling):
            self._left[index] -= sign * count

    def _fillings(self, least: int, most: int, *, is_alike: bool) -> Iterator[Counts]:
        """Layers of each cost that take `least` to `most`; the largest is among them where all devices are alike."""
        sizes, left = self._sizes, self._left
        behind = [0] * (len(sizes) + 1)  # what layers from an index on take
        for index in reversed(range(len(sizes))):
            behind[index] = behind[index + 1] + left[index] * sizes[index]
        start = next((index for index, count in enumerate(left) if count), len(sizes))
        fewest = [int(is_alike and index == start) for index in range(len(sizes))]
        chosen, held, index = [0] * len(sizes), 0, start
        while self.steps:
            while index < len(sizes) and held + behind[index] >= least:
                chosen[index] = min(left[index], (most - held) // sizes[index])
                held += chosen[index] * sizes[index]
                index += 1
                self.steps -= bool(self.steps)
            if index == len(sizes) and held >= least:
                yield chosen.copy()
            index -= 1
            while index >= start and chosen[index] <= fewest[index]:
                held -= chosen[index] * sizes[index]
                chosen[index] = 0
                index -= 1
            if index < start:
                return
            chosen[index] -= 1
            held -= sizes[index]
            index += 1
        self.gave_up = True

    def _devices(self, fillings: Sequence[Counts]) -> tuple[int, ...]:
        left: dict[int, list[int]] = {size: [] for size in self._sizes}
        found = [0] * len(self.problem.costs)
        for layer, cost in enumerate(self.problem.costs):
            if cost:
                left[cost].append(layer)
        for (_, device), filling in zip(self._rooms, fillings, strict=True):
            for size, count in zip(self._sizes, filling, strict=True):
                for _ in range(count):
                    found[left[size].pop()] = device
        return tuple(found)
