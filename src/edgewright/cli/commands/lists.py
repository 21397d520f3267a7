"""The options of `boards`, `sample` and `layout`, the verbs that do not take a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import BYTE_SIZE, IN_FILE, json_option
from ..outputs import OutFile, OutModelOrFolder, Verb


@click.command()
@json_option
def boards(**given: Any) -> None:
    """List the boards that --board knows by name."""
    from ..lists import boards

    boards(**given)


@click.command(cls=Verb)
@click.argument("name", required=False)
@click.option(
    "-o",
    "--output",
    type=OutModelOrFolder(),
    default=Path("."),
    help="Folder for the files, or the .onnx file.",
)
def sample(**given: Any) -> None:
    """Write the bundled model NAME as an ONNX file, or the application NAME; without NAME, list them."""
    from ..lists import sample

    sample(**given)


@click.command(cls=Verb)
@click.argument("buffers", type=IN_FILE)
@click.option("--capacity", type=BYTE_SIZE, help="Available bytes.  [default: find the minimum]")
@click.option(
    "--alignment", type=click.IntRange(min=1), default=1, show_default=True, help="Alignment of every offset."
)
@click.option("-o", "--output", type=OutFile(), help="Write the CSV with a column of offsets.")
@json_option
def layout(**given: Any) -> None:
    """Compute addresses for the buffers of a CSV file (id,lower,upper,size: MiniMalloc's format, upper excluded)."""
    from ..lists import layout

    layout(**given)
