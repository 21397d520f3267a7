"""The options of `edgewright compile`."""

from __future__ import annotations

from typing import Any

import click

from ..options import (
    IN_FILE,
    KERNELS,
    hardware_options,
    interface_options,
    json_option,
    model_argument,
    shape_option,
)
from ..outputs import OutFolder, Verb
from ..plan_options import planning_options


@click.command("compile", cls=Verb)
@model_argument
@hardware_options
@planning_options
@click.option("-o", "--output", type=OutFolder(), help="The folder to write.  [default: the library's name]")
@click.option("--name", help="Of the library: prefix of its files and functions.  [default: the model's]")
@click.option(
    "--kernels",
    type=click.Choice(KERNELS),
    default=KERNELS[0],
    show_default=True,
    help="Whose kernels; those of cmsis-nn are called, not included.",
)
@click.option(
    "--verify/--no-verify", default=True, show_default=True, help="Build it, run it and compare the outputs."
)
@click.option(
    "--input",
    "inputs",
    type=IN_FILE,
    multiple=True,
    help="Values to verify with (.npy or .npz), besides random ones. Again for the next input.",
)
@click.option("--force", is_flag=True, help="Write into a folder that holds other things.")
@interface_options
@shape_option
@json_option
def command(**given: Any) -> None:
    """MODEL as a C library: sources, weights, build files, an example and a report in one folder.

    Unless told otherwise the library is built, run on this machine and on the virtual board, and compared with the
    model's own runtime. A difference, or RAM beyond the plan, ends with status 1 and writes nothing.
    """
    from ..compile import compile_

    compile_(**given)
