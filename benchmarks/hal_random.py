"""Random drivers through the whole tool: two thousand functions, each run against what its source says.

    python benchmarks/hal_random.py [--functions 2000] [--first SEED] [--all-methods] [--json FILE]

Every file is laid out, generated, compiled and run on the virtual prototype against the naive design, and against its
own source compiled for this machine. Differences must be 0; a driver that differs is made small and printed.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import click
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.hal.random_check import METHODS, Verdict, check, target_of, told
from tests.hal.random_drivers import draw_program

PER_FILE = 20


def examine(seed: int, methods: tuple[str, ...]) -> tuple[list[Verdict], Counter[str]]:
    """The verdicts on one file, and the kinds of statements in it."""
    program = draw_program(seed, PER_FILE)
    return list(check(program, methods, target_of(seed))), program.kinds


def by_method(verdicts: list[Verdict]) -> dict[str, dict[str, int]]:
    """What came of each way to lay out."""
    found: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        row = found.setdefault(verdict.method, Counter())
        row["files"] += 1
        row["functions"] += verdict.functions - 1  # the last only shows the driver's state
        row["merges"] += verdict.merges
        row["merged"] += verdict.merged
        row["naive"] += verdict.accesses[0]
        row["optimised"] += verdict.accesses[1]
        row["events"] += verdict.events
        row["differences"] += len(verdict.story)
    return {method: dict(row) for method, row in found.items()}


def show(rows: dict[str, dict[str, int]], kinds: Counter[str]) -> None:
    console = Console(width=120)
    table = Table(title="Random drivers by layout")
    heads = ("files", "functions", "merges", "merged", "naive", "optimised", "events", "differences")
    titles = (
        "files",
        "functions",
        "merges",
        "accesses merged",
        "bus, naive",
        "bus, optimised",
        "events",
        "differences",
    )
    for title in ("layout", *titles):
        table.add_column(title, justify="left" if title == "layout" else "right")
    for method, row in rows.items():
        table.add_row(method, *(f"{row.get(head, 0):,}" for head in heads))
    console.print(table)
    console.print("Drawn: " + ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common()))


@click.command(help=__doc__)
@click.option("--functions", default=2000, show_default=True)
@click.option("--first", default=1000, show_default=True, help="Seed of the first file.")
@click.option("--all-methods", is_flag=True, help="Each file by every method, not by one in turn.")
@click.option("--json", "record", type=click.Path(path_type=Path))
def main(functions: int, first: int, all_methods: bool, record: Path | None) -> None:
    start, kinds, verdicts = perf_counter(), Counter[str](), list[Verdict]()
    for seed in range(first, first + -(-functions // PER_FILE)):
        methods = METHODS if all_methods else (METHODS[seed % len(METHODS)],)
        found, drawn = examine(seed, methods)
        verdicts += found
        kinds += drawn
        for verdict in found:
            if verdict.story:
                click.echo(told(verdict, PER_FILE))
    rows = by_method(verdicts)
    show(rows, kinds)
    failed = sum(bool(verdict.story) for verdict in verdicts)
    click.echo(f"{perf_counter() - start:.0f} s, {failed} files with a difference")
    if record:
        record.write_text(json.dumps({"layouts": rows, "kinds": dict(kinds), "failed": failed}, indent=2) + "\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
