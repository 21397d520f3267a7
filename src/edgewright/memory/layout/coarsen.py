"""Merges buffers that are likely to move together. This loses completeness, never validity."""

from dataclasses import dataclass
from enum import Enum

from .grid import Box, Grid


class MergeLevel(Enum):
    """How much to merge. Only NOTHING keeps every placement reachable, so only then can a search prove a limit."""

    NOTHING = "single buffers"
    CHAINS = "chains"  # a buffer replaces one of the same size that dies when it is born
    BLOCKS = "blocks"  # also: buffers with equal lifetimes form a stack


@dataclass(frozen=True)
class Coarse:
    """A grid of merged boxes, with the original boxes in each: (index, offset inside)."""

    grid: Grid
    members: tuple[tuple[tuple[int, int], ...], ...]

    def refine(self, offsets: list[int]) -> list[int]:
        """The offsets of the original boxes, given those of the merged ones."""
        fine = [0] * sum(map(len, self.members))
        for base, inside in zip(offsets, self.members, strict=True):
            for index, above in inside:
                fine[index] = base + above
        return fine


@dataclass(frozen=True, slots=True)
class _BoxStack:
    start: int
    end: int
    size: int
    top: int
    members: tuple[tuple[int, int], ...]


def coarsen(grid: Grid, merge: MergeLevel) -> Coarse:
    """`grid` with boxes merged. Boxes in special pairs and fixed ones stay separate.

    Hard layout instances mostly consist of such blocks cut up: MiniMalloc's 154 to 454 buffers (Moffitt, ASPLOS'23)
    become 20 to 172 boxes, and all 11 instances still fit.
    """
    alone = {i for pair in grid.special for i in pair} | {i for i, b in enumerate(grid.boxes) if b.fixed is not None}
    piles = [_BoxStack(b.start, b.end, b.size, b.top, ((i, 0),)) for i, b in enumerate(grid.boxes) if i not in alone]
    count = len(piles) + 1
    while merge is not MergeLevel.NOTHING and len(piles) < count:
        count = len(piles)
        piles = _chains(piles)
        if merge is MergeLevel.BLOCKS:
            piles = _stacks(piles, grid.unit)
    boxes = [Box(p.start, p.end, p.size, p.top) for p in piles]
    members = [p.members for p in piles]
    place = {i: len(boxes) + n for n, i in enumerate(sorted(alone))}
    boxes += (grid.boxes[i] for i in place)
    members += (((i, 0),) for i in place)
    special = {(place[i], place[j]): gaps for (i, j), gaps in grid.special.items()}
    return Coarse(Grid(grid.unit, tuple(boxes), special), tuple(members))


def _chains(piles: list[_BoxStack]) -> list[_BoxStack]:
    """Joins each stack to one of the same size that ends when it starts."""
    done: list[_BoxStack] = []
    ending: dict[tuple[int, int], list[int]] = {}  # (end, size) -> places in `done`
    for pile in sorted(piles, key=lambda p: (p.start, p.end, p.size)):
        if waiting := ending.get((pile.start, pile.size)):
            n = waiting.pop()
            first = done[n]
            done[n] = _BoxStack(
                first.start, pile.end, first.size, max(first.top, pile.top), first.members + pile.members
            )
        else:
            n = len(done)
            done.append(pile)
        ending.setdefault((pile.end, pile.size), []).append(n)
    return done


def _stacks(piles: list[_BoxStack], unit: int) -> list[_BoxStack]:
    """Stacks buffers with exactly the same lifetime."""
    stacks: dict[tuple[int, int], _BoxStack] = {}
    for pile in piles:
        life = (pile.start, pile.end)
        if (low := stacks.get(life)) is None:
            stacks[life] = pile
        else:
            raised = tuple((i, o + low.size) for i, o in pile.members)
            top = max(low.top, low.size * unit + pile.top)
            stacks[life] = _BoxStack(*life, low.size + pile.size, top, low.members + raised)
    return list(stacks.values())
