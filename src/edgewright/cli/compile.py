"""`edgewright compile`: the model as a C library that has been built, run and compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from ..compiling import make_library, package, plain_plan
from ..emit import TARGETS, Kernels, Optimise, Options, Rounding
from ..emit.inputs import load_inputs
from ..emit.packaging import check_folder
from ..emit.verify import predicted
from ..emit.verify import verify as run_and_compare
from ..network import Shape
from .common import console, json_option, model_argument, print_json, read_model, shape_option, working
from .costs import costs_table, figures_table, sentence
from .interface_options import interface_options
from .planning import Asked, planning_options

_KERNELS = [kernels.value for kernels in Kernels]
_ROUNDINGS = [rounding.value for rounding in Rounding]


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
            type=click.Choice(_ROUNDINGS),
            default=_ROUNDINGS[0],
            show_default=True,
            help="Whose rounding int8 TFLite layers follow: LiteRT's reference kernels or TFLite Micro.",
        ),
        click.option(
            "--optimise",
            type=click.Choice([optimise.value for optimise in Optimise]),
            help="What the C compiler is asked for.  [default: size on microcontrollers, else speed]",
        ),
        click.option("--pareto", is_flag=True, hidden=True, expose_value=False, callback=_no_front),
        click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="Carry out a plan made before."),
        click.option(
            "--target",
            type=click.Choice(list(TARGETS)),
            help="What to compile for.  [default: the board's, or host]",
        ),
        click.option("--board", help="A name from `edgewright boards`, or a board file (.toml)."),
    ):
        command = option(command)
    return command


@click.command("compile")
@model_argument
@hardware_options
@planning_options
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The folder to write.  [default: the library's name]"
)
@click.option("--name", help="Of the library: prefix of its files and functions.  [default: the model's]")
@click.option(
    "--kernels",
    type=click.Choice(_KERNELS),
    default=_KERNELS[0],
    show_default=True,
    help="Whose kernels; those of cmsis-nn are called, not included.",
)
@click.option(
    "--verify/--no-verify", default=True, show_default=True, help="Build it, run it and compare the outputs."
)
@click.option(
    "--input",
    "inputs",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Values to verify with (.npy or .npz), besides random ones. Again for the next input.",
)
@click.option("--force", is_flag=True, help="Write into a folder that holds other things.")
@interface_options
@shape_option
@json_option
def compile_(
    model: Path,
    board: str | None,
    target: str | None,
    plan_file: Path | None,
    rounding: str,
    fixed_point: bool | None,
    optimise: str | None,
    asked: Asked,
    output: Path | None,
    name: str | None,
    kernels: str,
    verify: bool,
    inputs: tuple[Path, ...],
    force: bool,
    quantised_input: bool,
    quantised_output: bool,
    shapes: dict[str, Shape],
    as_json: bool,
) -> None:
    """MODEL as a C library: sources, weights, build files, an example and a report in one folder.

    Unless told otherwise the library is built, run on this machine and on the virtual board, and compared with the
    model's own runtime. A difference, or RAM beyond the plan, ends with status 1 and writes nothing.
    """
    asked.check(plan=plan_file is not None, has_core=bool(board or target))
    if output is not None:
        check_folder(output, force)
    network = read_model(model, shapes, quantised_input, quantised_output)
    given = load_inputs(network, inputs) if inputs else []
    wanted = Optimise(optimise) if optimise else None
    options = Options(Rounding(rounding), fixed_point, Kernels(kernels), wanted)
    wish = asked.wish(network)
    with working(f"compiling {network.name}"):
        library, hardware = make_library(network, board, target, plan_file, name, options, wish)
    folder = output or Path(library.name)
    check_folder(folder, force)
    with working(f"verifying {network.name}"):
        figures = (
            run_and_compare(library, model, given, board=hardware) if verify else predicted(library, hardware)
        )
    before = plain_plan(library.plan, network, hardware)
    package(library, figures, hardware, asked.ram, before).write(folder, force)
    if as_json:
        print_json({**figures.to_dict(), "output": str(folder)})
        return
    console.print(costs_table(figures))
    console.print(figures_table(figures))
    for note in (*figures.notes, *network.notes):
        console.print(f"note: {escape(note)}", style="dim")
    console.print(f"wrote {folder}", style="dim", soft_wrap=True)
    console.print(
        escape(sentence(figures)),
        style="green" if figures.verified and not figures.missing else "yellow",
        soft_wrap=True,
    )
