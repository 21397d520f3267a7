"""The options of `edgewright app`."""

from __future__ import annotations

from typing import Any

import click

from ..options import APPLICATION_METHODS, BYTE_SIZE, IN_FILE, json_option, operators_option
from ..outputs import OutFile, OutPlanOrFolder, Verb


@click.command(cls=Verb)
@click.argument("application", type=IN_FILE, metavar="APP.TOML")
@click.option("--ram", type=BYTE_SIZE, help="RAM that there is, such as 24K: the least slow-down that fits.")
@click.option("--pull-input", is_flag=True, help="Images come row by row, wherever networks can take them so.")
@click.option(
    "--pareto",
    "asked_front",
    is_flag=True,
    help="RAM against slow-down, and against waiting where networks interrupt others.",
)
@click.option(
    "--method",
    type=click.Choice(APPLICATION_METHODS),
    default=APPLICATION_METHODS[0],
    show_default=True,
    help="Plans of all networks at once; or the paper's Algorithms 8 to 10; or the least memory over their edges.",
)
@click.option(
    "--page", type=OutFile(), help="Write a self-contained page: the memory map of all networks, bars, the front."
)
@click.option(
    "--run",
    "is_run",
    is_flag=True,
    help="Run all networks on this machine in one arena: frames/s beside the limits.",
)
@click.option(
    "--frames",
    type=click.IntRange(1, 10**6),
    default=60,
    show_default=True,
    help="Frames of each network with --run.",
)
@click.option(
    "--quantise",
    "asked_precisions",
    is_flag=True,
    help="Compare networks as trained, with fp16 weights and in int8: RAM, flash, frames/s, difference of outputs.",
)
@click.option("--compile", "compiles", is_flag=True, help="Write one C library with one arena for all of them.")
@click.option("--plan", type=IN_FILE, help="A plan that -o wrote: judged again, and taken as it is.")
@click.option(
    "-o",
    "--output",
    type=OutPlanOrFolder(),
    help="File for the plan, such as app.json; with --compile the folder.  [default: the application's name]",
)
@click.option("--force", is_flag=True, help="Write into a folder that somebody else has filled.")
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Run the library of --compile, here and on the virtual board.",
)
@operators_option
@json_option
def app(**given: Any) -> None:
    """Several networks in one memory: who sets the peak, who pays for less, where everything lies.

    Without --ram, the least RAM that costs no multiply-accumulates; networks that do not set the peak stay as fast as
    they are.
    """
    from ..app import AppOptions, app

    app(AppOptions(**given))
