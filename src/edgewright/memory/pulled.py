"""Inputs that need not lie in memory: rows that are pulled from a camera when the first layer asks for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..network import Network
from ..network.operators import Concat, Reshape, Slice
from ..program import ROWS, FusedLayers, FusionSchedule, RowTrace, rows_needed


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


def rows_pulled(
    network: Network, free: Collection[str], pulled: Sequence[tuple[str, int]], schedules: Sequence[FusionSchedule]
) -> tuple[tuple[str, int], ...]:
    """The rows kept of each pulled input: as many as a step of the layer that reads it takes, by these schedules."""
    found = dict(pulled)
    for schedule in (each for each in schedules if pulled and each.streamed):
        trace = RowTrace(FusedLayers(network, schedule, free))
        for index, chain in enumerate(trace.chains):
            read = {name for layer in chain.layers for name in network.by_name[layer].inputs}
            for name in read & found.keys():
                found[name] = max(found[name], *(stop - start for start, stop in trace.reads(index, name)))
    return tuple(found.items())
