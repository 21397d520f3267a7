"""Lowered stages unrolled: the steps that a tree of loops and calls stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from edgewright.program import Step
from edgewright.program.lower import BELOW, ROW, For, KernelCall, Node, OnDemand


def unrolled(nodes: Sequence[Node], at: Mapping[str, int] | None = None) -> Iterator[Step]:
    """The steps that the tree stands for, in execution order."""
    here = dict(at or {})
    for node in nodes:
        match node:
            case For(name, count, body):
                for i in range(count):
                    yield from unrolled(body, {**here, name: i})
            case OnDemand(trace, bodies, band):
                for index, done in trace.order(here[band] if band else 0):
                    row, below = trace.rows_of_step(index, done)
                    yield from unrolled(bodies[index], {**here, ROW: row, BELOW: below})
            case KernelCall():
                if step := node.step(here):
                    yield step
