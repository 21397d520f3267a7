"""The options of `edgewright adapt`."""

from __future__ import annotations

from typing import Any

import click

from ..options import IN_FILE, SHARE, SWITCH_POLICIES, json_option, operators_option
from ..outputs import OutFile, OutFolder, Verb


@click.command(cls=Verb)
@click.argument("application", type=IN_FILE, metavar="APP.TOML")
@click.option(
    "--share",
    type=SHARE,
    metavar="I,O,par",
    help="Attributes that may differ between layers that share one: type, op, I, O, Theta, kh, kw, s, pad, par.  "
    "[default: those of the file, or else I,O,par]",
)
@click.option(
    "--request-at",
    type=float,
    default=0.5,
    show_default=True,
    metavar="STEPS",
    help="When the request arrives, in steps of the old scenario: 0.5 is the middle of the first step.",
)
@click.option(
    "--environment",
    type=IN_FILE,
    metavar="ENV.TOML",
    help="Simulate a day with signals, requests, power limits and a battery.",
)
@click.option(
    "--timeline",
    type=OutFile(),
    help="With --environment: write signals, scenario, power, charge and accuracy over time as an SVG picture.",
)
@click.option(
    "--policy",
    type=click.Choice(SWITCH_POLICIES),
    help="What happens to the current frame when another scenario is requested.  [default: the file's]",
)
@click.option("--pareto", "asked_front", is_flag=True, help="Show arena size against the worst switching delay.")
@click.option(
    "--simulate",
    "asked_delays",
    is_flag=True,
    help="Compute the delays of all switches over all request times, for each policy and the paper's protocol.",
)
@click.option(
    "--run",
    "is_run",
    is_flag=True,
    help="Run on this machine: measure and predict delays, then run frames with requests from stdin, or random ones.",
)
@click.option(
    "--frames",
    type=click.IntRange(1, 10**7),
    help="Frames with --run.  [default: 1000; with --requests until interrupted]",
)
@click.option(
    "--requests",
    metavar="SOCKET",
    help="With --run: read requests, one per line, from this port on localhost or this Unix socket.",
)
@click.option("--compile", "compiles", is_flag=True, help="Write a C library that switches, with its package.")
@click.option("-o", "--output", type=OutFolder(), help="Folder for --compile.  [default: the application's name]")
@click.option("--force", is_flag=True, help="Write into a folder that holds other files.")
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Run the library of --compile, here and on the virtual board.",
)
@click.option(
    "--page",
    type=OutFile(),
    help="Write a self-contained page: a switch over time, the switch matrix, the memory map, the front.",
)
@operators_option
@json_option
def adapt(**given: Any) -> None:
    """Plan scenarios that switch at run time: shared layers, memory, switching delays.

    APP.TOML describes an application with two or more [[scenario]] tables.
    """
    from ..adapt import AdaptOptions, adapt

    adapt(AdaptOptions(**given))
