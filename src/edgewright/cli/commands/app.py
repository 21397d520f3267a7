"""The options of `edgewright app`."""

from __future__ import annotations

from typing import Any

import click

from ..options import APPLICATION_METHODS, BYTE_SIZE, IN_FILE, json_option, operators_option
from ..outputs import OutFile, OutPlanOrFolder, Verb


@click.command(cls=Verb)
@click.argument("application", type=IN_FILE, metavar="APP.TOML")
@click.option("--ram", type=BYTE_SIZE, help="Available RAM, such as 24K: find the least slow-down that fits.")
@click.option("--pull-input", is_flag=True, help="Read images row by row, in all networks that can.")
@click.option(
    "--pareto",
    "asked_front",
    is_flag=True,
    help="Show RAM against slow-down, and against waiting if networks interrupt others.",
)
@click.option(
    "--method",
    type=click.Choice(APPLICATION_METHODS),
    default=APPLICATION_METHODS[0],
    show_default=True,
    help="Plan all networks jointly; or by the paper's Algorithms 8 to 10; or with the least memory for their edges.",
)
@click.option(
    "--page", type=OutFile(), help="Write a self-contained page: the memory map of all networks, bars, the front."
)
@click.option(
    "--run",
    "is_run",
    is_flag=True,
    help="Run all networks on this machine in one arena and compare frames/s with the limits.",
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
    help="Compare the networks as trained, with fp16 weights and in int8: RAM, flash, frames/s, output differences.",
)
@click.option("--compile", "compiles", is_flag=True, help="Write one C library with one arena for all networks.")
@click.option("--plan", type=IN_FILE, help="Use a plan that -o wrote; it is checked again.")
@click.option(
    "-o",
    "--output",
    type=OutPlanOrFolder(),
    help="File for the plan, such as app.json; with --compile the package folder.  [default: the application's name]",
)
@click.option("--force", is_flag=True, help="Write into a folder that holds other files.")
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Run the library of --compile, here and on the virtual board.",
)
@operators_option
@json_option
def app(**given: Any) -> None:
    """Plan several networks in one memory: which ones set the peak, which ones slow down to lower it.

    Without --ram, the plan has the least RAM that costs no extra MACs; networks that do not set the peak keep their
    fastest plan.
    """
    from ..app import AppOptions, app

    app(AppOptions(**given))
