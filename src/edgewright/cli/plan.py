"""`edgewright plan`: order, addresses, peak; whether it fits, and what stands in the way if not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from .. import words
from ..errors import Infeasible
from ..files import write_together
from ..memory import Fit, critical_buffers, fit
from ..memory import plan as make_plan
from ..network import Shape
from ..platform import Board, load_board
from ..program import Plan, plan_text, plan_to_dict
from ..report import plan_page, refusal
from .common import (
    Size,
    chosen_phases,
    console,
    json_option,
    model_argument,
    print_json,
    read_model,
    rows_options,
    shape_option,
    working,
)


@click.command()
@model_argument
@click.option("--board", help="A name from `edgewright boards`, or a board file (.toml).")
@click.option("--ram", type=Size(), help="RAM that there is, such as 64K. Overrules the board's.")
@click.option("--plain", is_flag=True, help="Best order and layout only: no buffers shared or overlapping.")
@click.option("--alignment", type=click.IntRange(1, 4096), help="Of every offset.  [default: the board's, or 4]")
@rows_options
@click.option("--page", type=click.Path(path_type=Path), help="Write a self-contained page that shows the plan.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("plan.json"),
    show_default=True,
    help="Where the plan goes.",
)
@shape_option
@json_option
def plan(
    model: Path,
    board: str | None,
    ram: int | None,
    plain: bool,
    alignment: int | None,
    pull_rows: bool,
    phases: bool,
    phase_layers: tuple[str, ...],
    page: Path | None,
    output: Path,
    shapes: dict[str, Shape],
    as_json: bool,
) -> None:
    """The plan for MODEL that needs the least RAM: order of layers, address of every buffer, proof or gap.

    Ends with status 1 when the plan does not fit the board or --ram.
    """
    target = load_board(board) if board else None
    network = read_model(model, shapes)
    by_rows = chosen_phases(network, phases, phase_layers)
    with working(f"planning {network.name}"):
        found = make_plan(network, target, plain=plain, alignment=alignment, pull_rows=pull_rows, phases=by_rows)
    verdict = fit(found, target, ram)
    critical = critical_buffers(found)
    files: dict[Path, str | bytes] = {output: plan_text(found)}
    if page:
        files[page] = plan_page(found, critical=critical, ram=verdict.ram, flash=verdict.flash)
    write_together(files)
    if as_json:
        print_json({**plan_to_dict(found), "fits": verdict.fits, "critical": list(critical)})
    else:
        _print(found, target, list(files))
    if not verdict.fits:
        raise Infeasible(refusal(found, verdict, critical))
    if not as_json:
        console.print(_fitting(verdict), style="green")


def _print(plan: Plan, board: Board | None, written: Sequence[Path]) -> None:
    console.print(_stages(plan))
    console.print(_summary(plan, board))
    if len(plan.savings) > 1:
        console.print(_savings(plan))
    for note in plan.network.notes:
        console.print(f"note: {escape(note)}", style="dim")
    console.print(f"wrote {' and '.join(map(str, written))}", style="dim", soft_wrap=True)


def _stages(plan: Plan, most: int = 40) -> Table:
    """The stages around the fullest one, when there are many."""
    network = plan.network
    live = plan.live_bytes
    table = Table(title=f"{escape(network.name)}: order and addresses", title_justify="left")
    for heading in ("#", "layer", "operator", "output"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "#" else "left")
    for heading in ("at", "bytes", "in use"):
        table.add_column(heading, justify="right", no_wrap=True)
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    peak = max(live, default=0)
    centre = live.index(peak) if live else 0
    first = max(0, min(centre - most // 2, len(live) - most))
    if first:
        table.add_row("", f"… {first} before")
    for index, stage in list(enumerate(plan.program.stages))[first : first + most]:
        layers = [network.by_name[name] for name in stage.layers]
        kinds = [words.operator(layer.op, network.shapes(layer)) for layer in layers]
        tensor, view = network.tensors[layers[-1].output], plan.views[layers[-1].output]
        table.add_row(
            str(index),
            escape(stage.name),
            escape(kinds[0] if len(kinds) == 1 else f"{len(kinds)} layers, row by row"),
            "x".join(map(str, tensor.shape)),
            words.count(buffers[view.buffer].offset + view.offset),
            words.count(tensor.bytes),
            words.count(live[index]),
            style="bold" if live[index] == peak else None,
        )
    if first + most < len(live):
        table.add_row("", f"… {len(live) - first - most} after; the plan file and --page have all")
    return table


def _summary(plan: Plan, board: Board | None) -> Table:
    grid = Table.grid(padding=(0, 2))
    gap = plan.peak_bytes - plan.bound_bytes
    proof = (
        "proven least"
        if plan.optimal
        else f"bound {words.count(plan.bound_bytes)} B, gap {gap / plan.peak_bytes:.1%}"
    )
    grid.add_row(
        "peak RAM", f"{words.count(plan.peak_bytes)} B", f"{words.rounded_size(plan.peak_bytes)}, {proof}"
    )
    if len(plan.arenas) > 1:
        for name, size in plan.arenas.items():
            grid.add_row("", f"{words.count(size)} B", f"in {name}")
    grid.add_row(
        "flash", f"{words.count(plan.flash_bytes)} B", f"{words.rounded_size(plan.flash_bytes)} of weights"
    )
    grid.add_row(
        "work",
        f"{words.rounded_count(plan.macs)} MACs",
        f"{words.plural(len(plan.order), 'stage')}, {words.plural(len(plan.free), 'layer')} for free",
    )
    if board:
        grid.add_row("board", board.name, escape(board.title or ""))
    return grid


def _savings(plan: Plan) -> Table:
    table = Table(title="what each technique saved", title_justify="left")
    table.add_column("technique")
    table.add_column("peak RAM", justify="right")
    table.add_column("of the first", justify="right")
    base = before = plan.savings[0].peak_bytes or 1
    for saving in plan.savings:
        idle = saving.peak_bytes == before and saving is not plan.savings[0]
        share = f"{saving.peak_bytes / base:.0%}"
        table.add_row(saving.technique, words.count(saving.peak_bytes), share, style="dim" if idle else None)
        before = saving.peak_bytes
    return table


def _fitting(verdict: Fit) -> str:
    if verdict.ram is None:
        return "no --board or --ram given: nothing to compare with"
    return f"fits: {words.count(verdict.ram - verdict.ram_needed)} B of {words.count(verdict.ram)} B RAM stay free"
