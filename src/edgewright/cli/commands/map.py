"""The options of `edgewright map`."""

from __future__ import annotations

from typing import Any

import click

from ..options import BYTE_SIZE, DURATION, IN_FILE, executor_option, json_option, model_argument, shape_option
from ..outputs import OutFile, OutFolder, Verb


def _cores(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in values:
        name, _, count = text.rpartition("=")
        if not count.isdecimal() or len(count) > 6:
            raise click.BadParameter(f"'{text}' is no number of cores; expected 4, or NAME=4")
        found[name] = int(count)
    return found


@click.command("map", cls=Verb)
@model_argument
@click.option(
    "--board", default="this", show_default=True, help="`this` machine, a name from `boards`, or a board file."
)
@click.option("--times", type=IN_FILE, help="A profile of the model on that board, from `edgewright profile`.")
@click.option(
    "--cores",
    multiple=True,
    callback=_cores,
    metavar="[NAME=]N",
    help="Use so many cores, of the processor of that name.  [default: all]",
)
@executor_option
@click.option("--stages", type=click.IntRange(min=1), help="At most so many pipeline stages.")
@click.option("--replicas", type=click.IntRange(min=1), help="At most so many replicas of a stage.")
@click.option("--lanes", type=click.IntRange(min=1), help="At most so many cores that share a layer.")
@click.option("--max-latency", type=DURATION, help="Of a frame, such as 40ms, when frames come without pause.")
@click.option("--ram", type=BYTE_SIZE, help="For all arenas and FIFOs; weights do not count.")
@click.option("--min-throughput", type=click.FloatRange(min=0, min_open=True), help="Frames a second.")
@click.option(
    "--minimise",
    type=click.Choice(["period", "latency", "memory", "energy"]),
    default="period",
    show_default=True,
    help="What is best; the shortest period is the greatest throughput.",
)
@click.option("--pareto", is_flag=True, help="Throughput against latency and memory.")
@click.option(
    "--method",
    type=click.Choice(["exact", "ga"]),
    default="exact",
    show_default=True,
    help="The exact solver, or the paper's genetic search (one core for each layer).",
)
@click.option(
    "--fitness",
    type=click.Choice(["balance", "slowest"]),
    default="balance",
    show_default=True,
    help="Of the genetic search: differences of loads as in the paper, or the slowest processor.",
)
@click.option("--page", type=OutFile(), help="Write a self-contained page: Gantt chart, utilisation, bottleneck.")
@click.option("-o", "--output", type=OutFolder(), help="Build the mapping into this folder: a library for each part.")
@click.option("--run", "is_run", is_flag=True, help="Run it on this machine, beside onnxruntime.")
@click.option("--frames", type=click.IntRange(2), default=200, show_default=True, help="For --run.")
@shape_option
@json_option
def map_(**given: Any) -> None:
    """Who runs which layers of MODEL on a board, for the most frames a second: stages, replicas, lanes.

    Shows throughput, latency and memory as predicted, and a bound that no mapping exceeds. Ends with status 1 when
    limits cannot be met.
    """
    from ..map import MapOptions, map_

    map_(MapOptions(**given))
