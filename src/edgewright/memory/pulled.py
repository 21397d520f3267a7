"""Inputs that need not lie in memory: rows that are pulled from a camera when the first layer asks for them."""

from __future__ import annotations

from collections.abc import Mapping

from ..network import Network
from ..network.operators import Concat, Reshape, Slice
from ..program import ROWS, rows_needed


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
    return {name: rows for name, rows in found.items() if 0 < rows < network.tensors[name].shape[ROWS]}
