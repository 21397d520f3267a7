"""The options of `edgewright sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..outputs import OutFolder, Verb


@click.command(cls=Verb)
@click.argument("name", required=False)
@click.option(
    "-o",
    "--output",
    type=OutFolder(),
    default=Path("."),
    help="Folder for the files.",
)
def command(**given: Any) -> None:
    """Write the bundled model NAME as an ONNX file, or the application NAME; without NAME, list them."""
    from ..sample import sample

    sample(**given)
