"""`edgewright profile`: layer times of a model, measured here or estimated for a board."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from .. import text
from ..errors import InputError
from ..network import Shape
from ..platform import load_board
from ..platform.profile import LayerTime, Profile, save_profile
from ..run.estimated_times import estimate_profile
from ..run.profiling import THIS
from ..run.profiling_here import measured_here
from .common import console, facts, print_json, print_notes, print_written, read_model, shown, table, working


def profile(
    model: Path,
    board: str,
    output: Path | None,
    most_lanes: int | None,
    executors: tuple[str, ...],
    repeats: int,
    shapes: dict[str, Shape],
    as_json: bool,
) -> None:
    network = read_model(model, shapes)
    if board == THIS:
        with working(f"measuring the layers of {network.name}"):
            times = measured_here(network, executors, most_lanes, repeats)
    elif executors:
        raise InputError(f"executors are measured on this machine, not on '{board}': leave --executor or --board out")
    else:
        times = estimate_profile(network, load_board(board))
    if output:
        save_profile(times, output)
    if as_json:
        print_json(times.model_dump(mode="json"))
        return
    console.print(_summary(times))
    console.print(_layers(times))
    print_notes(times.notes)
    print_written([output])


def _summary(profile: Profile) -> Table:
    grid = facts()
    machine = profile.machine
    grid.add_row("board", shown(profile.board), shown(machine.model if machine else ""))
    for processor in profile.processors:
        count = text.plural(len(processor.cores), "core")
        busy = f"; {processor.slowdown[-1]:.2f} x the time when all work" if len(processor.slowdown) > 1 else ""
        grid.add_row(shown(processor.name), shown(processor.kind), f"{count}{busy}")
    for frame in profile.frames:
        lanes = text.plural(frame.lanes, "lane")
        times = f"{text.duration(frame.seconds)} ± {text.duration(frame.spread)}"
        grid.add_row("whole frame", times, f"{shown(frame.processor)}, {lanes}, {shown(frame.executor)}")
    for transfer in profile.transfers:
        way = f"{shown(transfer.source)} to {shown(transfer.target)}"
        rate = f"{transfer.bytes_per_second / 1e9:.3g} GB/s"
        grid.add_row(
            "moving a tensor", f"{text.duration(transfer.latency)} + {rate}", f"{way}, {transfer.origin.value}"
        )
    return grid


def _layers(profile: Profile) -> Table:
    """A row for each layer, a column for each processor and number of lanes."""
    keys = dict.fromkeys((t.processor, t.lanes, t.executor) for layer in profile.layers for t in layer.times)
    made = table(f"layers of {shown(profile.model)}", "layer", "operator", ">MACs")
    for processor, lanes, executor in keys:
        by = "" if executor == "native" else f"\n{shown(executor)}"
        made.add_column(f"{shown(processor)}\n{text.plural(lanes, 'lane')}{by}", justify="right")
    for layer in profile.layers:
        times = {(t.processor, t.lanes, t.executor): t for t in layer.times}
        cells = [_cell(times.get(key)) for key in keys]
        made.add_row(shown(layer.name), layer.operator, text.rounded_count(layer.macs), *cells)
    sums = [
        sum(t.seconds for layer in profile.layers for t in layer.times if (t.processor, t.lanes, t.executor) == key)
        for key in keys
    ]
    made.add_section()
    made.add_row("all", "", text.rounded_count(sum(layer.macs for layer in profile.layers)), *map(text.duration, sums))
    return made


def _cell(time: LayerTime | None) -> str:
    if time is None:
        return "–"
    spread = f" ± {text.duration(time.spread)}" if time.spread else ""
    return f"{text.duration(time.seconds)}{spread}" if time.seconds else "0"
