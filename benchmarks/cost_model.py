"""The cost model: fitted to instruction counts of the virtual board, and compared with those of real networks.

    python benchmarks/cost_model.py [MODEL ...] [--target cortex-m4] [--zig] [--json FILE] [--stages]
    python benchmarks/cost_model.py --refit [--target cortex-m4] [--samples FOLDER] [--jobs 2]

MODELs, to which nothing is fitted, tell how it holds: by default those of $EDGEWRIGHT_CORPUS/models that
microcontrollers run, or bundled ones. With --refit, networks that are built in code (`cost_samples`) are emitted, built
by GCC and by Zig, and run on the virtual board; all coefficients of the targets, by default of all that have some, are
fitted to their counts (src/edgewright/kernels/cost/coefficients). That takes about 35 minutes of two cores for four
targets, eight for one. --samples keeps counts by the C that was counted: a run that was interrupted goes on, and what
has not changed is not counted again; with all counts at hand, four targets take seven minutes.
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
from rich.table import Table

import cost_fit
import edgewright
from cost_fit import Sample
from cost_samples import counted, training
from edgewright import samples
from edgewright.board.machine import machine_for
from edgewright.board.toolchain import toolchain
from edgewright.emit import TARGETS, Options
from edgewright.kernels.cost.estimate import estimate
from edgewright.kernels.cost.model import GCC, ZIG, modelled
from edgewright.network import Network
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


def plans(network: Network) -> Iterator[tuple[str, Plan]]:
    """The network whole and by rows."""
    yield "whole", edgewright.plan(network, explain=False)
    yield "rows", edgewright.plan(network, explain=False, phases=True)


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
    for way, plan in plans(network):
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
@click.option("--target", "targets", multiple=True, type=click.Choice(CORES))
@click.option("--zig", is_flag=True, help="Built by Zig, not by GCC.")
@click.option("--refit", "is_refit", is_flag=True, help="Measure and fit again.")
@click.option("--samples", "known", type=click.Path(path_type=Path), help="Folder of counts that are kept.")
@click.option("--jobs", default=2, help="Networks that are counted at once.")
@click.option("--stages", is_flag=True, help="Also a table of every stage.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the rows to this file.")
def main(
    given: tuple[Path, ...],
    targets: tuple[str, ...],
    zig: bool,
    is_refit: bool,
    known: Path | None,
    jobs: int,
    stages: bool,
    output: Path | None,
) -> None:
    console = Console(width=150)
    if is_refit:
        cores = [TARGETS[name] for name in targets or modelled()]
        for (name, by_zig), found in training(cores, known, jobs, console).items():
            write(TARGETS[name], by_zig, found)
        return
    with tempfile.TemporaryDirectory() as folder:
        chosen = models(given, Path(folder))
        cores = [TARGETS[name] for name in targets or ("cortex-m4", "rv32imc")]
        rows = [row for path in chosen for target in cores for row in validate(path, target, zig)]
    console.print(table(rows))
    if stages:
        for row in rows:
            console.print(stage_table(row))
    if output:
        output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
