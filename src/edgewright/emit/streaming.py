"""A stream in C: one `switch` in which every unit either asks a producer for rows or computes its next ones.

There is no table of phases and no recursion: the unit whose turn it is looks whether the rows it needs are there. If
not, it is the producer's turn; if so, it computes, and the turn goes back to who may have asked. The code is as long
as the stream has layers, whatever the height of the image.
"""

from __future__ import annotations

from collections.abc import Callable

from ..kernels.module import Module
from ..kernels.printing.source import Expr, Source, comment
from ..network import Network
from ..program import Flow, Stream
from .pulling import rows_wanted

# Writes the code of a unit, named by its place in the stream: the rows from the first to one past the last.
WriteRows = Callable[[Flow, int, tuple[Expr, Expr]], None]


def write_stream(c: Source, unit: Module, network: Network, stream: Stream, write: WriteRows) -> None:
    """The whole stretch, from the first round of its last layers to the end."""
    flow = Flow(network, stream)
    with c.block():
        c.line(f"int32_t rows[{len(stream.units)}] = {{0}}; /* of each layer, so far */")
        c.line(f"int32_t rounds = 0, turn = {len(stream.units)};")
        with c.block(f"while (rounds < {flow.rounds})"), c.block("switch (turn)"):
            for index in range(len(stream.units)):
                _unit(c, unit, flow, index, write)
            _driver(c, flow)


def _unit(c: Source, unit: Module, flow: Flow, index: int, write: WriteRows) -> None:
    size, height = flow.rows[index], flow.heights[index]
    name = flow.stream.units[index].last.layer
    done: Expr = f"rows[{index}]" if size == 1 else f"(rows[{index}] / {size})"
    with c.block(f"case {index}: /* {comment(name)} */"):
        for ask in flow.asks[index]:
            wanted = rows_wanted(unit, ask.stops, done, f"{name}: rows asked for")
            _ask(c, ask.producer, wanted)
        c.line(f"const int32_t row = rows[{index}];")
        end = "row + 1" if size == 1 else f"ew_between(0, row + {size}, {height})"
        c.line(f"rows[{index}] = {end};")
        with c.block():
            write(flow, index, ("row", f"rows[{index}]"))
        c.line(f"turn = {_asker(flow, index)};")
        c.line("break;")


def _driver(c: Source, flow: Flow) -> None:
    """The last layers advance in proportion to their heights."""
    with c.block("default:"):
        for sink in flow.sinks:
            height = flow.heights[sink]
            even = height == flow.rounds
            wanted = "rounds + 1" if even else f"((rounds + 1) * {height} + {flow.rounds - 1}) / {flow.rounds}"
            _ask(c, sink, wanted)
        c.line("rounds++;")


def _ask(c: Source, producer: int, wanted: str) -> None:
    with c.block(f"if (rows[{producer}] < {wanted})"):
        c.line(f"turn = {producer};")
        c.line("break;")


def _asker(flow: Flow, index: int) -> int:
    """Whose turn it is after a step: of the only unit that asks for it; if there are several, all are looked at."""
    askers = {at for at, asks in enumerate(flow.asks) for ask in asks if ask.producer == index}
    return askers.pop() if len(askers) == 1 and index not in flow.sinks else len(flow.asks)
