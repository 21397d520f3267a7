"""The cost model: fitted to instruction counts of the virtual board, and compared with those of real networks.

    python benchmarks/cost_model.py [MODEL ...] [--target cortex-m4] [--zig] [--refit] [--json FILE] [--stages]

With --refit, networks that are built in code (`cost_networks`) are emitted, whole and in parts, built by GCC or with
--zig by Zig, and run on the virtual board; the coefficients go to src/edgewright/kernels/cost/coefficients. MODELs, to
which nothing is fitted, tell how it holds: by default those of $EDGEWRIGHT_CORPUS/models that microcontrollers run, or
bundled ones.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

import cost_fit
import edgewright
from cost_fit import Sample
from cost_networks import FORMATS, networks, parts, rows_alone
from cost_samples import sample_stages
from edgewright import samples
from edgewright.board.machine import machine_for
from edgewright.board.toolchain import toolchain
from edgewright.emit import TARGETS, Options, emit
from edgewright.emit.firmware import Emulator
from edgewright.emit.firmware.glue import Probes
from edgewright.emit.firmware.image import STACK, build_firmware
from edgewright.emit.firmware.measured import packed, run_firmware
from edgewright.kernels.cost.estimate import estimate
from edgewright.kernels.cost.model import GCC, ZIG
from edgewright.network import Network, random_inputs
from edgewright.platform.target import Target
from edgewright.program import Plan

CORES = ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m0plus", "rv32imc")
CORPUS = (
    "mlperf_ad01_int8.tflite",
    "mlperf_kws_ref_int8.tflite",
    "tflm_micro_speech_int8.tflite",
    "tfls_movie_review_avg_word_vec.tflite",
    "mlperf_ic_resnet8_int8.tflite",
    "mlperf_vww96_int8.tflite",
    "tinyengine_mcunet_vww_int8.tflite",
    "st_mobilenet_v1_0.25_224_imagenet_int8.tflite",
    "st_mobilenet_v2_0.35_128_imagenet_int8.tflite",
    "st_miniresnet_1stack_64x50_int8.tflite",
    "mlperf_ic_resnet8_f32.tflite",
    *("lenet5.onnx", "ort_mnist_cntk.onnx"),
)
BUNDLED = ("mobilenet_v1_int8", "resnet8_int8", "ds_cnn_int8", "ds_cnn")
FOLDER = Path(__file__).parents[1] / "src" / "edgewright" / "kernels" / "cost" / "coefficients"


def counted(plan: Plan, target: Target, zig: bool) -> list[int]:
    """The instructions of each stage, from one run on the virtual board."""
    library = emit(plan, target, name="net")
    machine, tools = machine_for(target), toolchain(target, zig)
    flag = Options().optimise_flag(target)
    with tempfile.TemporaryDirectory() as folder:
        firmware = build_firmware(
            library, machine, tools, Path(folder), optimise=flag, probes=Probes.STAMPS, stack=4 * STACK
        )
        inputs = packed(plan.network, random_inputs(plan.network, seed=1))
        return [*run_firmware(library, firmware, machine, Emulator.QEMU, inputs, 120.0).stages]


def plans(network: Network, everything: bool) -> Iterator[tuple[str, Plan]]:
    """The network whole and by rows; with `everything` also in parts of all kinds, and without sharing memory."""
    yield "whole", edgewright.plan(network, explain=False)
    yield "rows", edgewright.plan(network, explain=False, phases=True)
    if everything:
        yield "apart", edgewright.plan(network, explain=False, plain=True)
        single = rows_alone(network)
        if single:
            yield "alone", edgewright.plan(network, explain=False, schedules=single)
        for turn in range(3):
            found = parts(network, turn)
            if found:
                yield f"parts {turn}", edgewright.plan(network, explain=False, schedules=found)


def training(target: Target, zig: bool, count: int, console: Console) -> list[Sample]:
    """Stages of networks built in code, with their counts."""
    found = []
    for form in FORMATS:
        for network in track([*networks(form, count)], f"{target.name} {form}", console=console):
            for way, plan in plans(network, everything=True):
                found += sample_stages(plan, target, counted(plan, target, zig), f"{network.name} {way}")
    return found


def write(target: Target, zig: bool, found: Sequence[Sample]) -> None:
    """Fits, and writes the coefficients of a target."""
    coefficients = cost_fit.fit(found)
    how = f"{toolchain(target, zig).name} {Options().optimise_flag(target)}"
    plans = len({sample.plan for sample in found})
    data = {
        "target": target.name,
        "source": f"{len(found)} stages of {plans} plans on the virtual board ({machine_for(target).name}, {how})",
        "error": {key: _round(value) for key, value in asdict(cost_fit.errors(coefficients, found)).items()},
        "instructions": {
            kind: {key: _round(value) for key, value in sorted(values.items())}
            for kind, values in sorted(coefficients.items())
        },
    }
    folder = FOLDER / (ZIG if zig else GCC)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{target.name}.json").write_text(json.dumps(data, indent=1) + "\n")


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def validate(path: Path, target: Target, zig: bool) -> Iterator[dict[str, Any]]:
    """A network that nothing was fitted to, whole and by rows."""
    network = edgewright.read_model(path)
    for way, plan in plans(network, everything=False):
        guess, counts = estimate(plan, target, zig=zig), counted(plan, target, zig)
        rows = [
            {
                "stage": stage.name,
                "operator": type(network.by_name[stage.layers[-1]].op).__name__
                if stage.layers[-1] in network.by_name
                else "copy",
                "layers": len(stage.layers),
                "estimated": e,
                "counted": n,
            }
            for stage, e, n in zip(plan.program.stages, guess.stages, counts, strict=True)
        ]
        off = [abs(r["estimated"] / r["counted"] - 1) for r in rows if r["counted"]]
        yield {
            "model": path.stem,
            "target": target.name,
            "compiler": guess.compiler,
            "way": way,
            "estimated": guess.instructions,
            "counted": sum(counts),
            "error": guess.instructions / sum(counts) - 1,
            "median_stage": statistics.median(off),
            "worst_stage": max(off),
            "guessed": list(guess.guessed),
            "stages": rows,
        }


def table(rows: list[dict[str, Any]]) -> Table:
    result = Table(title="Instructions: estimated and counted on the virtual board", title_justify="left")
    for heading in ("model", "target", "compiler", "plan"):
        result.add_column(heading)
    for heading in ("estimated", "counted", "off by", "median stage", "worst stage", "never measured"):
        result.add_column(heading, justify="right")
    for row in rows:
        counts = (f"{row['estimated']:,}", f"{row['counted']:,}", f"{row['error']:+.1%}")
        stages = (f"{row['median_stage']:.1%}", f"{row['worst_stage']:.0%}", str(len(row["guessed"]) or ""))
        result.add_row(row["model"], row["target"], row["compiler"], row["way"], *counts, *stages)
    return result


def stage_table(row: dict[str, Any]) -> Table:
    title = f"{row['model']} on {row['target']} with {row['compiler']}, {row['way']}"
    result = Table(title=title, title_justify="left")
    for heading in ("stage", "operator", "layers", "estimated", "counted", "off by"):
        result.add_column(heading, justify="left" if heading in ("stage", "operator") else "right")
    for r in row["stages"]:
        numbers = (str(r["layers"]), f"{r['estimated']:,}", f"{r['counted']:,}")
        result.add_row(r["stage"][-45:], r["operator"], *numbers, f"{r['estimated'] / max(1, r['counted']) - 1:+.1%}")
    return result


def models(given: tuple[Path, ...], folder: Path) -> list[Path]:
    root = os.environ.get("EDGEWRIGHT_CORPUS")
    if given or not root:
        return [*given] or [samples.write(name, folder) for name in BUNDLED]
    return [Path(root) / "models" / name for name in CORPUS]


@click.command()
@click.argument("given", nargs=-1, type=click.Path(path_type=Path))
@click.option("--target", "targets", multiple=True, default=("cortex-m4", "rv32imc"), type=click.Choice(CORES))
@click.option("--zig", is_flag=True, help="Built by Zig, not by GCC.")
@click.option("--refit", "is_refit", is_flag=True, help="Measure and fit anew.")
@click.option("--count", default=1, help="Networks of each shape and format to fit to.")
@click.option("--stages", is_flag=True, help="Also a table of every stage.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the rows to this file.")
def main(
    given: tuple[Path, ...],
    targets: tuple[str, ...],
    zig: bool,
    is_refit: bool,
    count: int,
    stages: bool,
    output: Path | None,
) -> None:
    console = Console(width=150)
    if is_refit:
        for name in targets:
            write(TARGETS[name], zig, training(TARGETS[name], zig, count, console))
    with tempfile.TemporaryDirectory() as folder:
        chosen = models(given, Path(folder))
        rows = [row for path in chosen for name in targets for row in validate(path, TARGETS[name], zig)]
    console.print(table(rows))
    if stages:
        for row in rows:
            console.print(stage_table(row))
    if output:
        output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
