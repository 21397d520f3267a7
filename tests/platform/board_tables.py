"""The Markdown tables of docs/boards.md, from the models and the catalogue they describe."""

from __future__ import annotations

from collections.abc import Callable

from edgewright.platform import Board, Link, Memory, Power, Processor, catalogue, format_frequency, format_size
from edgewright.platform.schema import Entry


def catalogue_table() -> str:
    """One row per board of the catalogue."""
    rows = ["| name | board | processors | RAM, fastest first | read-only |", "|---|---|---|---|---|"]
    for board in catalogue():
        cells = (
            f"`{board.name}`",
            board.title,
            " + ".join(map(_processor_cell, board.processors)),
            " + ".join(map(_memory_cell, board.ram)),
            " + ".join(map(_memory_cell, board.flash)) or "–",
        )
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def key_table() -> str:
    """One row per key of a board file: what is expected, and whether it must be there."""
    rows = ["| table | key | | expected |", "|---|---|---|---|"]
    tables: dict[str, type[Entry]] = {
        "": Board,
        "`[[processor]]`": Processor,
        "`[[memory]]`": Memory,
        "`[[link]]`": Link,
        "`[power]`": Power,
    }
    for table, model in tables.items():
        for name, field in model.model_fields.items():
            needed = "required" if field.is_required() else ""
            rows.append(f"| {table} | `{field.alias or name}` | {needed} | {field.description} |")
    return "\n".join(rows)


# What stands in the page between <!-- name --> and <!-- /name -->.
TABLES: dict[str, Callable[[], str]] = {"keys": key_table, "catalogue": catalogue_table}


def with_tables(page: str) -> str:
    """The page with its tables brought up to date."""
    for name, table in TABLES.items():
        opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = page.partition(opening)
        _, _, after = rest.partition(closing)
        page = f"{before}{opening}\n{table()}\n{closing}{after}"
    return page


def _processor_cell(processor: Processor) -> str:
    count = f"{processor.count}× " if processor.count > 1 else ""
    lanes = f" of {processor.lanes} cores" if processor.lanes > 1 else ""
    return f"{count}{processor.kind.value}{lanes} at {format_frequency(processor.clock)}"


def _memory_cell(memory: Memory) -> str:
    reserved = f" (less {format_size(memory.reserved)})" if memory.reserved else ""
    return f"{memory.name} {format_size(memory.size)}{reserved}"
