"""The options of `edgewright csdf`."""

from __future__ import annotations

from typing import Any

import click

from ..options import IN_FILE, json_option, shape_option
from ..outputs import OutFile, Verb


@click.command(cls=Verb)
@click.argument("source", type=IN_FILE, metavar="MODEL|GRAPH")
@click.option("--analyse", "asked", is_flag=True, help="Whether it runs, how fast, in how little memory.")
@click.option(
    "--pareto", "asked_front", is_flag=True, help="Buffer size against throughput: every trade-off there is."
)
@click.option("--sdf3", "sdf3_file", type=OutFile(), help="Write the graph as SDF3 XML.")
@click.option("--dot", "dot_file", type=OutFile(), help="Write the graph for Graphviz.")
@click.option(
    "--page", type=OutFile(), help="Write a self-contained page: facts, Gantt chart, the front if asked for."
)
@click.option("--gantt", type=OutFile(), help="Write the firings at minimum buffers over time as an SVG picture.")
@click.option("--plot", type=OutFile(), help="Write the front of --pareto as an SVG picture.")
@click.option(
    "--iterations", type=click.IntRange(1, 1000), default=1, show_default=True, help="In the Gantt chart."
)
@click.option(
    "--bytes/--tokens", "in_bytes", default=None, help="What is least.  [default: bytes for models, else tokens]"
)
@click.option(
    "--limit",
    type=click.FloatRange(0, 86400),
    metavar="SECONDS",
    help="For searches, roughly.  [default: 60; 5 for the period at the minimum]",
)
@click.option("--sdf", is_flag=True, help="Model: one phase for each layer (Algorithm 1 of the paper).")
@click.option("--rule", type=click.Choice(["M", "B"]), help="Model: phases for each row, or folded.  [default: M]")
@click.option("--elements", is_flag=True, help="Model: tokens are elements, as in the papers, not rows.")
@click.option("--self-loops", is_flag=True, help="Model: rows read again go through self-loops, as printed.")
@click.option(
    "--mapping", type=IN_FILE, help="Model: JSON or TOML, the processor of each layer; an actor for each."
)
@click.option("--times", type=IN_FILE, help="Model: JSON or TOML, the time of each layer.  [default: its MACs]")
@shape_option
@json_option
def command(**given: Any) -> None:
    """The dataflow graph of a model (.onnx, .tflite), or in a file (SDF3 XML, JSON): actors, phases, rates.

    Ends with status 1 when the rates are inconsistent or the graph deadlocks.
    """
    from ..csdf import csdf

    csdf(**given)
