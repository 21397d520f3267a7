"""Options that several verbs share, their parameter types and allowed values.

Allowed values are repeated here, so that `--help` need not load the modules that define them; a test compares the two.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

import click

from ..errors import EdgewrightError, InputError
from ..files import MODEL_ADVICE

IN_FILE = click.Path(path_type=Path)
STRATEGIES = ("hybrid", "data", "ffmt", "sequential", "horizontal", "vertical", "deepthings", "switch")


class ModelPath(click.Path):
    """The path of a model; a missing file is reported before anything that reads models is loaded."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not os.path.lexists(path):
            raise InputError(f"there is no file '{path}'; {MODEL_ADVICE}")
        return path


model_argument = click.argument("model", type=ModelPath())
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
executor_option = click.option(
    "--executor",
    "executors",
    multiple=True,
    type=click.Choice(["native", "onnxruntime", "torch"]),
    help="Measure this executor: compiled C code, onnxruntime on CPUs, torch on a GPU. May be given again.  "
    "[default: native]",
)


def _load_operators(_context: click.Context, _option: click.Parameter, files: tuple[Path, ...]) -> None:
    for file in files:
        import_module("..network.operators.custom", __package__).load_operators(file)


operators_option = click.option(
    "--operators",
    multiple=True,
    type=IN_FILE,
    metavar="MINE.PY",
    expose_value=False,
    is_eager=True,
    help="Define the model's custom operators, in Python with C code beside it. May be given again.",
    callback=_load_operators,
)
_shape_option = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1,224,224,3",
    help="Shape of an input that the file leaves open, in the file's own layout. May be given again.",
    callback=lambda _ctx, _param, values: dict(_parse_shape(value) for value in values),
)


def shape_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every verb that reads a model: open sizes and custom operators."""
    return _shape_option(operators_option(command))


class ParsedValue(click.ParamType[Any]):
    """A value that is parsed by a function of another room, which is loaded only when needed. Its errors are usage
    errors."""

    def __init__(self, name: str, module: str, function: str) -> None:
        self.name, self.module, self.function = name, module, function

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return getattr(import_module(self.module, __package__), self.function)(value)
        except EdgewrightError as error:
            self.fail(str(error), param, ctx)


class PositiveNumber(click.FloatRange):
    """A finite number above 0."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


BYTE_SIZE = ParsedValue("size", "..platform.units", "parse_size")  # 65536, 64K, "128 KiB"
DURATION = ParsedValue("time", "..platform.units", "parse_time")  # 0.04, 40ms
TILE = ParsedValue("tile", "..fusion.by_hand", "parse_tile")  # conv1..conv3:rows=4

SHARE = ParsedValue("attributes", "..adaptive.description", "parse_share")  # I,O,par


def _parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, dims = text.rpartition("=")
    try:
        shape = tuple(int(d) for d in dims.split(","))
    except ValueError:
        shape = ()
    if not name or not shape or min(shape) < 1:
        raise click.BadParameter(f"'{text}' is not of the form NAME=1,224,224,3")
    return name, shape


rename_option = click.option(
    "--rename",
    "renames",
    multiple=True,
    metavar="OLD=NEW",
    help="Rename an input or output in C; OLD is its name in the file, or input:0. Repeatable.",
    callback=lambda _ctx, _param, values: dict(_parse_rename(value) for value in values),
)


def _parse_rename(text: str) -> tuple[str, str]:
    old, _, new = text.rpartition("=")
    if not old or not new:
        raise click.BadParameter(f"'{text}' is not of the form OLD=NEW, such as output:0=scores")
    return old, new


def _no_front(_context: click.Context, _option: click.Parameter, given: bool) -> None:
    if given:
        raise click.UsageError(
            "--pareto makes many plans: `edgewright plan MODEL --pareto` writes each to a file, "
            "--plan uses one of them."
        )


def hardware_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `compile` and `run` about the code."""
    for option in (
        click.option(
            "--fixed-point/--float-scales",
            default=None,
            help="Compute ONNX scales as integers or as float32.  [default: integers without an FPU]",
        ),
        click.option(
            "--rounding",
            type=click.Choice(ROUNDINGS),
            default=ROUNDINGS[0],
            show_default=True,
            help="Rounding of int8 TFLite layers: as LiteRT's reference kernels or TFLite Micro do it.",
        ),
        click.option(
            "--optimise",
            type=click.Choice(OPTIMISE),
            help="What the C compiler optimises for.  [default: size on microcontrollers, else speed]",
        ),
        click.option("--pareto", is_flag=True, hidden=True, expose_value=False, callback=_no_front),
        click.option("--plan", "plan_file", type=IN_FILE, help="Use this plan instead of making one."),
        click.option(
            "--target", type=click.Choice(TARGETS), help="The core to compile for.  [default: the board's, or host]"
        ),
        click.option("--board", help="A name from `edgewright boards`, or a board file (.toml)."),
    ):
        command = option(command)
    return command


TARGETS = (
    "host",
    "portable",
    "cortex-m0plus",
    "cortex-m4",
    "cortex-m7",
    "cortex-m33",
    "cortex-m55",
    "rv32imc",
    "rv32gc",
    "aarch64",
)
KERNELS = ("edgewright", "cmsis-nn")
ROUNDINGS = ("reference", "tflm")
OPTIMISE = ("size", "speed")
METHODS = ("joint", "paper")
SWITCH_POLICIES = ("finish", "overlap", "overtake", "abort")
SELECTION_METHODS = ("dominance", "min-max")
APPLICATION_METHODS = ("joint", "paper", "exact")


def interface_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that leave conversions at the model's ends to the caller."""
    for option in (
        click.option(
            "--quantised-output",
            is_flag=True,
            help="Return outputs as integers, without the dequantisation at the model's end.",
        ),
        click.option(
            "--quantised-input",
            is_flag=True,
            help="Take inputs as integers, without the quantisation at the model's beginning.",
        ),
    ):
        command = option(command)
    return command
