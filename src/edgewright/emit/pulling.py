"""How far inputs must have come before a step can run: rows pulled from outside, rows asked of other layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..kernels.module import Module
from ..kernels.printing.source import Expr, plus, times
from ..network import Layer, Network
from ..program import rows_needed


def last_row_read(unit: Module, network: Network, layer: Layer, name: str, stop: Expr) -> str:
    """C expression: one past the last row of input `name` that output rows below `stop` read."""
    stops = [stop for _, stop in rows_needed(network, layer, name) or ()]
    height = network.tensors[name].shape[1]
    if line := _line(stops, height):
        return _on_line(line, plus(stop, -1), height)
    return _in_table(unit, [0, *stops], stop, f"{layer.name}: rows of {name} needed")


def rows_wanted(unit: Module, stops: Sequence[int], step: Expr, note: str) -> str:
    """C expression of `stops[step]`."""
    height = max(stops)
    if line := _line(stops, height):
        return _on_line(line, step, height)
    return _in_table(unit, stops, step, note)


def _line(stops: Sequence[int], height: int) -> tuple[int, int] | None:
    """Slope and height at 0 of the straight line that, cut at 0 and `height`, goes through all values."""
    for slope in range(height + 1):
        for base in {stops[0], stops[-1] - slope * (len(stops) - 1)}:
            if all(min(max(slope * i + base, 0), height) == stop for i, stop in enumerate(stops)):
                return slope, base
    return None


def _on_line(line: tuple[int, int], index: Expr, height: int) -> str:
    slope, base = line
    return f"ew_between(0, {plus(times(index, slope), base)}, {height})"


def _in_table(unit: Module, values: Sequence[int], index: Expr, note: str) -> str:
    return f"{unit.constants.add(np.array(values, np.int32), note)}[{index}]"
