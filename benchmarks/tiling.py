"""Fused tiling and the joint search, as in S table 4.1: untiled, FFMT only, FDT only, joint; bars and competitors.

    python benchmarks/tiling.py [models ...] [--quick] [--json FILE]

Without arguments: networks for microcontrollers and six large ones from $EDGEWRIGHT_CORPUS/models, or bundled samples
when that is unset. FFMT and FDT alone are found by the paper's own method (S 4.3), the joint search mixes them with
whole layers, rows and overlap, at so many extra MACs at most; its plans for microcontrollers are compiled, run on a
virtual Cortex-M4 and compared with the reference, and those of large networks on this machine. TiGrIS is measured in
the same run, in a virtual environment of its own; other figures are as published.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

import edgewright
from competitor import provide_tigris
from edgewright import samples
from host import with_weights
from tiling_bars import QUANTISED, published
from tiling_measures import Case, Row, measure_large, measure_small, untiled
from tiling_tables import (
    bars_table,
    competitors_table,
    instructions_ratio,
    large_bars,
    large_table,
    paper_table,
    savings_table,
    small_bars,
)

SMALL = (
    *("mlperf_kws_ref_int8", "mlperf_ic_resnet8_int8", "mlperf_vww96_int8", "mlperf_ad01_int8"),
    *("tinyengine_mcunet_vww_int8", "tinyengine_mcunet_vww_int8" + QUANTISED),
    *("st_mobilenet_v2_0.35_128_imagenet_int8", "st_mobilenet_v1_0.25_224_imagenet_int8"),
    *("st_miniresnet_1stack_64x50_int8", "tflm_micro_speech_int8", "tfls_movie_review_avg_word_vec"),
    *("mlperf_ic_resnet8_f32", "lenet5", "ort_mnist_cntk"),
)
LARGE = (
    *("coral_posenet_mnv1_075_353_481_16_quant_trunk", "ultraface_slim_320_simplified"),
    *("mobilenet_v2", "squeezenet1_1", "tiny_yolov2", "resnet18"),
)
QUICK = ("mlperf_kws_ref_int8", "mlperf_ic_resnet8_int8", "tfls_movie_review_avg_word_vec", "squeezenet1_1")
SAMPLES = ("stahl_running_example", "ds_cnn_int8", "resnet8_int8", "mobilenet_v1_int8", "text_classifier")
LARGE_SAMPLES = ("mobilenet_v2", "squeezenet", "resnet18")
QUICK_SAMPLES = ("stahl_running_example", "ds_cnn_int8", "squeezenet")
LARGE_BYTES = 1_000_000  # untiled, from where a network given by hand counts as large


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true", help="a few models only")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument(
        "--tigris", type=Path, default=Path("out/tigris"), help="where TiGrIS is installed if it is missing"
    )
    arguments = parser.parse_args()
    obstacle = provide_tigris(arguments.tigris)
    small: list[Row] = []
    large: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, is_large in find(arguments.models, arguments.quick, folder):
            filled = Case(with_weights(case.path, folder), case.is_quantised)
            measure, rows = (measure_large, large) if is_large else (measure_small, small)
            rows.append(measure(filled, not obstacle))
            if arguments.json:  # after each model, so that a long run leaves something behind
                arguments.json.write_text(json.dumps(as_json(small, large, obstacle), indent=1) + "\n")
    show(small, large, obstacle)


def find(given: Sequence[Path], is_quick: bool, folder: Path) -> list[tuple[Case, bool]]:
    """The models, and whether each counts as large."""
    corpus = os.environ.get("EDGEWRIGHT_CORPUS")
    if given:
        return [(Case(path), _is_large(path)) for path in given]
    if not corpus:
        wanted = [name for name in (*SAMPLES, *LARGE_SAMPLES) if not is_quick or name in QUICK_SAMPLES]
        return [(Case(samples.write(name, folder)), name in LARGE_SAMPLES) for name in wanted]
    names = [name for name in (*SMALL, *LARGE) if not is_quick or name in QUICK]
    return [(_in_corpus(Path(corpus) / "models", name), name in LARGE) for name in names]


def _is_large(path: Path) -> bool:
    return untiled(edgewright.read_model(path)).peak_bytes >= LARGE_BYTES


def _in_corpus(folder: Path, name: str) -> Case:
    stem = name.removesuffix(QUANTISED)
    file = next(folder / f"{stem}{end}" for end in (".tflite", ".onnx") if (folder / f"{stem}{end}").exists())
    return Case(file, name != stem)


def show(small: Sequence[Row], large: Sequence[Row], obstacle: str) -> None:
    console = Console(width=180)
    if small:
        for table in (
            savings_table(small),
            bars_table(small),
            competitors_table(small, obstacle),
            paper_table(small),
        ):
            console.print(table)
    if large:
        console.print(large_table(large))


def as_json(small: Sequence[Row], large: Sequence[Row], obstacle: str) -> dict[str, Any]:
    """All figures, each with its bar and whether it is met."""
    return {
        "tigris": obstacle or "measured",
        "small": [{**asdict(row), "published": published(row.model), "bars": _small_bars(row)} for row in small],
        "large": [{**asdict(row), "bars": _large_bars(row)} for row in large],
    }


def _small_bars(row: Row) -> dict[str, Any]:
    ways = [way for way in row.points if way.startswith("joint")]
    return {
        way: {name: {**asdict(bar), "met": bar.is_met} for name, bar in small_bars(row, way).items()}
        | {"instructions_ratio": instructions_ratio(row, way)}
        for way in ways
    }


def _large_bars(row: Row) -> dict[str, Any]:
    ways = [way for way in row.points if way != "untiled"]
    return {
        way: {name: {**asdict(bar), "met": bar.is_met} for name, bar in large_bars(row, way).items()} for way in ways
    }


if __name__ == "__main__":
    main()
