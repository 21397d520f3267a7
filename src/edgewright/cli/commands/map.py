"""The options of `edgewright map`."""

from __future__ import annotations

from typing import Any

import click

from ..options import BYTE_SIZE, DURATION, IN_FILE, executor_option, json_option, model_argument, shape_option
from ..outputs import OutFile, OutFolder, Verb


def _cores(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for text in values:
        name, _, count = text.rpartition("=")
        if not count.isdecimal() or len(count) > 6:
            raise click.BadParameter(f"'{text}' is not a number of cores; expected 4, or NAME=4")
        counts[name] = int(count)
    return counts


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
    help="Use N cores, of the processor NAME.  [default: all]",
)
@executor_option
@click.option("--stages", type=click.IntRange(min=1), help="Maximum number of pipeline stages.")
@click.option("--replicas", type=click.IntRange(min=1), help="Maximum number of replicas of a stage.")
@click.option("--lanes", type=click.IntRange(min=1), help="Maximum number of cores that share a layer.")
@click.option(
    "--max-latency", type=DURATION, help="Maximum latency of a frame, such as 40ms, when frames arrive without pause."
)
@click.option("--ram", type=BYTE_SIZE, help="Available RAM for arenas and FIFOs; weights do not count.")
@click.option("--min-throughput", type=click.FloatRange(min=0, min_open=True), help="Minimum frames per second.")
@click.option(
    "--minimise",
    type=click.Choice(["period", "latency", "memory", "energy"]),
    default="period",
    show_default=True,
    help="The objective; the shortest period is the highest throughput.",
)
@click.option("--pareto", is_flag=True, help="Show the trade-offs of throughput, latency and memory.")
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
    help="For the genetic search: minimise load differences as in the paper, or the slowest processor.",
)
@click.option("--page", type=OutFile(), help="Write a self-contained page: Gantt chart, utilisation, bottleneck.")
@click.option("-o", "--output", type=OutFolder(), help="Build the mapping in this folder, one library per part.")
@click.option("--run", "is_run", is_flag=True, help="Run it on this machine and compare with onnxruntime.")
@click.option("--frames", type=click.IntRange(2), default=200, show_default=True, help="Frames with --run.")
@shape_option
@json_option
def map_(**given: Any) -> None:
    """Map the layers of MODEL to the processors of a board for the highest throughput: stages, replicas, lanes.

    Shows predicted throughput, latency and memory, and an upper bound on the throughput of any mapping. Ends with
    status 1 when the limits cannot be met.
    """
    from ..map import MapOptions, map_

    map_(MapOptions(**given))
