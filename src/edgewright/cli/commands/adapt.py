"""The options of `edgewright adapt`."""

from __future__ import annotations

from typing import Any

import click

from ..options import IN_FILE, SHARE, json_option
from ..outputs import OutFile, Verb


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
@json_option
def adapt(**given: Any) -> None:
    """Scenarios that switch at run time: what they share, in how much memory, how long each switch takes.

    APP.TOML is an application with two or more [[scenario]] tables.
    """
    from ..adapt import adapt

    adapt(**given)
