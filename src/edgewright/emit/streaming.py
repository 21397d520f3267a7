"""Rows on demand in C: one `switch` in which every chain of layers either asks a producer for rows or computes its own.

There is no table of phases and no recursion: the chain whose turn it is looks whether the rows it needs are there. If
not, it is the producer's turn; if so, it computes, and the turn goes back to who may have asked. The code is as long
as the stream has layers, whatever the height of the image.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..kernels.module import Module
from ..kernels.printing.nest import Bounds, printed
from ..kernels.printing.source import CWriter, Expr, comment, plus
from ..network import Layer
from ..program import Plan, RowTrace, rows_needed
from ..program.index import AffineExpr, TableExpr, fit, value
from ..program.lower import BELOW, ROW
from .header import PAUSED
from .storage import ArenaPointers

STOPPED = 2  # what a run function returns where there is no room for a row


@dataclass(frozen=True)
class RowOutlet:
    """An output that leaves row by row: the run stops where there is no room for a row, and goes on when called again.

    `room` and `made` are C, with {stop} for one past the last of the rows: whether they may be written, and what is
    called when they have been.
    """

    tensor: str
    room: str
    made: str
    pulled: tuple[str, ...] = ()  # C variables that count the rows of inputs

    @property
    def _kept(self) -> tuple[str, ...]:
        return ("rounds", "turn", *self.pulled)

    def write_counts(self, c: CWriter) -> None:
        for variable in self.pulled:
            at = 1 + self._kept.index(variable)
            c.line(f"int32_t {variable} = {PAUSED}[0] ? {PAUSED}[{at}] : 0;")

    def write_stop(self, c: CWriter, stop: Expr) -> None:
        with c.block(f"if (!{self.room.format(stop=stop)})"):
            c.line(f"{PAUSED}[0] = 1;")
            for at, variable in enumerate(self._kept, 1):
                c.line(f"{PAUSED}[{at}] = {variable};")
            c.line(f"memcpy({PAUSED} + {1 + len(self._kept)}, rows, sizeof rows);")
            c.line(f"return {STOPPED};")

    def write_return(self, c: CWriter) -> None:
        with c.block(f"if ({PAUSED}[0])"):
            c.line(f"memcpy(rows, {PAUSED} + {1 + len(self._kept)}, sizeof rows);")
            c.line(f"rounds = {PAUSED}[1];")
            c.line(f"turn = {PAUSED}[2];")
            c.line(f"{PAUSED}[0] = 0;")


def paused_words(plan: Plan) -> int:
    """Words that a run needs to remember where its last stage stopped."""
    trace = RowTrace(plan.program.fused(plan.program.stages[-1]))
    return 3 + len(plan.pulled) + len(trace.chains)


@contextmanager
def write_on_demand(
    c: CWriter, module: Module, trace: RowTrace, band: str | None = None, outlet: RowOutlet | None = None
) -> Iterator[Iterator[int]]:
    """The stream, or that of the current band. What is written for each chain given computes rows ROW to BELOW."""
    count = len(trace.chains)
    lows: list[Expr] = [0]
    start, stop = (printed(module, fit(ends, band or "")) for ends in zip(*trace.rounds_of, strict=True))
    if band is not None:
        lows = [printed(module, fit([low for low, _ in rows], band)) for rows in zip(*trace.bands, strict=True)]
    with c.block():
        c.line(f"int32_t rows[{count}] = {{{', '.join(map(str, lows))}}}; /* of each layer, so far */")
        c.line(f"int32_t rounds = {start}, turn = {count};")
        if outlet is not None:
            outlet.write_return(c)
        with c.block(f"while (rounds < {stop})"), c.block("switch (turn)"):
            yield _turns(c, module, trace, outlet)
            _driver(c, trace)


def _turns(c: CWriter, module: Module, trace: RowTrace, outlet: RowOutlet | None) -> Iterator[int]:
    for index, chain in enumerate(trace.chains):
        is_leaving = outlet is not None and trace.network.by_name[chain.last].output == outlet.tensor
        with _turn(c, module, trace, index, outlet if is_leaving else None):
            yield index


@contextmanager
def _turn(c: CWriter, module: Module, trace: RowTrace, index: int, outlet: RowOutlet | None) -> Iterator[None]:
    size, height = trace.chains[index].rows, trace.heights[index]
    name = trace.chains[index].last
    done: Expr = f"rows[{index}]" if size == 1 else f"(rows[{index}] / {size})"
    with c.block(f"case {index}: /* {comment(name)} */"):
        for demand in trace.demands[index]:
            _ask(c, demand.producer, printed(module, fit(demand.stops, "done"), {"done": done}))
        c.line(f"const int32_t {ROW} = rows[{index}];")
        if size > 1:
            c.line(f"const int32_t {BELOW} = ew_between(0, {ROW} + {size}, {height});")
        stop = BELOW if size > 1 else f"{ROW} + 1"
        if outlet is not None:
            outlet.write_stop(c, stop)
        with c.block():
            yield
        if outlet is not None:
            c.line(f"{outlet.made.format(stop=stop)};")
        c.line(f"rows[{index}] = {stop};")
        c.line(f"turn = {_asker(trace, index)};")
        c.line("break;")


def _driver(c: CWriter, trace: RowTrace) -> None:
    """The last layers advance in proportion to their heights."""
    with c.block("default:"):
        for sink in trace.sinks:
            height = trace.heights[sink]
            even = height == trace.rounds
            wanted = "rounds + 1" if even else f"((rounds + 1) * {height} + {trace.rounds - 1}) / {trace.rounds}"
            _ask(c, sink, wanted)
        c.line("rounds++;")


def _ask(c: CWriter, producer: int, wanted: Expr) -> None:
    with c.block(f"if (rows[{producer}] < {wanted})"):
        c.line(f"turn = {producer};")
        c.line("break;")


def _asker(trace: RowTrace, index: int) -> int:
    """Whose turn it is after a step: of the only chain that asks for it; if there are several, all are looked at."""
    askers = {at for at, demands in enumerate(trace.demands) for demand in demands if demand.producer == index}
    return askers.pop() if len(askers) == 1 and index not in trace.sinks else len(trace.demands)


@dataclass(frozen=True)
class RowPuller:
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
