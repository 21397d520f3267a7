"""The options of `edgewright run`."""

from __future__ import annotations

from typing import Any

import click

from ..options import IN_FILE, hardware_options, interface_options, json_option, model_argument, shape_option
from ..outputs import OutFile, Verb
from ..plan_options import planning_options


@click.command(cls=Verb)
@model_argument
@hardware_options
@planning_options
@click.option(
    "--input",
    "inputs",
    type=IN_FILE,
    multiple=True,
    help="Values (.npy or .npz), in the file's layout or channels last. Again for the next input.  [default: random]",
)
@click.option(
    "--frames",
    type=click.IntRange(1, 10**9),
    help="Run so many frames on this machine, natively: frames/s, latency, cores busy, memory.",
)
@click.option(
    "--compare", is_flag=True, help="With --frames: in turns with onnxruntime, on the same number of threads."
)
@click.option("-o", "--output", type=OutFile(), help="Write the outputs (.npz), in the file's layout.")
@interface_options
@shape_option
@json_option
def command(**given: Any) -> None:
    """Compiles MODEL and runs it once: outputs, and on the virtual board instructions, RAM and stack.

    Code for a microcontroller runs on an emulated one; code for host runs here. With --frames it is run many times, and
    so is a pipeline that was built before, whose folder takes the place of MODEL.
    """
    frames, compare = given.pop("frames"), given.pop("compare")
    if frames or compare or given["model"].is_dir():
        from ..stream import stream

        stream(frames=frames, compare=compare, **given)
        return
    from ..run import run

    run(**given)
