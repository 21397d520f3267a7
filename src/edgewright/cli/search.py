"""`edgewright search`: searches networks for a board, by evolution or with an optuna sampler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from .. import text
from ..files import write_atomic
from ..report.search_page import search_page
from ..search.candidates import architectures
from ..search.outcome import SearchOutcome, run_search
from ..search.searching import Progress, SearchProgress
from ..search.workers import DaskWorkers, LocalWorkers, Workers
from .common import console, print_json, print_notes, print_written, status_console, table, working


def search(
    task: Path,
    is_resumed: bool,
    seed: int | None,
    workers: int | None,
    scheduler: str | None,
    is_checked: bool,
    page: Path | None,
    output: Path,
    as_json: bool,
) -> None:
    if workers and scheduler:
        raise click.UsageError("--workers are of this machine, --on names those of a cluster: give one of them.")
    if output.suffix != ".json":
        raise click.UsageError(f"-o is a file that ends in .json, such as {output.name}/front.json.")
    who: Workers = DaskWorkers(scheduler) if scheduler else LocalWorkers(workers)
    try:
        with _bar() as progress:
            outcome = run_search(
                task,
                output,
                seed=seed,
                is_resumed=is_resumed,
                workers=who,
                is_checked=is_checked,
                progress=progress,
            )
    finally:
        who.close()
    if page:
        with working("drawing the page"):
            write_atomic(page, search_page(outcome, _command(task, seed, output), outcome.plans()))
    if as_json:
        print_json(outcome.to_dict())
        return
    console.print(_front_table(outcome))
    print_notes(outcome.notes)
    print_written([output, page])


def _command(task: Path, seed: int | None, output: Path) -> str:
    """The command that repeats the search."""
    return f"edgewright search {task}" + (f" --seed {seed}" if seed is not None else "") + f" -o {output}"


@contextmanager
def _bar() -> Iterator[Progress]:
    """A progress bar of the budget on a terminal; nothing elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    bar = Bar(*columns, TimeElapsedColumn(), console=status_console, transient=True)
    bar.disable = not status_console.is_terminal
    with bar:
        line = bar.add_task("reading the data", total=None)

        def show(now: SearchProgress) -> None:
            told = f"generation {now.generation}, best {now.best:.3f}, {now.refused} refused"
            bar.update(line, description=told, completed=now.trained, total=now.wanted)

        yield show


def _front_table(outcome: SearchOutcome) -> Table:
    front = outcome.front
    trained = [one for one in outcome.candidates if one.is_trained]
    title = (
        f"{text.plural(len(front.points), 'point')} of {len(architectures(trained))} architectures "
        f"({len(trained)} slices of training); {sum(bool(one.refusal) for one in outcome.candidates)} more did not fit"
    )
    has_energy = any(point.energy_j is not None for point in front.points)
    held_out = any(point.held_out_macro_f1 is not None for point in front.points)
    headings = ["point", ">accuracy", ">macro F1", *([">F1, held out"] if held_out else []), ">RAM, B", ">flash, B"]
    made = table(
        title,
        *headings,
        ">instructions",
        f">time, {outcome.pricer.time_words}",
        *([">energy, mJ"] if has_energy else []),
    )
    for point in front.points:
        row = [point.name, f"{100 * point.accuracy:.1f} %", f"{100 * point.macro_f1:.1f} %"]
        if held_out:
            row.append(f"{100 * (point.held_out_macro_f1 or 0):.1f} %")
        row += [text.count(point.ram_bytes), text.count(point.flash_bytes)]
        row += [text.count(point.measured_instructions or point.instructions), text.duration(point.latency_s)]
        if has_energy:
            row.append(text.three_digits(1e3 * (point.energy_j or 0)))
        made.add_row(*row)
    return made
