"""The steps of a stage with those that cost the same taken together: what they cost does not depend on their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ..network import Interval
from ..program import Flow, Item, Loop, Program, Stage, Step, Stream, Tiles, Tiling, restricted
from ..program.program import Parts, tile_parts

ENDS = 3  # parts at either end of an axis that may differ from those between them: their windows leave the image

Counted = tuple[Step, int]  # a step, and how many are like it


def alike_steps(program: Program, stage: Stage) -> Iterator[Counted]:
    """The stage's steps, in no particular order; of those between the ends of an axis just one."""
    return _items(program, stage, stage.body, {})


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


def columns_of(flow: Flow, index: int, width: int) -> list[tuple[Interval | None, int]]:
    """The columns of a unit of a stream in parts of this width (0: all), those that are alike taken together."""
    return _grouped(flow.split(index, width))


def _items(program: Program, stage: Stage, body: Iterable[Item], parts: Mapping[str, Parts]) -> Iterator[Counted]:
    for item in body:
        match item:
            case Stream():
                yield from _stream(program, Flow(program.network, item), parts)
            case Tiles():
                for inner in tile_parts(Tiling(program.network, item), parts):
                    yield from _items(program, stage, item.body, inner)
            case Loop():
                yield from ((step, 1) for step in program.steps(Stage(stage.name, (item,))))
            case Step():
                yield from _cut(program, item, parts, 1)


def _stream(program: Program, flow: Flow, parts: Mapping[str, Parts]) -> Iterator[Counted]:
    for index, unit in enumerate(flow.stream.units):
        for rows, often in cuts(flow.heights[index], flow.rows[index]):
            for columns, times in _grouped(flow.columns(index)):
                for step in unit.steps:
                    yield from _cut(program, flow.part(step, rows, columns), parts, often * times)


def _cut(program: Program, step: Step, parts: Mapping[str, Parts], count: int) -> Iterator[Counted]:
    """The step cut to the tile at hand, unless nothing is left of it."""
    for axis, part in parts.get(step.layer, ()):
        step = restricted(program.network, step, axis, part)
    if not step.region.is_empty and not (step.share is not None and step.share.is_empty):
        yield step, count
