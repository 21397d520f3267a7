"""Options that several verbs share, and the types of what is given to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..errors import EdgewrightError
from .choices import OPTIMISE, ROUNDINGS, TARGETS

IN_FILE = click.Path(path_type=Path)

model_argument = click.argument("model", type=IN_FILE)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
executor_option = click.option(
    "--executor",
    "executors",
    multiple=True,
    type=click.Choice(["native", "onnxruntime", "torch"]),
    help="Measure this executor: our own code, onnxruntime on cores, torch on a GPU. May be given again.  "
    "[default: native]",
)
shape_option = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1,224,224,3",
    help="Shape of an input that the file leaves open, in the file's own layout. May be given again.",
    callback=lambda _ctx, _param, values: dict(_parse_shape(value) for value in values),
)


class ByteSize(click.ParamType[int]):
    """A size in bytes, such as 65536, 64K, "128 KiB"."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from ..platform.units import parse_size

        try:
            return parse_size(value)
        except EdgewrightError as error:
            self.fail(str(error), param, ctx)


def _parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, dims = text.rpartition("=")
    try:
        shape = tuple(int(d) for d in dims.split(","))
    except ValueError:
        shape = ()
    if not name or not shape or min(shape) < 1:
        raise click.BadParameter(f"'{text}' is not of the form NAME=1,224,224,3")
    return name, shape


def _no_front(_context: click.Context, _option: click.Parameter, given: bool) -> None:
    if given:
        raise click.UsageError(
            "--pareto makes many plans: `edgewright plan MODEL --pareto` writes each to a file, --plan carries one out."
        )


def hardware_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What `compile` and `run` both ask about the code."""
    for option in (
        click.option(
            "--fixed-point/--float-scales",
            default=None,
            help="ONNX scales as integers or as float32.  [default: integers where there is no FPU]",
        ),
        click.option(
            "--rounding",
            type=click.Choice(ROUNDINGS),
            default=ROUNDINGS[0],
            show_default=True,
            help="Whose rounding int8 TFLite layers follow: LiteRT's reference kernels or TFLite Micro.",
        ),
        click.option(
            "--optimise",
            type=click.Choice(OPTIMISE),
            help="What the C compiler is asked for.  [default: size on microcontrollers, else speed]",
        ),
        click.option("--pareto", is_flag=True, hidden=True, expose_value=False, callback=_no_front),
        click.option("--plan", "plan_file", type=IN_FILE, help="Carry out a plan made before."),
        click.option(
            "--target", type=click.Choice(TARGETS), help="What to compile for.  [default: the board's, or host]"
        ),
        click.option("--board", help="A name from `edgewright boards`, or a board file (.toml)."),
    ):
        command = option(command)
    return command
