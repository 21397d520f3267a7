"""The steps of a stage with those that cost the same taken together: what they cost does not depend on their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from ...network import Interval
from ...program import Plan, RowTrace, Stage, Step
from ...program.lower import BELOW, CHUNK, ROW, For, KernelCall, Node, OnDemand, lower

ENDS = 3  # parts at either end of an axis that may differ from those between them: their windows leave the image

Part = TypeVar("Part")
Counted = tuple[Step, int]  # a step, and how many are like it


def representative_steps(plan: Plan, stage: Stage) -> Iterator[Counted]:
    """The stage's steps, in no particular order; of those between the ends of an axis just one."""
    return ((step, count) for _, step, count in representative_calls(lower(plan, stage)))


def representative_calls(
    nodes: Sequence[Node], at: Mapping[str, int] | None = None, count: int = 1
) -> Iterator[tuple[KernelCall, Step, int]]:
    """The same with the calls that they are of; finishing sums is not among them."""
    here = at or {}
    for node in nodes:
        match node:
            case For(name, times, body) if name == CHUNK:
                for index, often in _grouped(range(times)):
                    yield from representative_calls(body, {**here, name: index}, count * often)
            case For(name, times, body):
                for index in range(times):
                    yield from representative_calls(body, {**here, name: index}, count)
            case OnDemand(trace, bodies, band):
                computed = trace.bands[here[band] if band else 0]
                for chain, (start, stop), body in zip(trace.chains, computed, bodies, strict=True):
                    for (row, below), often in cuts(stop, chain.rows, start):
                        yield from representative_calls(body, {**here, ROW: row, BELOW: below}, count * often)
            case KernelCall():
                if step := node.step(here):
                    yield node, step, count


def cuts(size: int, part: int, start: int = 0) -> list[tuple[Interval, int]]:
    """The parts of an axis that may differ, each with how many are like it.

    >>> cuts(10, 1)
    [((0, 1), 1), ((1, 2), 1), ((2, 3), 1), ((5, 6), 4), ((7, 8), 1), ((8, 9), 1), ((9, 10), 1)]
    """
    ends = [*range(start, size, part), size]
    return list(_grouped([*pairwise(ends)]))


def _grouped(parts: Sequence[Part]) -> list[tuple[Part, int]]:
    between = len(parts) - 2 * ENDS
    if between < 2:
        return [(part, 1) for part in parts]
    first, last = parts[:ENDS], parts[-ENDS:]
    return [*((part, 1) for part in first), (parts[len(parts) // 2], between), *((part, 1) for part in last)]


def columns_of(trace: RowTrace, index: int, width: int) -> list[tuple[Interval | None, int]]:
    """The columns of a chain in parts of this width (0: all), those that are alike taken together."""
    return _grouped(trace.columns(index, width))
