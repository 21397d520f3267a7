"""Chains of steps as hills and valleys, and the order in which independent chains are best interleaved.

Chains that meet in a shared store are left to `branches`.
"""

from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf


@dataclass(frozen=True, slots=True)
class Chain:
    """A sequence of steps; bytes count from the start of the chain."""

    steps: tuple[int, ...]
    level: tuple[int, ...]  # held before each step and after the last; level[0] == 0
    need: tuple[int, ...]  # while each step runs


@dataclass(frozen=True, slots=True)
class Climb:
    """A section of a chain that runs without a pause: up over a hill, down to a valley."""

    begin: int  # positions in the chain: steps[begin:end]
    end: int
    start: int  # bytes held before
    rise: int  # bytes above `start` at the hill
    change: int  # bytes held after, less `start`

    @property
    def rank(self) -> tuple[int, int]:
        """The sort key of climbs of independent chains (Liu 1987).

        First those that end no higher than they start, lowest hill first: each makes room for the next. Then the
        others, largest drop from hill to valley first: the same rule with time reversed.
        """
        return (0, self.rise) if self.change <= 0 else (1, self.change - self.rise)


def climbs(chain: Chain, begin: int, end: int) -> list[Climb]:
    """The canonical climbs of `steps[begin:end]`: no other way to pause is ever better.

    Down to the lowest valley, each climb ends lower and needs a higher hill than the one before; from there up,
    the same holds backwards in time (hill-valley segments, Liu 1987; Kayaaslan et al. 2018, section 3).
    """
    low = min(range(begin, end + 1), key=lambda at: (chain.level[at], -at))  # the last of the lowest
    # Down: pause at each new lowest valley, unless the hill before it was as high; then run on.
    down: list[tuple[int, int]] = []  # (hill, position after it)
    lowest, top = chain.level[begin], 0
    for at in range(begin + 1, low + 1):
        top = max(top, chain.need[at - 1])
        if chain.level[at] <= lowest:
            while down and down[-1][0] >= top:
                top = down.pop()[0]
            down.append((top, at))
            lowest, top = chain.level[at], 0
    up: list[tuple[int, int]] = []  # the same from the end; strictly, so that every climb of it gains
    lowest, top = chain.level[end], 0
    for at in range(end - 1, low - 1, -1):
        top = max(top, chain.need[at])
        if chain.level[at] < lowest:
            while up and up[-1][0] >= top:
                top = up.pop()[0]
            up.append((top, at))
            lowest, top = chain.level[at], 0
    marks = sorted({begin, *(at for _, at in (*down, *up)), end})
    return [
        Climb(
            a,
            b,
            start=chain.level[a],
            rise=max(chain.need[a:b]) - chain.level[a],
            change=chain.level[b] - chain.level[a],
        )
        for a, b in pairwise(marks)
    ]


def resting_places(chain: Chain, low: int, high: int) -> list[int]:
    """The positions from `low` to `high` at which a chain may wait: those without a lower position on both sides.

    Between two positions as low as it, waiting is never needed: cross the lower of the two hills together with the
    higher one.
    """
    places: set[int] = set()
    for positions in (range(low, high + 1), range(high, low - 1, -1)):
        lowest = accumulate((chain.level[at] for at in positions), min, initial=inf)  # of those before each
        places |= {at for at, least in zip(positions, lowest, strict=False) if chain.level[at] < least}
    return sorted(places)
