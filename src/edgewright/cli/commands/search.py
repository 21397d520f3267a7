"""The options of `edgewright search`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import IN_FILE, json_option
from ..outputs import OutFile, Verb


@click.command(cls=Verb)
@click.argument("task", type=IN_FILE, metavar="TASK.TOML")
@click.option("--resume", "is_resumed", is_flag=True, help="Continue the search whose journal lies beside the front.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Overrides the seed in the file.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes on this machine.  [default: one per core]")
@click.option("--on", "scheduler", metavar="tcp://HOST:8786", help="Price and train on the workers of a Dask cluster.")
@click.option(
    "--verify/--no-verify",
    "is_checked",
    default=True,
    show_default=True,
    help="Run the points of the front on the virtual board.",
)
@click.option(
    "--page",
    type=OutFile(),
    help="Write a self-contained page: all points, interactive fronts, the course of the search.",
)
@click.option(
    "-o",
    "--output",
    type=OutFile(makes_folders=True),
    default=Path("front.json"),
    show_default=True,
    help="The front; the journal and the folder `models` are written beside it.",
)
@json_option
def search(**given: Any) -> None:
    """Search architectures for a board: networks that no other candidate beats in every measure.

    TASK.TOML gives data, search space, board, limits, budget and seed. Every candidate is written to a journal;
    --resume continues an interrupted search, with the same result.
    """
    from ..search import search

    search(**given)
