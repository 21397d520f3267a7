"""Peak RAM of whole networks: ours beside TiGrIS and onnxruntime, measured in this run, and published figures.

    python benchmarks/memory.py [models or folders ...] [--json FILE]

Without arguments: the models of $EDGEWRIGHT_CORPUS/models, or the bundled samples when that is unset.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

import edgewright
from edgewright import samples

# Published: bytes of RAM, input and output counted unless said otherwise.
PUBLISHED = {
    "mlperf_kws_ref_int8": {"TFLM arena": 22772, "Bosch HALE": 16000},
    "mlperf_ic_resnet8_int8": {"TFLM arena": 54340, "Bosch HALE": 52416},
    "mlperf_vww96_int8": {"TFLM arena": 100660, "Bosch HALE": 55296},
    "mlperf_ad01_int8": {"TFLM arena": 2260, "Bosch HALE": 768},
    "st_mobilenet_v1_0.25_224_imagenet_int8": {"X-CUBE-AI": 273613},
    "st_mobilenet_v2_0.35_128_imagenet_int8": {"X-CUBE-AI": 243016},
    "st_miniresnet_1stack_64x50_int8": {"X-CUBE-AI": 61327},
    "tinyengine_mcunet_vww_int8": {"TinyEngine": 92000},
}
SAMPLES = ("ds_cnn_int8", "resnet8_int8", "mobilenet_v1_int8", "mobilenet_v2", "squeezenet", "resnet18")
ORT = r"""
import ctypes, sys
import numpy as np, onnxruntime as ort
def field(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.log_severity_level = 4
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": np.float32, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8,
         "tensor(int32)": np.int32, "tensor(int64)": np.int64}
feed = {i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], types[i.type])
        for i in session.get_inputs()}
ctypes.CDLL(None).malloc_trim(0)  # what loading has freed must not serve the inference unseen
open("/proc/self/clear_refs", "w").write("5")  # forget the high-water mark so far
before = field("VmRSS")
session.run(None, feed)
print((field("VmHWM") - before) * 1024)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(path, Path(folder)) for path in find_models(arguments.models, Path(folder))]
    Console(width=180).print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


def find_models(given: list[Path], folder: Path) -> list[Path]:
    corpus = os.environ.get("EDGEWRIGHT_CORPUS")
    if not given and corpus:
        given = [Path(corpus) / "models"]
    if not given:
        return [samples.write(name, folder) for name in SAMPLES]
    found = []
    for path in given:
        files = sorted(path.glob("*")) if path.is_dir() else [path]
        found += [file for file in files if file.suffix in (".onnx", ".tflite")]
    return found


def measure(path: Path, folder: Path) -> dict[str, object]:
    print(f"{path.name} …", file=sys.stderr)
    start = time.perf_counter()
    network = edgewright.read_model(path)
    imported = time.perf_counter()
    plan = edgewright.plan(network, explain=False)
    planned = time.perf_counter()
    plain = edgewright.plan(network, plain=True, explain=True)
    by_rows = edgewright.plan(network, explain=False, phases=True)
    rows_planned = time.perf_counter()
    return {
        "model": path.stem,
        "layers": len(network.layers),
        "as_trained_greedy": plain.savings[0].peak_bytes,
        "plain": plain.peak_bytes,
        "plain_optimal": plain.optimal,
        "peak_bytes": plan.peak_bytes,
        "bound_bytes": plan.bound_bytes,
        "optimal": plan.optimal,
        "seconds_import": round(imported - start, 3),
        "seconds_plan": round(planned - imported, 3),
        "by_rows": by_rows.peak_bytes,
        "by_rows_pulled": pulled(network),
        "seconds_rows": round(rows_planned - planned, 3),
        "tigris_best_total": tigris(path),
        "onnxruntime_growth": onnxruntime(path, network, folder),
        "published": PUBLISHED.get(path.stem, {}),
    }


def pulled(network: edgewright.Network) -> int | None:
    """By rows, with an image that comes row by row too."""
    try:
        return edgewright.plan(network, explain=False, phases=True, pull_rows=True).peak_bytes
    except edgewright.Infeasible:
        return None


def tigris(path: Path) -> int | None:
    """TiGrIS's least fast + slow memory over a ladder of budgets for the fast one; None when it cannot."""
    tool = shutil.which("tigris") or shutil.which("tigris", path=str(Path(sys.executable).parent))
    if tool is None:
        return None
    best = None
    for budget in (size * factor // 2 for size in (1 << k for k in range(11, 25)) for factor in (2, 3)):
        run = subprocess.run(
            [tool, "analyze", str(path), "-m", f"{budget}+512M", "--json"], capture_output=True, text=True
        )
        try:
            report = json.loads(run.stdout)
        except ValueError:  # it stops with a message, or a trace, on models it does not take
            continue
        if report["fast"]["verdict"] not in ("ok", "tiled") or not report["slow"]["fits"]:
            continue
        used = min(report["fast"]["scheduled_peak_bytes"], budget)
        total = used + report["slow"]["peak_bytes"]
        best = total if best is None else min(best, total)
        if report["fast"]["scheduled_peak_bytes"] <= budget and report["fast"]["verdict"] == "ok":
            break  # larger budgets change nothing
    return best


def onnxruntime(path: Path, network: edgewright.Network, folder: Path) -> int | None:
    """Growth of the process during the first inference, one thread: arena and kernel scratch, weights loaded before."""
    if path.suffix != ".onnx":
        path = folder / f"{path.stem}.onnx"
        edgewright.write_onnx(network, path)
    run = subprocess.run([sys.executable, "-c", ORT, str(path)], capture_output=True, text=True)
    return int(run.stdout) if run.returncode == 0 else None


def table(rows: list[dict[str, object]]) -> Table:
    result = Table(title="Peak RAM in bytes, input and output counted", title_justify="left")
    result.add_column("model", overflow="fold")
    headings = ("as trained,\ngreedy", "plain", "edgewright", "", "by rows", "by rows,\ninput pulled")
    for heading in (*headings, "TiGrIS\nbest total", "onnxruntime\ngrowth"):
        result.add_column(heading, justify="right")
    result.add_column("published (not measured here)")
    result.add_column("seconds:\nimport, plan", justify="right")
    for row in rows:
        gap = 1 - row["bound_bytes"] / row["peak_bytes"]
        published = ", ".join(f"{tool} {size:,}" for tool, size in row["published"].items())
        result.add_row(
            row["model"],
            *(f"{row[key]:,}" for key in ("as_trained_greedy", "plain", "peak_bytes")),
            "proven" if row["optimal"] else f"gap {gap:.1%}",
            f"{row['by_rows']:,}",
            *(f"{row[k]:,}" if row[k] else "–" for k in ("by_rows_pulled", "tigris_best_total", "onnxruntime_growth")),
            published,
            f"{row['seconds_import']:.2f} {row['seconds_plan']:.2f}",
        )
    return result


if __name__ == "__main__":
    main()
