"""`edgewright sample`: the bundled models, built on the spot."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from .. import samples
from ..files import check_folder
from .common import console, shown, working


def sample(name: str | None, output: Path) -> None:
    if name is None:
        table = Table(title="bundled models", title_justify="left")
        table.add_column("name")
        table.add_column("what it is")
        for known in samples.names():
            table.add_row(known, samples.describe(known))
        for known in samples.application_names():
            table.add_row(known, samples.describe_application(known))
        console.print(table)
        return
    check_folder(output)
    with working(f"building {name}"):
        is_application = name in samples.application_names()
        path = samples.write_application(name, output) if is_application else samples.write(name, output)
    console.print(f"wrote {shown(path)}", soft_wrap=True)
