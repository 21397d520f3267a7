"""The steps of a stage with those that cost the same taken together: what they cost does not depend on their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product

from ..network import Interval
from ..program import FusedLayers, Program, RowTrace, Stage, Step, Tiling, restricted

ENDS = 3  # parts at either end of an axis that may differ from those between them: their windows leave the image

Counted = tuple[Step, int]  # a step, and how many are like it


def alike_steps(program: Program, stage: Stage) -> Iterator[Counted]:
    """The stage's steps, in no particular order; of those between the ends of an axis just one."""
    fused = program.fused(stage)
    tilings = [Tiling(fused, split) for split in stage.schedule.splits]
    counted = list(_inside(program, fused))
    for tile in product(*(range(len(tiling.split.ends)) for tiling in tilings)):
        for step, count in counted:
            for tiling, at in zip(tilings, tile, strict=True):
                step = restricted(program.network, step, tiling.split.axis, tiling.intervals[step.layer][at])
            if not step.region.is_empty and not (step.share is not None and step.share.is_empty):
                yield replace(step, sweep=stage.sweep), count


def cuts(size: int, part: int) -> list[tuple[Interval, int]]:
    """The parts of an axis that may differ, each with how many are like it.

    >>> cuts(10, 1)
    [((0, 1), 1), ((1, 2), 1), ((2, 3), 1), ((3, 4), 4), ((7, 8), 1), ((8, 9), 1), ((9, 10), 1)]
    """
    ends = [*range(0, size, part), size]
    return [(interval, count) for interval, count in _grouped([*pairwise(ends)]) if interval is not None]


def _grouped(parts: Sequence[Interval | None]) -> list[tuple[Interval | None, int]]:
    between = len(parts) - 2 * ENDS
    if between < 2:
        return [(part, 1) for part in parts]
    first, last = parts[:ENDS], parts[-ENDS:]
    return [*((part, 1) for part in first), (parts[ENDS], between), *((part, 1) for part in last)]


def columns_of(trace: RowTrace, index: int, width: int) -> list[tuple[Interval | None, int]]:
    """The columns of a chain in parts of this width (0: all), those that are alike taken together."""
    return _grouped(trace.columns(index, width))


def _inside(program: Program, fused: FusedLayers) -> Iterator[Counted]:
    """What runs inside of all tiles."""
    if not fused.schedule.streamed:
        yield from ((step, 1) for step in program.whole_steps(fused))
        return
    trace = RowTrace(fused)
    for index, chain in enumerate(trace.chains):
        for rows, often in cuts(trace.heights[index], chain.rows):
            for columns, times in columns_of(trace, index, chain.columns):
                for name in chain.layers:
                    yield trace.step(name, rows, columns), often * times
