"""What several verbs share: options, numbers for people, a progress line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ..errors import EdgewrightError
from ..network import Network, Shape
from ..network.read import read
from ..platform import parse_size

console = Console() if Console().is_terminal else Console(width=130)  # files and pipes are not 80 columns wide
_status = Console(stderr=True)

model_argument = click.argument("model", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
shape_option = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1,224,224,3",
    help="Shape of an input that the file leaves open, in the file's own layout. May be given again.",
    callback=lambda _ctx, _param, values: dict(_parse_shape(value) for value in values),
)


class Size(click.ParamType[int]):
    """A size in bytes, such as 65536, 64K, "128 KiB"."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return parse_size(value)
        except EdgewrightError as error:
            self.fail(str(error), param, ctx)


def _parse_shape(text: str) -> tuple[str, Shape]:
    name, _, dims = text.rpartition("=")
    try:
        shape = tuple(int(d) for d in dims.split(","))
    except ValueError:
        shape = ()
    if not name or not shape or min(shape) < 1:
        raise click.BadParameter(f"'{text}' is not of the form NAME=1,224,224,3")
    return name, shape


def read_model(
    path: Path, shapes: Mapping[str, Shape], quantised_input: bool = False, quantised_output: bool = False
) -> Network:
    with working("reading the model"):
        return read(
            path,
            shapes=shapes or None,
            quantised_input=quantised_input,
            quantised_output=quantised_output,
        )


@contextmanager
def working(what: str) -> Iterator[None]:
    """A line with the elapsed time on a terminal, so that nobody wonders; nothing when output goes to a file."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=_status, transient=True, disable=not _status.is_terminal) as progress:
        progress.add_task(what)
        yield


def print_json(data: object) -> None:
    click.echo(json.dumps(data, indent=1))
