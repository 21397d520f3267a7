"""The options of `edgewright flow`."""

from __future__ import annotations

from typing import Any

import click

from ..options import IN_FILE, json_option, operators_option
from ..outputs import OutFolder, Verb


@click.command(cls=Verb)
@click.argument("flow", type=IN_FILE, metavar="FLOW.TOML")
@click.option("-o", "--output", type=OutFolder(), help="Folder of all results.  [default: the flow's name with -flow]")
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes at work at once.  [default: one per core]")
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Run the firmware, here and on the virtual board.",
)
@operators_option
@json_option
def flow(**given: Any) -> None:
    """The whole design flow: search, manners of execution, selection, application, firmware.

    FLOW.TOML says where design points come from (a search task, a front, a trained model), what is
    selected among them, and what is made of that. A flow that was stopped goes on where it was.
    """
    from ..flow import flow

    flow(**given)
