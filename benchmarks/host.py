"""Time per inference on this machine, one thread: our C beside onnxruntime (float32) and LiteRT with XNNPACK (int8).

    python benchmarks/host.py [models or folders ...] [--repeats N] [--layers N] [--json FILE]

Without arguments: larger float32 networks and the int8 models of MLPerf Tiny from $EDGEWRIGHT_CORPUS/models, or bundled
samples when that is unset. Files that hold a topology only get seeded weights by the corpus' own make_models.py. Both
sides run in turns, are given their input again each time, and are counted in CPU time of the one thread, so that other
work on the machine disturbs little; medians. `--layers` shows where our time goes.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import edgewright
from edgewright import samples
from edgewright.emit import TARGETS, emit
from edgewright.emit.native import Native, build
from edgewright.emit.probes import build_timed
from edgewright.kernels.select import close_plan
from edgewright.network import Arithmetic, Array, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare, to_file_layout

MODELS = (
    *("resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1", "googlenet", "densenet121", "efficientnet_b0"),
    *("vgg16", "tiny_yolov2"),
    *("mlperf_kws_ref_int8", "mlperf_vww96_int8", "mlperf_ic_resnet8_int8", "mlperf_ad01_int8"),
)
SAMPLES = ("mobilenet_v2", "squeezenet", "resnet18")
ALIGNMENT = 64  # a cache line
Run = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--layers", type=int, default=0, help="show so many of the dearest layers of each model")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    rows, console = [], Console(width=140)
    with tempfile.TemporaryDirectory() as folder:
        for path in find_models(arguments.models, Path(folder)):
            rows.append(measure(path, Path(folder), arguments.repeats, arguments.layers))
            if arguments.layers:
                console.print(layer_table(rows[-1]))
    console.print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


def find_models(given: list[Path], folder: Path) -> list[Path]:
    corpus = os.environ.get("EDGEWRIGHT_CORPUS")
    if not given and not corpus:
        return [samples.write(name, folder) for name in SAMPLES]
    if not given:
        files = [file for file in (Path(corpus or "") / "models").glob("*") if file.stem in MODELS]
        return sorted(files, key=lambda file: MODELS.index(file.stem))
    found = []
    for path in given:
        files = sorted(path.glob("*")) if path.is_dir() else [path]
        found += [file for file in files if file.suffix in (".onnx", ".tflite")]
    return found


def with_weights(path: Path, folder: Path) -> Path:
    """The model itself, or a copy with seeded weights where a tool for that lies beside it."""
    tool, filled = path.parent / "make_models.py", folder / path.name
    if path.suffix != ".onnx" or not tool.exists():
        return path
    subprocess.run([sys.executable, tool, "fill", path, filled, "--seed", "1"], check=True, capture_output=True)
    return filled


def measure(path: Path, folder: Path, repeats: int, most_layers: int) -> dict[str, object]:
    print(f"{path.name} …", file=sys.stderr)
    path = with_weights(path, folder)
    network = edgewright.read_model(path)
    plan = edgewright.plan(network, alignment=ALIGNMENT, explain=False)
    library = emit(close_plan(plan, TARGETS["host"], network))
    native = build(library, folder / "build")
    inputs = random_inputs(network)
    verdict = compare(network, native.run(inputs), execute(network, inputs))
    is_tflite = network.arithmetic is Arithmetic.TFLITE
    theirs = (litert if is_tflite else onnxruntime)(path, network, inputs)
    ours, other = in_turns(caller(native, inputs), theirs, repeats)
    layers = layer_times(native, inputs, folder / "profile", repeats) if most_layers else {}
    return {
        "model": path.stem,
        "macs": plan.macs,
        "is_right": verdict.passes,
        "milliseconds": ours,
        "competitor": "LiteRT" if is_tflite else "onnxruntime",
        "competitor_milliseconds": other,
        "ratio": ours / other,
        "gmacs_per_second": plan.macs / ours / 1e6,
        "layers": dict(sorted(layers.items(), key=lambda item: -item[1])[:most_layers]),
    }


def caller(native: Native, inputs: Mapping[str, Array], path: Path | None = None) -> Run:
    """The C function with its arguments in place, so that nothing but it is timed."""
    network = native.network
    arenas = [np.zeros(size + 64, np.uint8) for size in native.library.arenas.values()]
    values = [np.ascontiguousarray(inputs[name]) for name in network.inputs]
    outputs = [np.empty(network.tensors[n].shape, network.tensors[n].dtype.numpy) for n in network.outputs]
    places = [arena.ctypes.data + (-arena.ctypes.data % 64) for arena in arenas]
    pointers = [ctypes.c_void_p(p) for p in (*places, *(a.ctypes.data for a in (*values, *outputs)))]
    function = ctypes.CDLL(str(path or native.path))[f"{native.library.name}_run_in"]
    function.restype = None

    def call(_kept_alive: object = (arenas, values, outputs)) -> object:
        return function(*pointers)

    return call


def onnxruntime(path: Path, network: Network, inputs: Mapping[str, Array]) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = {name: np.ascontiguousarray(to_file_layout(network, name, value)) for name, value in inputs.items()}
    return lambda: session.run(None, feed)


def litert(path: Path, network: Network, inputs: Mapping[str, Array]) -> Run:
    """The default resolver: XNNPACK wherever it can."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    places = [detail["index"] for detail in interpreter.get_input_details()]
    values = [np.ascontiguousarray(to_file_layout(network, name, inputs[name])) for name in network.inputs]

    def call() -> None:
        for place, value in zip(places, values, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()

    return call


def in_turns(ours: Run, theirs: Run, repeats: int) -> tuple[float, float]:
    """Medians in milliseconds. Short runs are repeated until they last long enough to be counted."""
    counts = [max(1, round(0.005 / max(timed(run, 3), 1e-6))) for run in (ours, theirs)]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for run, count, found in zip((ours, theirs), counts, times, strict=True):
            found.append(timed(run, count))
    return statistics.median(times[0]) * 1e3, statistics.median(times[1]) * 1e3


def timed(run: Run, count: int) -> float:
    start = time.thread_time()
    for _ in range(count):
        run()
    return (time.thread_time() - start) / count


def layer_times(native: Native, inputs: Mapping[str, Array], folder: Path, repeats: int) -> dict[str, float]:
    """Milliseconds of each stage: a second build, whose probes tell the time."""
    library = native.library
    timed = build_timed(library, folder)
    call, found = caller(native, inputs, timed.path), []
    for _ in range(repeats):
        call()
        found.append(timed.stage_seconds())
    names = [f"{i}: {name}" for i, name in enumerate(library.stages)]
    return dict(zip(names, (np.median(found, axis=0) * 1e3).tolist(), strict=True))


def layer_table(row: dict[str, object]) -> Table:
    result = Table(title=f"{row['model']}: the dearest layers", title_justify="left")
    for heading in ("layer", "ms", "share"):
        result.add_column(heading, justify="left" if heading == "layer" else "right")
    for name, spent in row["layers"].items():
        result.add_row(name, f"{spent:.3f}", f"{spent / row['milliseconds']:.1%}")
    return result


def table(rows: list[dict[str, object]]) -> Table:
    result = Table(title="Milliseconds per inference, one thread", title_justify="left")
    for heading in ("model", "edgewright", "competitor", "", "ratio", "GMAC/s", "right"):
        result.add_column(heading, justify="left" if heading in ("model", "") else "right")
    for row in rows:
        result.add_row(
            row["model"],
            f"{row['milliseconds']:.3f}",
            f"{row['competitor_milliseconds']:.3f}",
            row["competitor"],
            f"{row['ratio']:.2f}",
            f"{row['gmacs_per_second']:.1f}",
            "yes" if row["is_right"] else "NO",
        )
    return result


if __name__ == "__main__":
    main()
