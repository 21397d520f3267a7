"""The options of `edgewright flow`."""

from __future__ import annotations

from typing import Any

import click

from ..options import IN_FILE, json_option, operators_option
from ..outputs import OutFolder, Verb


@click.command(cls=Verb)
@click.argument("flow", type=IN_FILE, metavar="FLOW.TOML")
@click.option("-o", "--output", type=OutFolder(), help="Folder for all results.  [default: the flow's name with -flow]")
@click.option("--workers", type=click.IntRange(1, 1024), help="Parallel processes.  [default: one per core]")
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Run the firmware, here and on the virtual board.",
)
@operators_option
@json_option
def flow(**given: Any) -> None:
    """Run the whole design flow: search, execution modes, selection, application, firmware.

    FLOW.TOML says where design points come from (a search task, a front, a trained model), how to select among them,
    and what to build. An interrupted flow resumes where it stopped.
    """
    from ..flow import flow

    flow(**given)
