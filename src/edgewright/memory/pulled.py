"""Inputs that need not lie in memory: rows that are pulled from a camera when the first layer asks for them."""

from __future__ import annotations

from collections.abc import Mapping

from ..network import Interval, Layer, Network, Region
from ..network.operators import Concat, Reshape, Slice

ROWS = 1  # the axis of an image (NHWC)


def pullable(network: Network) -> Mapping[str, int]:
    """For each input that can be pulled by rows: how many rows must be kept at once.

    It must be one image that one layer reads, and that layer must go through it from top to bottom.
    """
    found = {}
    for name in network.inputs:
        shape = network.tensors[name].shape
        reader = network.sole_reader(name)
        if reader is None or len(shape) != 4 or shape[0] != 1 or isinstance(reader.op, Concat | Reshape | Slice):
            continue
        needs = rows_needed(network, reader, name)
        if needs is not None:
            found[name] = max(stop - start for start, stop in needs)
    return {name: rows for name, rows in found.items() if rows < network.tensors[name].shape[ROWS]}


def rows_needed(network: Network, reader: Layer, name: str) -> tuple[Interval, ...] | None:
    """The rows of input `name` that each output row reads; None where they do not move from top to bottom."""
    out = network.tensors[reader.output].shape
    if len(out) != 4 or reader.inputs.count(name) != 1:
        return None
    which, shapes = reader.inputs.index(name), network.shapes(reader)
    rows: list[Interval] = []
    for y in range(out[ROWS]):
        start, stop = reader.op.needs(Region.whole(out).with_axis(ROWS, (y, y + 1)), shapes)[which].bounds[ROWS]
        if rows and (stop < rows[-1][1] or start < rows[-1][0]):
            return None
        rows.append((min(start, stop), stop))
    return tuple(rows)
