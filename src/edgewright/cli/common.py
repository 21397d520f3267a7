"""Helpers of several verbs: reading a model, a progress line, printing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Literal

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..errors import OpenSizes
from ..progress import listening
from ..text import printable
from .main import ARGUMENTS

if TYPE_CHECKING:  # many verbs do not need networks
    from ..network import Network, Shape

console = Console() if Console().is_terminal else Console(width=130)  # files and pipes have no width of their own
status_console = Console(stderr=True)
INTERRUPTED_STATUS = 130  # the shells' status of a command that was interrupted


def shown(text: object) -> str:
    """Text from a file or a model, escaped for the terminal: without markup and control characters."""
    return escape(printable(str(text)))


def read_model(
    path: Path, shapes: Mapping[str, Shape], quantised_input: bool = False, quantised_output: bool = False
) -> Network:
    from ..network.read import read

    with working("reading the model"), asking_sizes():
        return read(path, shapes=shapes or None, quantised_input=quantised_input, quantised_output=quantised_output)


@contextmanager
def asking_sizes() -> Iterator[None]:
    """When a model leaves sizes open, adds the complete command that sets them to the error."""
    try:
        yield
    except OpenSizes as error:
        context = click.get_current_context(silent=True)
        given = context.meta.get(ARGUMENTS) if context else None
        if not given:
            raise
        command = f"edgewright {' '.join(map(quote, given))} {error.options}"
        raise OpenSizes(f"{error}:\n  {command}", error.options) from error


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows a progress line with the elapsed time on a terminal; nothing when the output goes to a file."""
    with working_on(what):
        yield


@contextmanager
def working_on(what: str) -> Iterator[Callable[[str], None]]:
    """Like `working`; yields a function that changes the text of the line."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=status_console, transient=True, disable=not status_console.is_terminal) as progress:
        task = progress.add_task(shown(what))

        def hear(now: str, share: float | None) -> None:
            done = "" if share is None else f", {share:.0%}"
            progress.update(task, description=shown(f"{what}: {now}{done}"))

        with listening(hear):
            yield lambda text: progress.update(task, description=shown(text))


def table(title: str, *headings: str) -> Table:
    """An empty table. A heading that begins with > is for numbers: right-aligned and never wrapped. Without headings
    the table has no header row."""
    made = Table(title=title, title_justify="left", show_header=any(headings))
    for heading in headings:
        is_number = heading.startswith(">")
        justify: Literal["left", "right"] = "right" if is_number else "left"
        made.add_column(heading.removeprefix(">"), justify=justify, no_wrap=is_number, overflow="fold")
    return made


def facts() -> Table:
    """An empty borderless table with rows of label, value and meaning."""
    return Table.grid(padding=(0, 2))


def print_notes(notes: Iterable[object]) -> None:
    for note in notes:
        console.print(f"note: {shown(note)}", style="dim")


def print_written(paths: Iterable[Path | None]) -> None:
    """Prints which of these files were written; None stands for a file that was not requested."""
    if written := " and ".join(shown(path) for path in paths if path):
        console.print(f"wrote {written}", style="dim", soft_wrap=True)


def print_json(data: object) -> None:
    click.echo(json.dumps(data, indent=1))
