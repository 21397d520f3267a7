"""The options of the verbs that take a model: `inspect`, `plan`, `compile`, `run`, `profile`, `csdf`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import (
    IN_FILE,
    KERNELS,
    TARGETS,
    executor_option,
    hardware_options,
    interface_options,
    json_option,
    model_argument,
    rename_option,
    shape_option,
)
from ..outputs import OutFile, OutFolder, Verb
from ..plan_options import planning_options


@click.command()
@model_argument
@shape_option
@click.option("--all", "everything", is_flag=True, help="Show every layer.")
@json_option
def inspect(**given: Any) -> None:
    """Show what is in MODEL (.onnx or .tflite): layers, shapes, weights, MACs, the layers that dominate memory."""
    from ..inspect import inspect

    inspect(**given)


class OutPlan(OutFile):
    """A plan file; with --pareto the name pattern, or the folder, of several."""

    def check(self, path: Path, given: dict[str, Any]) -> None:
        if not given["pareto"]:
            super().check(path, given)
            return
        from ..front import point_path

        super().check(point_path(path, 10**12), given)  # no peak has more digits


@click.command(cls=Verb)
@model_argument
@click.option("--board", help="A name from `edgewright boards`, or a board file (.toml).")
@click.option(
    "--target",
    type=click.Choice(TARGETS),
    help="The core for code size and estimated instructions.  [default: the board's]",
)
@planning_options
@click.option("--pareto", is_flag=True, help="Show all Pareto-optimal plans of RAM against extra MACs.")
@click.option("--page", type=OutFile(), help="Write a self-contained page that shows the plan.")
@click.option(
    "-o",
    "--output",
    type=OutPlan(),
    help="Write the plan, for `compile --plan`. With --pareto one file per point: plan.json becomes plan-PEAK.json.",
)
@interface_options
@shape_option
@json_option
def plan(**given: Any) -> None:
    """Plan MODEL in the least RAM: order of layers, address of every buffer, proof of optimality or the gap.

    If whole layers do not fit the board or --ram, layers run in parts, with the least extra work. Ends with status 1
    when no plan fits, and with status 130 when an interrupt ended the search: the plan is then the best one so far.
    """
    from ..plan import PlanVerbOptions, plan

    plan(PlanVerbOptions(**given))


@click.command("compile", cls=Verb)
@model_argument
@hardware_options
@planning_options
@click.option("-o", "--output", type=OutFolder(), help="The folder to write.  [default: the library's name]")
@click.option("--name", help="Name of the library and prefix of its functions.  [default: the model's]")
@rename_option
@click.option(
    "--kernels",
    type=click.Choice(KERNELS),
    default=KERNELS[0],
    show_default=True,
    help="The kernels to use; cmsis-nn is called, not included in the package.",
)
@click.option("--verify/--no-verify", default=True, show_default=True, help="Build it, run it and compare the outputs.")
@click.option(
    "--input",
    "inputs",
    type=IN_FILE,
    multiple=True,
    help="Values to verify with (.npy or .npz), besides random ones. Repeat for the next input.",
)
@click.option("--force", is_flag=True, help="Write into a folder that holds other things.")
@interface_options
@shape_option
@json_option
def compile_(**given: Any) -> None:
    """Compile MODEL to a C library: sources, weights, build files, an example and a report in one folder.

    By default the library is built, run on this machine and on the virtual board, and compared with the model's own
    runtime. If outputs differ or RAM exceeds the plan, the command ends with status 1 and writes nothing.
    """
    from ..compile import CompileOptions, compile_

    compile_(CompileOptions(**given))


@click.command(cls=Verb)
@model_argument
@hardware_options
@planning_options
@click.option(
    "--input",
    "inputs",
    type=IN_FILE,
    multiple=True,
    help="Values (.npy or .npz), in the file's layout or channels last. Repeat for the next input.  [default: random]",
)
@click.option(
    "--frames",
    type=click.IntRange(1, 10**9),
    help="Run this many frames natively on this machine: frames/s, latency, busy cores, memory.",
)
@click.option(
    "--compare", is_flag=True, help="With --frames: alternate with onnxruntime on the same number of threads."
)
@click.option("-o", "--output", type=OutFile(), help="Write the outputs (.npz), in the file's layout.")
@interface_options
@shape_option
@json_option
def run(**given: Any) -> None:
    """Compile MODEL and run it once: outputs, and on the virtual board instructions, RAM and stack.

    Code for a microcontroller runs on an emulated one; code for host runs here. With --frames it runs many times. MODEL
    may also be the folder of a pipeline that was built before.
    """
    frames, compare = given.pop("frames"), given.pop("compare")
    if frames or compare or given["model"].is_dir():
        from ..stream import stream

        stream(frames=frames, compare=compare, **given)
        return
    from ..run import RunOptions, run

    run(RunOptions(**given))


@click.command(cls=Verb)
@model_argument
@click.option(
    "--board",
    default="this",
    show_default=True,
    help="`this` measures this machine; a name from `edgewright boards`, or a board file (.toml), is estimated.",
)
@click.option("-o", "--output", type=OutFile(), help="Write the times to this file (JSON).")
@click.option("--most-lanes", type=click.IntRange(1, 1024), help="Measure up to this many lanes.  [default: all cores]")
@executor_option
@click.option(
    "--repeats",
    type=click.IntRange(1, 10_000),
    default=15,
    show_default=True,
    help="Measurements of every layer; the median is reported.",
)
@shape_option
@json_option
def profile(**given: Any) -> None:
    """Measure the time of each layer of MODEL on each kind of core, and the cost of moving a tensor.

    Measures an instrumented build on this machine. For another board, the times are estimates: lower bounds from its
    arithmetic and memory bandwidth.
    """
    from ..profile import profile

    profile(**given)


@click.command(cls=Verb)
@click.argument("source", type=IN_FILE, metavar="MODEL|GRAPH")
@click.option("--analyse", "asked", is_flag=True, help="Check liveness; find throughput and the smallest buffers.")
@click.option(
    "--pareto", "asked_front", is_flag=True, help="Show all Pareto-optimal trade-offs of buffer size and throughput."
)
@click.option("--sdf3", "sdf3_file", type=OutFile(), help="Write the graph as SDF3 XML.")
@click.option("--dot", "dot_file", type=OutFile(), help="Write the graph for Graphviz.")
@click.option("--page", type=OutFile(), help="Write a self-contained page: facts, Gantt chart, the front if asked for.")
@click.option("--gantt", type=OutFile(), help="Write the firings at minimum buffers over time as an SVG picture.")
@click.option("--plot", type=OutFile(), help="Write the front of --pareto as an SVG picture.")
@click.option(
    "--iterations", type=click.IntRange(1, 1000), default=1, show_default=True, help="Iterations in the Gantt chart."
)
@click.option(
    "--bytes/--tokens",
    "in_bytes",
    default=None,
    help="Minimise buffer sizes in bytes or in tokens.  [default: bytes for models, else tokens]",
)
@click.option(
    "--limit",
    type=click.FloatRange(0, 86400),
    metavar="SECONDS",
    help="Approximate time for searches.  [default: 60; 5 for the period at the smallest buffers]",
)
@click.option("--sdf", is_flag=True, help="For models: one phase per layer (Algorithm 1 of the paper).")
@click.option("--rule", type=click.Choice(["M", "B"]), help="For models: one phase per row, or folded.  [default: M]")
@click.option("--elements", is_flag=True, help="For models: tokens are elements, as in the papers, not rows.")
@click.option(
    "--self-loops", is_flag=True, help="For models: rows that are read again go through self-loops, as in the paper."
)
@click.option(
    "--mapping", type=IN_FILE, help="For models: the processor of each layer (JSON or TOML); an actor for each."
)
@click.option("--times", type=IN_FILE, help="For models: the time of each layer (JSON or TOML).  [default: its MACs]")
@shape_option
@json_option
def csdf(**given: Any) -> None:
    """Analyse a dataflow graph, of a model (.onnx, .tflite) or from a file (SDF3 XML, JSON): actors, phases, rates.

    Ends with status 1 when the rates are inconsistent or the graph deadlocks.
    """
    from ..csdf import CsdfOptions, csdf

    csdf(CsdfOptions(**given))
