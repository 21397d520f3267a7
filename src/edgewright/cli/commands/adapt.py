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
    help="When the request comes, in steps of the old scenario: 0.5 is in the middle of the first.",
)
@click.option(
    "--environment",
    type=IN_FILE,
    metavar="ENV.TOML",
    help="Simulate a day: signals, requests, limits on power and a battery over time.",
)
@click.option(
    "--timeline",
    type=OutFile(),
    help="With --environment: write signals, scenario, power, charge and accuracy over time as an SVG picture.",
)
@click.option(
    "--policy",
    type=click.Choice(SWITCH_POLICIES),
    help="What happens to the frame under way when another scenario is requested.  [default: that of the file]",
)
@click.option("--pareto", "asked_front", is_flag=True, help="Arena size against the worst switching delay.")
@click.option(
    "--simulate",
    "asked_delays",
    is_flag=True,
    help="Delays of all switches over all moments of the request, under each policy and the paper's protocol.",
)
@click.option(
    "--run",
    "is_run",
    is_flag=True,
    help="Run on this machine: delays measured and predicted, then frames with requests from stdin, or random ones.",
)
@click.option(
    "--frames",
    type=click.IntRange(1, 10**7),
    help="Frames with --run.  [default: 1000; with --requests until an interrupt]",
)
@click.option(
    "--requests",
    metavar="SOCKET",
    help="With --run: take requests, one a line, from this port of localhost or this Unix socket.",
)
@click.option("--compile", "compiles", is_flag=True, help="Write a C library that switches, with its package.")
@click.option("-o", "--output", type=OutFolder(), help="Folder for --compile.  [default: the application's name]")
@click.option("--force", is_flag=True, help="Write into a folder that somebody else has filled.")
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
    """Scenarios that switch at run time: what they share, in how much memory, how long each switch takes.

    APP.TOML is an application with two or more [[scenario]] tables.
    """
    from ..adapt import AdaptOptions, adapt

    adapt(AdaptOptions(**given))
