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
    help="How important accuracy, throughput, memory and energy are: weights that add up to 1.  [default: accuracy=1]",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    type=ParsedValue("limit", "..search.selection", "parse_limit"),
    metavar="ram=8K",
    help="The most RAM, flash, instructions, macs, latency or energy that a point may need, or the least accuracy, "
    "macro_f1 or throughput. May be given again.",
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
    """The point of a front that serves requirements best: limits first, then ranking dominance.

    FRONT.JSON is a file that `edgewright search` or `edgewright flow` wrote, or its folder.
    """
    from ..select import select

    select(**given)
