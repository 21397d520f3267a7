"""Layout in figures: MiniMalloc's hard instances, random ones, and how time grows with CNN-like problems.

    python benchmarks/layout.py [FOLDER] [--json FILE] [--quick]

FOLDER holds MiniMalloc CSVs named NAME.CAPACITY.csv; by default $EDGEWRIGHT_CORPUS/data/minimalloc, if that exists.
"""

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from edgewright.errors import Infeasible
from edgewright.memory.layout import (
    Item,
    LayoutEffort,
    LayoutProblem,
    lower_bound,
    place_greedy_by_size,
    place_optimal,
    read_csv,
)

Row = dict[str, str | int | float | bool | None]


def cnn_like(buffers: int, seed: int, overlapping: bool = False) -> LayoutProblem:
    """A chain of layers with skip connections over two to four of them; maps shrink and channels grow.

    `overlapping`: every third layer's output may trail its input, as a depthwise layer's can.
    """
    rng = random.Random(seed)
    items, gaps = [], {}
    for n in range(buffers):
        stage = 6 * n // buffers
        size = max(16, (96 * 96 >> 2 * stage) * rng.choice((8, 16, 24)) << stage)
        skip = rng.choice((0, 0, 2, 3, 4))
        items.append(Item(f"b{n}", n, n + 2 + skip, size))
        if overlapping and n and n % 3 == 0:
            gaps[f"b{n - 1}", f"b{n}"] = (
                items[n - 1].size,
                min(size, size // 8 + max(0, size - items[n - 1].size)),
            )
    return LayoutProblem(tuple(items), gaps, alignment=16)


def random_problem(buffers: int, seed: int) -> LayoutProblem:
    """Buffers with no structure at all."""
    rng = random.Random(seed)
    starts = [rng.randrange(buffers) for _ in range(buffers)]
    return LayoutProblem(
        tuple(Item(f"b{n}", s, s + rng.randint(1, 12), rng.randint(1, 200)) for n, s in enumerate(starts))
    )


def measure(name: str, problem: LayoutProblem, capacity: int | None = None) -> Row:
    """One row: what each method needs, and how long the front door took."""
    started = time.perf_counter()
    try:
        ours = place_optimal(problem, capacity)
    except Infeasible:
        ours = None
    seconds = time.perf_counter() - started
    return {
        "instance": name,
        "buffers": len(problem.items),
        "lower bound": lower_bound(problem),
        "greedy by size": place_greedy_by_size(problem).peak,
        "first fit": place_optimal(problem, effort=LayoutEffort.QUICK).peak,
        "ours": ours.peak if ours else None,
        "capacity": capacity,
        "fits": ours is not None,
        "proven": bool(ours and ours.optimal),
        "seconds": round(seconds, 3),
        "method": ours.method if ours else "none found",
    }


def minimalloc(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.glob("*.*.csv")):
        name, capacity, _ = path.name.split(".")
        yield measure(name, read_csv(path), int(capacity))


def generated(quick: bool) -> Iterator[Row]:
    for buffers in (20, 50, 100) if quick else (20, 50, 100, 200):
        for seed in range(2):
            yield measure(f"random {buffers}/{seed}", random_problem(buffers, seed))


def growth(quick: bool) -> Iterator[Row]:
    for buffers in (10, 100) if quick else (10, 30, 100, 300, 1000, 2000):
        yield measure(f"cnn {buffers}", cnn_like(buffers, seed=buffers))
        yield measure(f"cnn {buffers}, overlapping", cnn_like(buffers, seed=buffers, overlapping=True))


def show(title: str, rows: list[Row], console: Console) -> None:
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column, justify="left" if column in ("instance", "method") else "right")
    for row in rows:
        table.add_row(
            *("" if v is None else "yes" if v is True else "no" if v is False else str(v) for v in row.values())
        )
    console.print(table)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all rows here.")
@click.option("--quick", is_flag=True, help="Small generated problems only.")
def main(folder: Path | None, json_file: Path | None, quick: bool) -> None:
    """Measures the layout solvers."""
    console = Console(width=150)
    corpus = os.environ.get("EDGEWRIGHT_CORPUS")
    if folder is None and corpus and (Path(corpus) / "data" / "minimalloc").is_dir():
        folder = Path(corpus) / "data" / "minimalloc"
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "CNN-like problems": lambda: growth(quick),
        "random problems": lambda: generated(quick),
    }
    if folder is not None:
        parts = {"MiniMalloc's challenging instances": lambda: minimalloc(folder)} | parts
    rows: dict[str, list[Row]] = {}
    for title, run in parts.items():
        with console.status(title):
            rows[title] = list(run())
        show(title, rows[title], console)
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
