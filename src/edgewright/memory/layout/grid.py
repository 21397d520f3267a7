"""A layout problem in whole units, the form all solvers here work on. Placements are converted back to bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from math import gcd

from ...errors import Infeasible
from .problem import LayoutProblem, align_up


@dataclass(frozen=True, slots=True)
class Box:
    """A buffer, or a stack of buffers that move together. Time counts births and deaths."""

    start: int
    end: int
    size: int  # units, rounded up
    top: int  # bytes from its address to its last byte in use
    fixed: int | None = None  # units


@dataclass(frozen=True)
class Grid:
    """Boxes by index. Offsets count units: the largest step that divides every sum of gaps."""

    unit: int  # bytes
    boxes: tuple[Box, ...]
    special: dict[tuple[int, int], tuple[int, int]]  # (i, j): (g_ij, g_ji) in units, for i < j

    @cached_property
    def rivals(self) -> tuple[tuple[tuple[int, int, int], ...], ...]:
        """For each box i its (j, drop, lift): i may not lie strictly between offset[j] - drop and offset[j] + lift."""
        rivals: list[list[tuple[int, int, int]]] = [[] for _ in self.boxes]
        alive: list[int] = []
        boxes = self.boxes
        for i in sorted(range(len(boxes)), key=lambda i: boxes[i].start):
            start = boxes[i].start
            alive = [j for j in alive if boxes[j].end > start]
            for j in alive:
                pair = self.special.get((j, i) if j < i else (i, j)) if self.special else None
                g_ij, g_ji = (boxes[i].size, boxes[j].size) if pair is None else pair if i < j else pair[::-1]
                if g_ij + g_ji > 0:
                    rivals[i].append((j, g_ij, g_ji))
                    rivals[j].append((i, g_ji, g_ij))
            alive.append(i)
        return tuple(map(tuple, rivals))

    @cached_property
    def crowding(self) -> tuple[int, ...]:
        """For each box the most units that are live at once during its lifetime."""
        change = [0] * (1 + max((b.end for b in self.boxes), default=0))
        for box in self.boxes:
            change[box.start] += box.size
            change[box.end] -= box.size
        live = list(accumulate(change))
        return tuple(max(live[b.start : b.end]) for b in self.boxes)

    def fixed_clash(self) -> tuple[int, int] | None:
        """Two boxes whose fixed addresses exclude each other, if any."""
        for i, box in enumerate(self.boxes):
            for j, drop, lift in self.rivals[i] if box.fixed is not None else ():
                other = self.boxes[j].fixed
                if i < j and box.fixed is not None and other is not None and -drop < box.fixed - other < lift:
                    return i, j
        return None

    def peak(self, offsets: Sequence[int]) -> int:
        """Bytes from address zero to the last one in use."""
        return max((o * self.unit + b.top for o, b in zip(offsets, self.boxes, strict=True)), default=0)

    def ceiling(self, index: int, limit: int) -> int:
        """The highest offset (units) at which box `index` stays within `limit` bytes; negative if none."""
        return (limit - self.boxes[index].top) // self.unit


def to_grid(problem: LayoutProblem) -> Grid:
    """`problem` in units. Gaps round up to the alignment, since aligned addresses differ by a multiple of it."""
    a = problem.alignment
    index = {item.name: n for n, item in enumerate(problem.items)}
    special = {}
    for (x, y), (g_xy, g_yx) in problem.gaps.items():
        i, j = index[x], index[y]
        both = align_up(g_xy, a), align_up(g_yx, a)
        special[min(i, j), max(i, j)] = both if i < j else both[::-1]
    sizes = [align_up(item.size, a) for item in problem.items]
    unit = gcd(*sizes, *(item.fixed or 0 for item in problem.items), *chain.from_iterable(special.values())) or a
    time = {t: n for n, t in enumerate(sorted({t for i in problem.items for t in (i.start, i.end)}))}
    boxes = tuple(
        Box(time[i.start], time[i.end], s // unit, i.size, None if i.fixed is None else i.fixed // unit)
        for i, s in zip(problem.items, sizes, strict=True)
    )
    return Grid(unit, boxes, {pair: (g // unit, h // unit) for pair, (g, h) in special.items()})


def addresses(problem: LayoutProblem, grid: Grid, offsets: Sequence[int]) -> dict[str, int]:
    """`offsets` of `grid` as addresses of the buffers of `problem`, in bytes."""
    return {item.name: offset * grid.unit for item, offset in zip(problem.items, offsets, strict=True)}


def check_fixed(problem: LayoutProblem, grid: Grid) -> None:
    """Raises `Infeasible` if two buffers are fixed at addresses that exclude each other."""
    if (clash := grid.fixed_clash()) is not None:
        x, y = (problem.items[i].name for i in clash)
        raise Infeasible(f"the fixed addresses of {x!r} and {y!r} overlap while both are alive; move one of them")
