"""`edgewright sample`: the bundled models, built on the spot."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from .. import samples
from ..errors import InputError
from .common import console, working


@click.command()
@click.argument("name", required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Folder for the file.",
)
def sample(name: str | None, output: Path) -> None:
    """Write the bundled model NAME as an ONNX file; without NAME, list them."""
    if name is None:
        table = Table(title="bundled models", title_justify="left")
        table.add_column("name")
        table.add_column("what it is")
        for known in samples.names():
            table.add_row(known, samples.describe(known))
        console.print(table)
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder '{output}': {error.strerror}") from error
    with working(f"building {name}"):
        path = samples.write(name, output)
    console.print(f"wrote {path}", soft_wrap=True)
