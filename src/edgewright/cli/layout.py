"""`edgewright layout`: addresses for any buffers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.table import Table

from .. import text
from ..memory.layout import Placement, place_optimal, read_csv, write_csv
from .common import console, print_json, shown, working


def layout(buffers: Path, capacity: int | None, alignment: int, output: Path | None, as_json: bool) -> None:
    problem = replace(read_csv(buffers), alignment=alignment)
    with working(f"placing {len(problem.items)} buffers"):
        placement = place_optimal(problem, capacity)
    if output:
        write_csv(output, problem, placement)
    if as_json:
        print_json(
            {
                "peak_bytes": placement.peak,
                "bound_bytes": placement.bound,
                "optimal": placement.optimal,
                "method": placement.method,
                "offsets": dict(placement.offsets),
            }
        )
        return
    table = Table(title=f"{len(problem.items)} buffers", title_justify="left")
    for heading in ("buffer", "offset", "size", "from", "to"):
        table.add_column(heading, justify="left" if heading == "buffer" else "right")
    items = sorted(problem.items, key=lambda item: (placement.offsets[item.name], item.start))
    for item in items[:60]:
        numbers = (placement.offsets[item.name], item.size, item.start, item.end)
        table.add_row(shown(item.name), *map(text.count, numbers))
    if len(items) > 60:
        table.add_row(f"… {len(items) - 60} more; --json or -o gives all")
    console.print(table)
    console.print(_verdict(placement, capacity))


def _verdict(placement: Placement, capacity: int | None) -> str:
    proof = (
        "proven least" if placement.optimal else f"no layout can need less than {text.count(placement.bound)} B"
    )
    fits = f"; fits {text.count(capacity)} B" if capacity is not None else ""
    return f"peak {text.count(placement.peak)} B ({text.rounded_size(placement.peak)}), {proof}{fits}"
