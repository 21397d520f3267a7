"""Buffers of networks that run by rows: the papers' figures, ours as private FIFOs, ours as one arena, onnxruntime.

    python benchmarks/phases.py [--repeats N] [--json FILE]

The seven networks of M table 4.3 (float32, input pulled by rows) from $EDGEWRIGHT_CORPUS/models, or bundled samples
when that is unset. "capacities" is the least sum of FIFO sizes of the CSDF graph (M 4.5, proven), "arena" the peak of
`plan --phases`: inner windows and everything else, the output whole. onnxruntime is measured in the same run, as growth
of the process during the first inference. Time is that of the emitted C by rows over that of whole layers, one thread,
in turns, CPU time, medians.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import edgewright
from edgewright import samples
from edgewright.dataflow import cnn_to_csdf, minimum_buffers
from edgewright.emit import TARGETS, emit
from edgewright.emit.native import Native, build, compiler
from edgewright.kernels.select import close_plan
from edgewright.network import Array, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare
from host import ALIGNMENT, Run, in_turns, with_weights
from memory import onnxruntime

# MB as printed in M table 4.3: TensorRT, by phases. Their loss of throughput in per cent: M table 4.2.
PAPER = {
    "resnet18": (4.8, 2.2, 12),
    "googlenet": (10.7, 3.0, 13),
    "tiny_yolov2": (14.2, 0.8, 20),
    "light_inception_v1": (10.3, 3.0, 13),
    "vgg19": (19.3, 2.3, 2),
    "densenet121": (10.9, 7.9, 21),
    "squeezenet1_1": (5.1, 1.4, 23),
}
SAMPLES = ("resnet18", "squeezenet")
CAMERA = """
#include <stdint.h>
#include <string.h>
struct image { const char *data; int64_t row_bytes; };
void pull(void *context, int32_t row, void *target);
void pull(void *context, int32_t row, void *target)
{
    const struct image *image = context;
    memcpy(target, image->data + row * image->row_bytes, (size_t)image->row_bytes);
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(path, Path(folder), arguments.repeats) for path in find(arguments.models, Path(folder))]
    Console(width=150).print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


def find(given: list[Path], folder: Path) -> list[Path]:
    corpus = os.environ.get("EDGEWRIGHT_CORPUS")
    if given:
        return given
    if corpus:
        return [Path(corpus) / "models" / f"{name}.onnx" for name in PAPER]
    return [samples.write(name, folder) for name in SAMPLES]


def measure(path: Path, folder: Path, repeats: int) -> dict[str, object]:
    print(f"{path.name} …", file=sys.stderr)
    path = with_weights(path, folder)
    network = edgewright.read_model(path)
    start = time.perf_counter()
    rows = edgewright.plan(network, explain=False, pull_rows=True, phases=True)
    planned = time.perf_counter()
    fifos = minimum_buffers(cnn_to_csdf(network), "bytes")
    sized = time.perf_counter()
    natives = [
        build(emit(close_plan(plan, TARGETS["host"], network)), folder / f"{path.stem}-{kind}")
        for kind, plan in (
            ("rows", edgewright.plan(network, explain=False, pull_rows=True, phases=True, alignment=ALIGNMENT)),
            ("whole", edgewright.plan(network, explain=False, alignment=ALIGNMENT)),
        )
    ]
    inputs = random_inputs(network)
    right = compare(network, natives[0].run(inputs), execute(network, inputs)).passes
    by_rows, whole = in_turns(*(caller(native, inputs) for native in natives), repeats)
    paper = PAPER.get(path.stem)
    return {
        "model": path.stem,
        "paper_bytes": paper and round(paper[1] * 1e6),
        "paper_loss": paper and paper[2] / 100,
        "capacities_bytes": fifos.size_bytes,
        "capacities_proven": fifos.is_optimal,
        "whole_layers_bytes": natives[1].library.plan.peak_bytes,
        "arena_bytes": rows.peak_bytes,
        "arena_bound_bytes": rows.bound_bytes,
        "macs": rows.macs,
        "macs_plain": rows.macs_plain,
        "onnxruntime_growth": onnxruntime(path, network, folder),
        "milliseconds_rows": by_rows,
        "milliseconds_whole": whole,
        "seconds_plan": round(planned - start, 2),
        "seconds_capacities": round(sized - planned, 2),
        "is_right": right,
    }


def caller(native: Native, inputs: Mapping[str, Array]) -> Run:
    """The C function with its arguments in place; rows are handed over by a callback."""
    network, plan = native.network, native.library.plan
    arenas = [np.zeros(size + 64, np.uint8) for size in native.library.arenas.values()]
    arguments: list[object] = [ctypes.c_void_p(a.ctypes.data + (-a.ctypes.data % 64)) for a in arenas]
    values = {name: np.ascontiguousarray(inputs[name]) for name in network.inputs}
    images = {name: Image(value.ctypes.data, value[:, :1].nbytes) for name, value in values.items()}
    for name, value in values.items():
        pulled = [camera().pull, ctypes.byref(images[name])]
        arguments += pulled if plan.views[name].window else [ctypes.c_void_p(value.ctypes.data)]
    outputs = [np.empty(network.tensors[n].shape, network.tensors[n].dtype.numpy) for n in network.outputs]
    arguments += [ctypes.c_void_p(output.ctypes.data) for output in outputs]
    function = ctypes.CDLL(str(native.path))[f"{native.library.name}_run_in"]
    function.restype = None

    def call(_kept_alive: object = (arenas, values, outputs, images)) -> object:
        return function(*arguments)

    return call


@cache
def camera() -> ctypes.CDLL:
    """A callback in C: one in Python would cost as much as a small layer."""
    folder = Path(tempfile.mkdtemp())
    (folder / "camera.c").write_text(CAMERA)
    compiler().run(["-O2", "-shared", "-fPIC", "-o", "camera.so", "camera.c"], folder)
    return ctypes.CDLL(str(folder / "camera.so"))


class Image(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("row_bytes", ctypes.c_int64))


def table(rows: list[dict[str, object]]) -> Table:
    result = Table(title="Buffers in kB (1000 B), float32, input pulled by rows", title_justify="left")
    headings = ("model", "paper", "capacities", "arena", "of paper", "whole layers", "onnxruntime\ngrowth", "MACs")
    for heading in (*headings, "time by rows\nover whole", "paper's", "seconds:\nplan, capacities", "right"):
        result.add_column(heading, justify="left" if heading == "model" else "right")
    for row in rows:
        paper = row["paper_bytes"]
        result.add_row(
            row["model"],
            kilobytes(paper),
            kilobytes(row["capacities_bytes"]) + ("" if row["capacities_proven"] else " ?"),
            kilobytes(row["arena_bytes"]),
            f"{row['arena_bytes'] / paper:.0%}" if paper else "–",
            kilobytes(row["whole_layers_bytes"]),
            kilobytes(row["onnxruntime_growth"]),
            f"{row['macs'] / row['macs_plain']:.4f}",
            f"{row['milliseconds_rows'] / row['milliseconds_whole']:.2f}",
            f"{1 / (1 - row['paper_loss']):.2f}" if paper else "–",
            f"{row['seconds_plan']:.1f} {row['seconds_capacities']:.1f}",
            "yes" if row["is_right"] else "NO",
        )
    shares = [row["arena_bytes"] / row["paper_bytes"] for row in rows if row["paper_bytes"]]
    if shares:
        mean = math.exp(sum(map(math.log, shares)) / len(shares))
        result.caption = f"geometric mean of arena over paper: {mean:.0%}; worst {max(shares):.0%}"
    return result


def kilobytes(value: object) -> str:
    return f"{value / 1000:,.0f}" if value else "–"


if __name__ == "__main__":
    main()
