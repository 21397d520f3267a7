"""The options of `edgewright profile`."""

from __future__ import annotations

from typing import Any

import click

from ..options import executor_option, json_option, model_argument, shape_option
from ..outputs import OutFile, Verb


@click.command(cls=Verb)
@model_argument
@click.option(
    "--board",
    default="this",
    show_default=True,
    help="`this` measures on this machine; a name from `edgewright boards`, or a board file (.toml), is estimated.",
)
@click.option("-o", "--output", type=OutFile(), help="Write the times to this file (JSON).")
@click.option(
    "--most-lanes", type=click.IntRange(1, 1024), help="Measure up to so many lanes.  [default: all cores]"
)
@executor_option
@click.option(
    "--repeats",
    type=click.IntRange(1, 10_000),
    default=15,
    show_default=True,
    help="Samples of every layer; the median counts.",
)
@shape_option
@json_option
def command(**given: Any) -> None:
    """How long each layer of MODEL takes on each kind of core, and what moving a tensor costs.

    Measured here, in an instrumented build of our code; for a board that is not here the least times that its
    arithmetic and its memory permit, marked as estimates.
    """
    from ..profile import profile

    profile(**given)
