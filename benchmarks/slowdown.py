"""What little RAM costs: bytes and instructions of plain plans, of whole layers and of the least RAM, counted.

    python benchmarks/slowdown.py [MODEL ...] [--target cortex-m4] [--json FILE] [--most 1.10]

Each plan is compiled and run on the virtual board. By default the networks for microcontrollers in
$EDGEWRIGHT_CORPUS/models, and bundled ones in any case. Ends with status 1 when a plan of whole layers takes more than
so many times the instructions of the plain one, or the least RAM more than so many times those of whole layers.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import edgewright
from edgewright import samples
from edgewright.emit import TARGETS, Options, emit
from edgewright.emit.firmware import measure
from edgewright.errors import EdgewrightError
from edgewright.fusion.request import PlanRequest, make_plan
from edgewright.fusion.timing import Timing
from edgewright.kernels.select import close_plan
from edgewright.network import Network, random_inputs

CORES = ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m0plus", "rv32imc")
CORPUS = (
    "mlperf_kws_ref_int8",
    "mlperf_ic_resnet8_int8",
    "mlperf_vww96_int8",
    "mlperf_ad01_int8",
    "tflm_micro_speech_int8",
    "tinyengine_mcunet_vww_int8",
    "st_miniresnet_1stack_64x50_int8",
    "st_mobilenet_v1_0.25_224_imagenet_int8",
    "st_mobilenet_v2_0.35_128_imagenet_int8",
    "mlperf_ic_resnet8_f32",
    "tfls_movie_review_avg_word_vec",
)
BUNDLED = (
    *("ds_cnn_int8", "resnet8_int8", "mobilenet_v1_int8", "autoencoder_int8", "minakova_example_int8"),
    *("lenet5", "ds_cnn", "tiny_inception", "tiny_mobilenet_v3", "text_classifier", "stahl_running_example"),
)
WAYS = {"plain": PlanRequest(plain=True), "whole": PlanRequest(), "least": PlanRequest(minimise_ram=True)}


@dataclass(frozen=True)
class Point:
    """One plan of a model on a target."""

    ram: int
    macs: int
    estimated: int
    instructions: int | None  # counted; None where the code does not run there
    seconds: float  # of planning


@dataclass(frozen=True)
class Row:
    model: str
    target: str
    points: dict[str, Point]

    def ratio(self, way: str, base: str) -> float | None:
        one, other = self.points[way].instructions, self.points[base].instructions
        return one / other if one and other else None

    def estimated_ratio(self, way: str, base: str) -> float:
        return self.points[way].estimated / max(1, self.points[base].estimated)


def measured(network: Network, target: str) -> Row:
    points: dict[str, Point] = {}
    counts: dict[str, int | None] = {}
    for way, request in WAYS.items():
        start = time.perf_counter()
        plan = make_plan(network, request, None, target)
        seconds = time.perf_counter() - start
        text = str((plan.program.stages, plan.buffers))
        if text not in counts:
            print(f"{network.name}: {way} on {target}, {plan.peak_bytes:,} B …", file=sys.stderr)
            library = emit(close_plan(plan, TARGETS[target]), "net")
            try:
                flag = Options().optimise_flag(TARGETS[target])
                counts[text] = measure(library, random_inputs(network, seed=1), optimise=flag).instructions
            except EdgewrightError as error:
                print(f"{network.name}: {error}", file=sys.stderr)
                counts[text] = None
        cost = round(Timing(target).of(plan))
        points[way] = Point(plan.peak_bytes, plan.macs, cost, counts[text], seconds)
    return Row(network.name, target, points)


def models(given: tuple[Path, ...], folder: Path) -> Iterator[Path]:
    root = os.environ.get("EDGEWRIGHT_CORPUS")
    if given:
        yield from given
        return
    if root:
        yield from (Path(root) / "models" / f"{name}.tflite" for name in CORPUS)
    yield from (samples.write(name, folder) for name in BUNDLED)


def table(rows: list[Row], most: float) -> Table:
    result = Table(title="RAM, and instructions as counted on the virtual board", title_justify="left")
    for heading in ("model", "target"):
        result.add_column(heading, overflow="fold")
    for heading in ("plain B", "whole B", "least B", "whole / plain", "least / whole", "estimated", "extra MACs"):
        result.add_column(heading, justify="right")
    for row in rows:
        least = row.points["least"]
        extra = least.macs / max(1, row.points["plain"].macs) - 1
        result.add_row(
            row.model,
            row.target,
            *(f"{row.points[way].ram:,}" for way in WAYS),
            _shown(row.ratio("whole", "plain"), most),
            _shown(row.ratio("least", "whole"), most),
            f"{row.estimated_ratio('least', 'whole'):.2f}",
            f"{extra:+.1%}" if extra > 0 else "none",
        )
    return result


def _shown(ratio: float | None, most: float) -> str:
    if ratio is None:
        return "–"
    return f"{ratio:.3f}" if ratio <= most else f"[red]{ratio:.3f}[/red]"


@click.command()
@click.argument("given", nargs=-1, type=click.Path(path_type=Path))
@click.option("--target", "targets", multiple=True, default=("cortex-m4", "rv32imc"), type=click.Choice(CORES))
@click.option("--most", default=1.10, help="What is no great loss.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the rows to this file.")
def main(given: tuple[Path, ...], targets: tuple[str, ...], most: float, output: Path | None) -> None:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in models(given, Path(folder)):
            network = edgewright.read_model(path)
            for target in targets:
                rows.append(measured(network, target))
                if output:  # after each, so that a long run leaves something behind
                    output.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    Console(width=150).print(table(rows, most))
    pairs = [(row, row.ratio(*pair)) for row in rows for pair in (("whole", "plain"), ("least", "whole"))]
    slow = sorted({f"{row.model} on {row.target}" for row, ratio in pairs if ratio and ratio > most})
    if slow:
        raise click.ClickException(f"more than {most:.2f} times the instructions: {', '.join(slow)}")


if __name__ == "__main__":
    main()
