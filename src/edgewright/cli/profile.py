"""`edgewright profile`: layer times of a model on this machine, or as a board permits them."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from .. import text
from ..emit.native import compiler
from ..errors import EdgewrightError, InputError
from ..network import Network, Shape
from ..platform import load_board
from ..platform.profile import NATIVE, LayerTime, Profile, save_profile
from ..program import Plan
from ..run.build import plan_for_host
from ..run.estimated_times import estimate_profile
from ..run.machine import core_kinds
from ..run.profiling import REPEATS, THIS, measure_profile
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
            found = measured_here(network, executors, most_lanes, repeats)
    elif executors:
        raise InputError(f"executors are measured on this machine, not on '{board}': leave --executor or --board out")
    else:
        found = estimate_profile(network, load_board(board))
    if output:
        save_profile(found, output)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    console.print(_summary(found))
    console.print(_layers(found))
    print_notes(found.notes)
    print_written([output])


def measured_here(
    network: Network, executors: tuple[str, ...], most_lanes: int | None, repeats: int = REPEATS
) -> Profile:
    """The times of these executors; of our own code where none is named, or of onnxruntime where it cannot be built."""
    notes: tuple[str, ...] = ()
    if not executors:
        executors = (NATIVE,)
        try:
            compiler()
        except EdgewrightError as error:
            executors, notes = ("onnxruntime",), (f"onnxruntime executes all layers: {error}",)
    plans = lane_plans(network, most_lanes) if NATIVE in executors else {}
    found = measure_profile(network, plans, repeats, executors=executors, lanes=lane_counts(most_lanes))
    return found.model_copy(update={"notes": (*found.notes, *notes)})


def lane_counts(most_lanes: int | None) -> list[int]:
    """The numbers of lanes that are measured: each up to four, then every doubling, and all cores of a kind."""
    cores = {len(kind.cores) for kind in core_kinds()}
    most = min(max(cores), most_lanes or max(cores))
    counts = {*range(1, 5), *(1 << n for n in range(3, 12)), *cores, most}
    return sorted(n for n in counts if n <= most)


def lane_plans(network: Network, most_lanes: int | None) -> dict[int, Plan]:
    """The plan for each number of lanes that is measured."""
    plans = {n: plan_for_host(network, n) for n in lane_counts(most_lanes)}
    return {n: plan for n, plan in plans.items() if plan.lanes == n}


def _summary(found: Profile) -> Table:
    grid = facts()
    machine = found.machine
    grid.add_row("board", shown(found.board), shown(machine.model if machine else ""))
    for processor in found.processors:
        count = text.plural(len(processor.cores), "core")
        busy = f"; {processor.slowdown[-1]:.2f} x the time when all work" if len(processor.slowdown) > 1 else ""
        grid.add_row(shown(processor.name), shown(processor.kind), f"{count}{busy}")
    for frame in found.frames:
        lanes = text.plural(frame.lanes, "lane")
        times = f"{text.duration(frame.seconds)} ± {text.duration(frame.spread)}"
        grid.add_row("whole frame", times, f"{shown(frame.processor)}, {lanes}, {shown(frame.executor)}")
    for transfer in found.transfers:
        way = f"{shown(transfer.source)} to {shown(transfer.target)}"
        rate = f"{transfer.bytes_per_second / 1e9:.3g} GB/s"
        grid.add_row(
            "moving a tensor", f"{text.duration(transfer.latency)} + {rate}", f"{way}, {transfer.origin.value}"
        )
    return grid


def _layers(found: Profile) -> Table:
    """A row for each layer, a column for each processor and number of lanes."""
    keys = dict.fromkeys((t.processor, t.lanes, t.executor) for layer in found.layers for t in layer.times)
    made = table(f"layers of {shown(found.model)}", "layer", "operator", ">MACs")
    for processor, lanes, executor in keys:
        by = "" if executor == "native" else f"\n{shown(executor)}"
        made.add_column(f"{shown(processor)}\n{text.plural(lanes, 'lane')}{by}", justify="right")
    for layer in found.layers:
        times = {(t.processor, t.lanes, t.executor): t for t in layer.times}
        cells = [_cell(times.get(key)) for key in keys]
        made.add_row(shown(layer.name), layer.operator, text.rounded_count(layer.macs), *cells)
    sums = [
        sum(t.seconds for layer in found.layers for t in layer.times if (t.processor, t.lanes, t.executor) == key)
        for key in keys
    ]
    made.add_section()
    made.add_row("all", "", text.rounded_count(sum(layer.macs for layer in found.layers)), *map(text.duration, sums))
    return made


def _cell(time: LayerTime | None) -> str:
    if time is None:
        return "–"
    spread = f" ± {text.duration(time.spread)}" if time.spread else ""
    return f"{text.duration(time.seconds)}{spread}" if time.seconds else "0"
