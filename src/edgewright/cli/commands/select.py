"""The options of `edgewright select`."""

from __future__ import annotations

from typing import Any

import click

from ..options import IN_FILE, SELECTION_METHODS, ParsedValue, json_option
from ..outputs import Verb


@click.command(cls=Verb)
@click.argument("front", type=IN_FILE, metavar="FRONT.JSON")
@click.option(
    "--require",
    "requirement",
    type=ParsedValue("weights", "..search.selection", "parse_requirement"),
    metavar="accuracy=.5,energy=.5",
    help="Weights of accuracy, throughput, memory and energy, which add up to 1.  [default: accuracy=1]",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    type=ParsedValue("limit", "..search.selection", "parse_limit"),
    metavar="ram=8K",
    help="Maximum of ram, flash, instructions, macs, latency or energy, or minimum of accuracy, macro_f1 or "
    "throughput. May be given again.",
)
@click.option(
    "--method",
    type=click.Choice(SELECTION_METHODS),
    default=SELECTION_METHODS[0],
    show_default=True,
    help="The weighted sum of ranks, or the largest weighted distance from the best value.",
)
@json_option
def select(**given: Any) -> None:
    """Select the point of a front that best serves the requirements: limits first, then ranking dominance.

    FRONT.JSON is a file that `edgewright search` or `edgewright flow` wrote, or its folder.
    """
    from ..select import select

    select(**given)
