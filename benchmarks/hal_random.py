"""Random drivers through the whole tool: two thousand functions, each run against what its source says.

    python benchmarks/hal_random.py [--functions 2000] [--first SEED] [--seconds N] [--all-methods] [--json FILE]

Every file is laid out, generated, compiled and run on the virtual prototype against the naive design, and against its
own source compiled for this machine. With `--host`, or where there is no compiler or emulator for the prototype,
the generated code is compiled for this machine too and compared with the source alone: that takes gcc and g++.
Differences must be 0; a driver that differs is made small and printed, but not small with `--seconds`.
"""

import json
import sys
import traceback
from collections import Counter
from itertools import takewhile
from pathlib import Path
from time import perf_counter

import click
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from edgewright.hal.verify import missing_tools
from tests.hal.random_check import METHODS, Verdict, check, target_of, told
from tests.hal.random_drivers import draw_program
from tests.hal.runs import HOST

PER_FILE = 20


def examine(
    seed: int, methods: tuple[str, ...], target: str, is_hurried: bool = False
) -> tuple[list[Verdict], Counter[str], str]:
    """The verdicts on one file, the kinds of statements in it, and what went wrong in words."""
    program = draw_program(seed, PER_FILE)
    try:
        verdicts = list(check(program, methods, target))
        wrong = [verdict for verdict in verdicts if verdict.story]
        return verdicts, program.kinds, "\n".join(in_words(v) if is_hurried else told(v, PER_FILE) for v in wrong)
    except Exception:  # one file that cannot be examined is a failure, and the others go on
        return [], program.kinds, f"seed {seed}, {', '.join(methods)}, {target}\n{traceback.format_exc()}"


def in_words(verdict: Verdict) -> str:
    return "\n".join((f"seed {verdict.seed}, {verdict.method}, {verdict.target}", *verdict.story))


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
@click.option("--seconds", type=float, help="Begin no file after that time.")
@click.option("--jobs", default=-1, show_default=True, help="Files at a time; -1 for one on each processor.")
@click.option("--host", is_flag=True, help="Compare on this machine alone, without the virtual prototype.")
@click.option("--all-methods", is_flag=True, help="Each file by every method, not by one in turn.")
@click.option("--json", "record", type=click.Path(path_type=Path))
def main(
    functions: int, first: int, seconds: float | None, jobs: int, host: bool, all_methods: bool, record: Path | None
) -> None:
    start, kinds, verdicts, wrong = perf_counter(), Counter[str](), list[Verdict](), 0
    seeds = range(first, first + -(-functions // PER_FILE))
    reason = "" if host else next(filter(None, (missing_tools(target_of(seed)) for seed in seeds[:8])), "")
    if host or reason:
        click.echo(f"Compared on this machine with the untouched source, without the virtual prototype. {reason}")
    in_time = takewhile(lambda _: seconds is None or perf_counter() - start < seconds, seeds)
    tasks = (
        delayed(examine)(
            seed,
            METHODS if all_methods else (METHODS[seed % len(METHODS)],),
            HOST if host or reason else target_of(seed),
            seconds is not None,
        )
        for seed in in_time
    )
    workers = Parallel(n_jobs=jobs, batch_size=1, pre_dispatch="n_jobs", return_as="generator_unordered")
    for found, drawn, story in workers(tasks):
        verdicts += found
        kinds += drawn
        wrong += bool(story)
        if story:
            click.echo(story)
    rows = by_method(verdicts)
    show(rows, kinds)
    compared = sum(row["functions"] for row in rows.values())
    files = len({verdict.seed for verdict in verdicts})
    click.echo(
        f"{perf_counter() - start:.0f} s: {compared:,} functions in {files:,} files, {len(verdicts):,} verdicts, "
        f"{wrong} files with a difference"
    )
    if record:
        record.write_text(json.dumps({"layouts": rows, "kinds": dict(kinds), "failed": wrong}, indent=2) + "\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
