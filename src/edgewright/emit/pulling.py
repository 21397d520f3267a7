"""How far a pulled input must have come before a step can run."""

from __future__ import annotations

import numpy as np

from ..memory.pulled import rows_needed
from ..network import Layer, Network
from .site import Unit
from .source import Expr, plus, times


def last_row_read(unit: Unit, network: Network, layer: Layer, name: str, stop: Expr) -> str:
    """C expression: one past the last row of input `name` that output rows below `stop` read.

    A straight line cut at the image's ends where the operator allows it, else a table.
    """
    stops = [stop for _, stop in rows_needed(network, layer, name) or ()]
    height = network.tensors[name].shape[1]
    for slope in range(height + 1):
        base = stops[0] - slope  # as a function of one past the output row
        if stops == [min(max(slope * (y + 1) + base, 0), height) for y in range(len(stops))]:
            return f"ew_between(0, {plus(times(stop, slope), base)}, {height})"
    table = unit.constants.add(np.array([0, *stops], np.int32), f"{layer.name}: rows of {name} needed")
    return f"{table}[{stop}]"
