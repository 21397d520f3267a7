"""Time of one frame on this machine: one core, lanes, and onnxruntime (LiteRT for int8) with as many threads.

    python benchmarks/lanes.py [models or folders ...] [--lanes 2] [--busy PROCESSES] [--rounds N] [--json FILE]

Without arguments: the eight networks of M table 3.2 and the int8 models of MLPerf Tiny from $EDGEWRIGHT_CORPUS/models,
or bundled samples when that is unset. Files that hold a topology only get seeded weights by the corpus' own
make_models.py. All sides run in turns, are given their input again each time, and are counted in time that passes; the
least of all rounds, since whatever else the machine does only adds to it. Several numbers of lanes may be given:
--lanes 2,4,8. With --busy, so many processes that never sleep run beside them, and times are means of long turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean, mean

import numpy as np
from rich.console import Console
from rich.table import Table

import edgewright
import host
from edgewright.emit import TARGETS, emit
from edgewright.emit.native import build
from edgewright.fusion.request import PlanRequest, make_plan
from edgewright.kernels.select import close_plan
from edgewright.network import Arithmetic, Array, Network, random_inputs
from edgewright.network.reference import to_file_layout
from edgewright.program import Plan

MODELS = (
    *("alexnet", "vgg19", "googlenet", "tiny_yolov2", "light_inception_v1", "resnet18", "densenet121"),
    *("emotion_ferplus", "mlperf_kws_ref_int8", "mlperf_vww96_int8", "mlperf_ic_resnet8_int8", "mlperf_ad01_int8"),
)
SHORTEST, SHORTEST_BUSY = 0.004, 0.1  # seconds of a turn; shorter runs are repeated
PAUSE = 0.1  # seconds before a turn: threads of the one before wait awake for a while, onnxruntime's some 30 ms
Run = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--lanes", default="2", help="how many, or several numbers: 2,4,8")
    parser.add_argument("--busy", type=int, default=0, help="processes beside which to measure")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    lanes = [int(number) for number in arguments.lanes.split(",")]
    host.MODELS = MODELS
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in host.find_models(arguments.models, Path(folder)):
            rows += measure(path, Path(folder), lanes, arguments.rounds, arguments.busy)
            print(f"{rows[-1]['model']}: {rows[-1]['share']:.2f} of one core", file=sys.stderr)
    Console(width=140).print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


def measure(path: Path, folder: Path, lanes: list[int], rounds: int, busy: int) -> list[dict[str, object]]:
    path = host.with_weights(path, folder)
    network, model = edgewright.read_model(path), path.stem
    inputs = random_inputs(network)
    plans = {count: planned(network, count) for count in (1, *lanes)}
    natives = {
        count: build(emit(close_plan(plan, TARGETS["host"], network)), folder / f"{model}{count}")
        for count, plan in plans.items()
    }
    expected = natives[1].run(inputs)
    is_same = {count: _is_same(expected, native.run(inputs)) for count, native in natives.items()}
    other = litert if network.arithmetic is Arithmetic.TFLITE else onnxruntime
    runs = {("edgewright", count): host.caller(native, inputs) for count, native in natives.items()}
    runs |= {("other", count): other(path, network, inputs, count) for count in natives}
    with busy_processes(busy):
        found = in_turns(runs, rounds, bool(busy))
    for native in natives.values():
        native.close()
    return [
        {
            "model": model,
            "lanes": count,
            "shared_stages": sum(stage.schedule.lanes > 1 for stage in plans[count].program.stages),
            "stages": len(plans[count].program.stages),
            "one_core_ms": found["edgewright", 1] * 1e3,
            "lanes_ms": found["edgewright", count] * 1e3,
            "share": found["edgewright", count] / found["edgewright", 1],
            "competitor": other.__name__,
            "competitor_one_ms": found["other", 1] * 1e3,
            "competitor_ms": found["other", count] * 1e3,
            "ratio": found["edgewright", count] / found["other", count],
            "one_core_bytes": plans[1].peak_bytes,
            "lanes_bytes": plans[count].peak_bytes,
            "is_same": is_same[count],
        }
        for count in lanes
    ]


def planned(network: Network, lanes: int) -> Plan:
    return make_plan(network, PlanRequest(lanes=lanes, alignment=host.ALIGNMENT), target="host")


def _is_same(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


def onnxruntime(path: Path, network: Network, inputs: Mapping[str, Array], threads: int) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = {name: np.ascontiguousarray(to_file_layout(network, name, value)) for name, value in inputs.items()}
    return lambda: session.run(None, feed)


def litert(path: Path, network: Network, inputs: Mapping[str, Array], threads: int) -> Run:
    """The default resolver: XNNPACK wherever it can."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path), num_threads=threads)
    interpreter.allocate_tensors()
    places = [detail["index"] for detail in interpreter.get_input_details()]
    values = [np.ascontiguousarray(to_file_layout(network, name, inputs[name])) for name in network.inputs]

    def call() -> None:
        for place, value in zip(places, values, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()

    return call


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def in_turns(runs: Mapping[tuple[str, int], Run], rounds: int, is_busy: bool) -> dict[tuple[str, int], float]:
    """Seconds of each: the least of all rounds, or their mean where other processes take part."""
    shortest = SHORTEST_BUSY if is_busy else SHORTEST
    counts = {key: max(1, round(shortest / timed(run, 3))) for key, run in runs.items()}
    found: dict[tuple[str, int], list[float]] = {key: [] for key in runs}
    for _ in range(rounds):
        for key, run in runs.items():
            time.sleep(PAUSE)
            run()
            found[key].append(timed(run, counts[key]))
    return {key: mean(times) if is_busy else min(times) for key, times in found.items()}


def timed(run: Run, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - start) / count


def table(rows: list[dict[str, object]]) -> Table:
    result = Table(title="Milliseconds of a frame", title_justify="left")
    headings = (
        "model",
        "lanes",
        "stages",
        "one core",
        "lanes",
        "share",
        "competitor",
        "one",
        "as many",
        "ratio",
        "KiB",
    )
    for heading in (*headings, "same"):
        result.add_column(heading, justify="left" if heading in ("model", "competitor") else "right")
    for row in rows:
        times = [f"{row[key]:.2f}" for key in ("one_core_ms", "lanes_ms", "share")]
        theirs = [f"{row[key]:.2f}" for key in ("competitor_one_ms", "competitor_ms", "ratio")]
        memory = f"{row['one_core_bytes'] // 1024} -> {row['lanes_bytes'] // 1024}"
        stages = f"{row['shared_stages']} of {row['stages']}"
        is_same = "yes" if row["is_same"] else "NO"
        result.add_row(row["model"], str(row["lanes"]), stages, *times, row["competitor"], *theirs, memory, is_same)
    for count in sorted({row["lanes"] for row in rows}):
        shares, ratios = ([row[key] for row in rows if row["lanes"] == count] for key in ("share", "ratio"))
        means = [f"{geometric_mean(values):.2f}" for values in (shares, ratios)]
        result.add_row("geometric mean", str(count), "", "", "", means[0], "", "", "", means[1], "", "")
    return result


if __name__ == "__main__":
    main()
