"""Inputs that the caller hands over row by row: each is asked for what the next step reads and has not come yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ..kernels.module import Module
from ..kernels.printing.index import printed
from ..kernels.printing.nest import Bounds
from ..kernels.printing.source import CWriter, Expr, plus
from ..network import Layer
from ..program import rows_needed
from ..program.index import AffineExpr, TableExpr, fit, value
from .storage import ArenaPointers


@dataclass(frozen=True)
class Pulling:
    module: Module
    storage: ArenaPointers
    parameters: Mapping[str, str]  # the C parameter of each input
    inputs: Collection[str]  # those that are pulled

    def write(self, c: CWriter, layer: Layer, name: str, region: Bounds) -> None:
        """Asks the caller for rows of input `name`, if it is pulled, up to the last that this region reads."""
        if name not in self.inputs:
            return
        place, parameter = self.storage.tensor(name), self.parameters[name]
        axis = (place.window or (0, 1))[0]
        last, row = self._last_row_read(layer, name, region[axis][1]), f"next_{parameter}"
        with c.block(f"for (; {row} < {last}; {row}++)"):
            at = place.offset([row if i == axis else 0 for i in range(len(place.strides))])
            c.line(f"{parameter}({parameter}_context, {row}, {place.pointer} + {at});")

    def _last_row_read(self, layer: Layer, name: str, stop: Expr) -> Expr:
        """C of one past the last row of the input that output rows below `stop` read."""
        network = self.storage.network
        stops = [last for _, last in rows_needed(network, layer, name) or ()]
        table = [0, *stops]
        if isinstance(stop, int):
            return table[stop]
        line = fit(stops, "last")
        if isinstance(line, AffineExpr):  # before the first row nothing is read, whatever that row reads
            line = replace(line, within=(0, (line.within or (0, max(stops)))[1]))
        is_exact = all(value(line, {"last": last}) == needed for last, needed in enumerate(stops))
        if is_exact and not isinstance(line, TableExpr):
            return printed(self.module, line, {"last": plus(stop, -1)})
        return printed(self.module, fit(table, "stop"), {"stop": stop})
