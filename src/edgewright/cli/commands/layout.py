"""The options of `edgewright layout`."""

from __future__ import annotations

from typing import Any

import click

from ..options import IN_FILE, ByteSize, json_option
from ..outputs import OutFile, Verb


@click.command(cls=Verb)
@click.argument("buffers", type=IN_FILE)
@click.option("--capacity", type=ByteSize(), help="Bytes that there are; without it, the least that is needed.")
@click.option("--alignment", type=click.IntRange(min=1), default=1, show_default=True, help="Of every offset.")
@click.option("-o", "--output", type=OutFile(), help="Write the CSV with a column of offsets.")
@json_option
def command(**given: Any) -> None:
    """Addresses for the buffers of a CSV file (id,lower,upper,size: MiniMalloc's format, upper excluded)."""
    from ..layout import layout

    layout(**given)
