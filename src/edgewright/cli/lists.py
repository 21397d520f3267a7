"""`edgewright boards`, `edgewright sample` and `edgewright layout`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .. import text
from ..errors import InputError
from ..files import check_folder
from ..memory.layout import Placement, place_optimal, read_csv, write_csv
from ..platform import catalogue
from ..platform.units import format_frequency, format_size
from .common import console, print_json, shown, table, working
from .outputs import is_model


def boards(as_json: bool) -> None:
    known = catalogue()
    if as_json:
        print_json([board.model_dump(mode="json", by_alias=True) for board in known])
        return
    made = table(f"{len(known)} boards", "name", "processors", "RAM, fastest first", "flash")
    for board in known:
        cores = [f"{p.count}x {p.kind.value} {format_frequency(p.clock)}" for p in board.processors]
        memories = [[f"{m.name} {format_size(m.size)}" for m in part] for part in (board.ram, board.flash)]
        made.add_row(board.name, "\n".join(cores), "\n".join(memories[0]), "\n".join(memories[1]))
    console.print(made)
    console.print("Write your own as TOML and give its path to --board; see docs/boards.md.", style="dim")


def sample(name: str | None, output: Path) -> None:
    from .. import samples  # slow to load

    if name is None:
        made = table("bundled models", "name", "what it is")
        for known in samples.names():
            made.add_row(known, samples.describe(known))
        for known in samples.application_names():
            made.add_row(known, samples.describe_application(known))
        console.print(made)
        return
    is_application = name in samples.application_names()
    if is_application and is_model(output):
        raise InputError(f"'{name}' is an application of several files; give a folder with -o")
    if not is_model(output):
        check_folder(output)
    with working(f"building {name}"):
        path = samples.write_application(name, output) if is_application else samples.write(name, output)
    console.print(f"wrote {shown(path)}", soft_wrap=True)


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
    made = table(f"{len(problem.items)} buffers", "buffer", ">offset", ">size", ">from", ">to")
    items = sorted(problem.items, key=lambda item: (placement.offsets[item.name], item.start))
    for item in items[:60]:
        numbers = (placement.offsets[item.name], item.size, item.start, item.end)
        made.add_row(shown(item.name), *map(text.count, numbers))
    if len(items) > 60:
        made.add_row(f"… {len(items) - 60} more; --json or -o gives all")
    console.print(made)
    console.print(_verdict(placement, capacity))


def _verdict(placement: Placement, capacity: int | None) -> str:
    proof = "proven least" if placement.optimal else f"no layout can need less than {text.count(placement.bound)} B"
    fits = f"; fits {text.count(capacity)} B" if capacity is not None else ""
    return f"peak {text.count(placement.peak)} B ({text.rounded_size(placement.peak)}), {proof}{fits}"
