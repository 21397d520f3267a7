"""Drivers with 260 fields and 230 functions: seconds of CPU for each mode, accesses and map against naive layouts.

    python benchmarks/hal_large.py [--fields 260] [--functions 230] [--most 5] [--mode balanced] [--json FILE]

The default mode lays out for all modes and takes the best; every mode should stay below 15 s. Drivers with 18,000
accesses (--fields 2000 --functions 2000 --most 17) should stay below 60 s, with maps no larger than naive ones.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import click
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgewright.hal.design_flow import analyse, naive
from edgewright.hal.layout.cost import WEIGHTS, LayoutGoal
from edgewright.hal.layout_choice import chosen_design, total_accesses
from tests.hal.large import Shape, draw_large

SHAPES = {
    "one group": (1, 12),
    "one group, anything": (1, 0),
    "five groups": (5, 10),
    "ten groups": (10, 8),
    "26 groups": (26, 10),
}


def measured(seed: int, shape: Shape, mode: str) -> dict[str, float]:
    """What one driver takes and comes to."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "driver.c"
        path.write_text(draw_large(seed, shape))
        start = process_time()
        analysis = analyse([path])
        read = process_time()
        made = chosen_design(analysis, goal=LayoutGoal(minimise=mode))
        end = process_time()
    plain = naive(analysis)
    return {
        "reading_s": read - start,
        "layout_s": end - read,
        "accesses": total_accesses(made),
        "accesses_naive": total_accesses(plain),
        "map": made.layout.map_bytes(analysis.description),
        "map_naive": plain.layout.map_bytes(analysis.description),
    }


@click.command()
@click.option("--fields", default=260)
@click.option("--functions", default=230)
@click.option("--most", default=5, help="Accesses of a function.")
@click.option("--mode", "modes", multiple=True, type=click.Choice(list(WEIGHTS)), default=list(WEIGHTS))
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(fields: int, functions: int, most: int, modes: tuple[str, ...], file: Path | None) -> None:
    table = Table(title=f"{fields} fields, {functions} functions", title_justify="left")
    for heading in ("driver", "mode", "reading, s", "layout, s", "accesses", "map, B"):
        table.add_column(heading, justify="left" if heading in ("driver", "mode") else "right")
    found = []
    for seed, (name, (groups, reach)) in enumerate(SHAPES.items(), 1):
        for mode in modes:
            figures = measured(seed, Shape(fields, functions, groups, reach, most), mode)
            found.append({"driver": name, "mode": mode, **figures})
            times = (f"{figures[key]:.1f}" for key in ("reading_s", "layout_s"))
            both = (f"{figures[f'{key}_naive']:,} → {figures[key]:,}" for key in ("accesses", "map"))
            table.add_row(name, mode, *times, *both)
    Console().print(table)
    if file:
        file.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
