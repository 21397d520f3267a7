"""`edgewright boards` and `edgewright sample`: what is known by name."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from ..files import check_folder
from ..platform import catalogue
from ..platform.units import format_frequency, format_size
from .common import console, print_json, shown, working


def boards(as_json: bool) -> None:
    known = catalogue()
    if as_json:
        print_json([board.model_dump(mode="json", by_alias=True) for board in known])
        return
    table = Table(title=f"{len(known)} boards", title_justify="left")
    for heading in ("name", "processors", "RAM, fastest first", "flash"):
        table.add_column(heading, overflow="fold")
    for board in known:
        cores = [f"{p.count}x {p.kind.value} {format_frequency(p.clock)}" for p in board.processors]
        memories = [[f"{m.name} {format_size(m.size)}" for m in part] for part in (board.ram, board.flash)]
        table.add_row(board.name, "\n".join(cores), "\n".join(memories[0]), "\n".join(memories[1]))
    console.print(table)
    console.print("Write your own as TOML and give its path to --board; see docs/boards.md.", style="dim")


def sample(name: str | None, output: Path) -> None:
    from .. import samples  # takes a while to load

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
