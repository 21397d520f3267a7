"""Several CNNs in one arena: the six applications of M table 6.6, and the limits of table 6.7 in int8.

    python benchmarks/application.py [--only 1,3] [--repeats N] [--json FILE]

Topologies from $EDGEWRIGHT_CORPUS/models, with seeded weights; MobileNetV1-0.25 and Inception-V2 are built here.
Float32, inputs resident, buffers alone: the paper's figure less 4 B for each parameter. "ours" is the least arena that
costs no multiply-accumulates, or few where that is not enough. Time is that of the emitted C, one thread, in turns with
the fastest plans, CPU time, medians; a pipeline is as fast as its slowest partition. Ends with status 1 when a bar is
missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnx
from rich.console import Console
from rich.table import Table

from edgewright import samples
from edgewright.application.draft import load_application
from edgewright.application.library import emit_application
from edgewright.application.search import JointSearch
from edgewright.emit import TARGETS, emit
from edgewright.emit.native import build
from edgewright.kernels.select import close_plan
from edgewright.memory.joint.layout import JointLayout
from edgewright.network import random_inputs
from edgewright.network.read import read
from edgewright.samples.builder import ModelBuilder
from edgewright.samples.quantise import quantise
from host import caller, in_turns, with_weights

MOST = 0.7  # of the paper's buffers
MEAN = 0.4  # geometric, over all applications
SECONDS = 60  # of planning
LOSS = 0.08  # of throughput at the least memory
MB = 10**6  # as the paper counts: its table 4.3 has the 143,667,240 float32 parameters of VGG-19 as 574.7 MB


@dataclass(frozen=True)
class PaperApp:
    """One row of M table 6.6: its networks, the layers of the first partition of a pipeline, the paper's figures."""

    networks: tuple[str, ...]
    buffers: float  # MB
    loss: float | None = None  # of throughput at the least memory
    first: int | None = None  # layers before the cut, as the authors' tool counts them
    overhead: float = 0.0  # the share of multiply-accumulates that may be computed again


PAPER = {
    "1": PaperApp(("mobilenet_v2",), 0.95, 0.12, overhead=0.018),
    "2": PaperApp(("efficientnet_b0",), 6.23, 0.24),
    "3": PaperApp(("mobilenet_v2",), 1.97, 0.11, first=6),
    "4": PaperApp(("efficientnet_b0",), 10.3, 0.27, first=12),
    "5": PaperApp(("inception_v2", "mobilenet_v1_025", "resnet50"), 13.2),
    "6": PaperApp(("densenet121", "mobilenet_v1_timm", "resnet50"), 9.8),
}
# M table 6.7: MB with weights, in int8.
LIMITS = {
    "mobilenet-sequential": PaperApp(("mobilenet_v2",), 8),
    "resnet-sequential": PaperApp(("resnet50",), 26),
    "mobilenet-pipelined": PaperApp(("mobilenet_v2",), 30, first=6),
    "multi-cnn": PaperApp(("mobilenet_v2", "resnet50"), 30),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="applications, such as 1,3,resnet-sequential")
    parser.add_argument("--repeats", type=int, default=7, help="0: nothing is compiled and timed")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    if not os.environ.get("EDGEWRIGHT_CORPUS"):
        print("the networks of the paper are not bundled: set EDGEWRIGHT_CORPUS to measure them")
        return
    only = [name for name in arguments.only.split(",") if name]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [measure(n, app, folder, arguments.repeats) for n, app in PAPER.items() if not only or n in only]
        small = [limited(n, app, folder) for n, app in LIMITS.items() if not only or n in only]
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows)) if rows else 0.0
    missed = [
        *failures(rows),
        *(f"{r['application']}: {r['bytes']:,} B" for r in small if r["bytes"] > r["limit"]),
    ]
    missed += [f"geometric mean {mean:.2f}"] if mean > MEAN and not only else []
    console = Console(width=150)
    for table in tables(rows, small, mean):
        console.print(table)
    for line in missed:
        console.print(f"missed: {line}", style="red")
    if arguments.json:
        figures = {"applications": rows, "geometric_mean": mean, "int8": small, "missed": missed}
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    sys.exit(1 if missed else 0)


def measure(name: str, app: PaperApp, folder: Path, repeats: int) -> dict[str, object]:
    """A row: bytes, bound, seconds, and how much slower every network is than in its fastest plan."""
    print(f"application {name} …", file=sys.stderr)
    search = JointSearch(load_application(written(name, app, folder)))
    start = time.perf_counter()
    found = search.least
    seconds = time.perf_counter() - start
    losses = lost(search, found.layout, folder, repeats) if repeats else {}
    ratio = found.peak_bytes / (app.buffers * MB)
    print(f"  {found.peak_bytes:,} B in {seconds:.1f} s", file=sys.stderr)
    return {
        "application": name,
        "networks": app.networks,
        "paper_bytes": round(app.buffers * MB),
        "paper_loss": app.loss,
        "whole_layers_bytes": search.fastest.peak_bytes,
        "bytes": found.peak_bytes,
        "bound_bytes": found.layout.bound_bytes,
        "ratio": ratio,
        "macs_ratio": max(p.macs / p.macs_plain for p in found.layout.plans.values()),
        "setters": found.layout.setters,
        "seconds_plan": round(seconds, 1),
        "lost": losses,
    }


def limited(name: str, app: PaperApp, folder: Path) -> dict[str, object]:
    """A row of table 6.7: the arena and the weights as stored, in int8."""
    print(f"{name}, int8 …", file=sys.stderr)
    search = JointSearch(load_application(written(name, app, folder, is_int8=True)))
    start = time.perf_counter()
    found = search.smallest
    seconds = time.perf_counter() - start
    stored = emit_application(search.application, found.layout).weight_bytes
    print(f"  {found.peak_bytes:,} B of RAM in {seconds:.1f} s, {stored:,} B of weights", file=sys.stderr)
    return {
        "application": name,
        "limit": round(app.buffers * MB),
        "ram_bytes": found.peak_bytes,
        "weight_bytes": stored,
        "bytes": found.peak_bytes + stored,
        "seconds_plan": round(seconds, 1),
    }


def written(name: str, app: PaperApp, folder: Path, is_int8: bool = False) -> Path:
    """The application's file, with its models beside it."""
    lines = ['target = "host"']
    for network in app.networks:
        path = int8_model(network, folder) if is_int8 else float_model(network, folder)
        lines += ["[[network]]", f'name = "{network}"', f'file = "{path.name}"']
        if app.loss is not None:
            lines += [f"max_overhead = {app.overhead}", f"max_slowdown = {LOSS / (1 - LOSS):.4f}"]
        if is_int8:
            lines += ["quantised_input = true", "quantised_output = true"]
        if app.first is not None:
            layers = [layer.name for layer in read(path, quantised_input=is_int8, quantised_output=is_int8).layers]
            cuts = [layers[: app.first], layers[app.first :]]
            lines.append("partitions = [" + ", ".join(f'"{part[0]}..{part[-1]}"' for part in cuts) + "]")
            lines += ["[[relation]]", 'kind = "pipelined"', f'networks = ["{network}.1", "{network}.2"]']
    file = folder / f"{name}.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


@cache
def float_model(name: str, folder: Path) -> Path:
    built = {"inception_v2": inception_v2, "mobilenet_v1_025": mobilenet_v1_025}
    if name not in built:
        return with_weights(Path(os.environ["EDGEWRIGHT_CORPUS"]) / "models" / f"{name}.onnx", folder)
    path = folder / f"{name}.onnx"
    onnx.save(built[name](), path)
    return path


@cache
def int8_model(name: str, folder: Path) -> Path:
    path = folder / f"{name}_int8.onnx"
    onnx.save(quantise(onnx.load(float_model(name, folder))), path)
    return path


def mobilenet_v1_025() -> onnx.ModelProto:
    return samples.build("mobilenet_v1", alpha=0.25, size=224, classes=1001)


def inception_v2() -> onnx.ModelProto:
    """Inception with batch normalisation and 3×3 in place of 5×5 (Ioffe and Szegedy 2015, figure 5)."""
    net = ModelBuilder("inception_v2")

    def conv(x: str, *layers: tuple[int, int, int]) -> str:
        for channels, kernel, stride in layers:
            x = net.relu(net.conv(x, channels, kernel, stride))
        return x

    def mixed(x: str, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int) -> str:
        pool = net.average_pool(x, 3, 1, 1)
        return net.concat(
            conv(x, (one, 1, 1)),
            conv(x, (three[0], 1, 1), (three[1], 3, 1)),
            conv(x, (five[0], 1, 1), (five[1], 3, 1), (five[1], 3, 1)),
            conv(pool, (pooled, 1, 1)),
        )

    def halved(x: str, three: tuple[int, int], five: tuple[int, int]) -> str:
        return net.concat(
            conv(x, (three[0], 1, 1), (three[1], 3, 2)),
            conv(x, (five[0], 1, 1), (five[1], 3, 1), (five[1], 3, 2)),
            net.max_pool(x, 3, 2, 1),
        )

    x = net.max_pool(conv(net.input(1, 3, 224, 224), (64, 7, 2)), 3, 2, 1)
    x = net.max_pool(conv(x, (64, 1, 1), (192, 3, 1)), 3, 2, 1)
    x = mixed(x, 64, (64, 64), (64, 96), 32)
    x = mixed(x, 64, (64, 96), (64, 96), 64)
    x = halved(x, (128, 160), (64, 96))
    for one, three, five, pooled in (
        (224, (64, 96), (96, 128), 128),
        (192, (96, 128), (96, 128), 128),
        (160, (128, 160), (128, 160), 96),
        (96, (128, 192), (160, 192), 96),
    ):
        x = mixed(x, one, three, five, pooled)
    x = halved(x, (128, 192), (192, 256))
    x = mixed(x, 352, (192, 320), (160, 224), 128)
    x = mixed(x, 352, (192, 320), (192, 224), 128)
    return net.model(net.classifier(x, 1000))


def lost(search: JointSearch, layout: JointLayout, folder: Path, repeats: int) -> dict[str, float]:
    """Of each network: the share of throughput that its plan in the arena loses against the fastest one.

    Nothing where rows cross in rings: partitions wait for each other then, and `edgewright app --run` measures them.
    """
    if layout.rings:
        return {}
    times: dict[str, list[tuple[float, float]]] = {}
    for part in search.application.deployment.parts:
        fast, small = search.planners[part.name].fastest, layout.problem.plans[part.name]
        if small == fast:
            times.setdefault(part.owner, []).append((1.0, 1.0))
            continue
        inputs = random_inputs(part.network)
        natives = [
            build(emit(close_plan(plan, TARGETS["host"], part.network)), folder / f"{part.name}-{kind}")
            for kind, plan in (("fast", fast), ("small", small))
        ]
        fast_ms, small_ms = in_turns(*(caller(native, inputs) for native in natives), repeats)
        times.setdefault(part.owner, []).append((fast_ms, small_ms))
    return {
        owner: max(0.0, 1 - max(fast for fast, _ in found) / max(small for _, small in found))
        for owner, found in times.items()
    }


def failures(rows: list[dict[str, object]]) -> Iterator[str]:
    for row in rows:
        name = f"application {row['application']}"
        if row["ratio"] > MOST:
            yield f"{name}: {row['ratio']:.2f} of the paper's buffers"
        if row["seconds_plan"] > SECONDS:
            yield f"{name}: {row['seconds_plan']} s of planning"
        for network, share in row["lost"].items():
            if share > LOSS:
                yield f"{name}: {network} loses {share:.1%} of its throughput"


def tables(rows: list[dict[str, object]], small: list[dict[str, object]], mean: float) -> Iterator[Table]:
    shared = Table(title="Buffers of M table 6.6, MB, float32", title_justify="left")
    for heading in (
        "application",
        "networks",
        "paper",
        "whole layers",
        "ours",
        "bound",
        "ratio",
        "lost",
        "paper lost",
        "s",
    ):
        shared.add_column(heading, justify="left" if heading in ("application", "networks") else "right")
    for row in rows:
        losses: Mapping[str, float] = row["lost"]
        shared.add_row(
            row["application"],
            ", ".join(row["networks"]),
            *(f"{row[key] / MB:.3f}" for key in ("paper_bytes", "whole_layers_bytes", "bytes", "bound_bytes")),
            f"{row['ratio']:.2f}",
            ", ".join(f"{share:.1%}" for share in losses.values()),
            "" if row["paper_loss"] is None else f"{row['paper_loss']:.0%}",
            f"{row['seconds_plan']:.1f}",
        )
    shared.caption = f"geometric mean {mean:.2f}"
    yield shared
    limits = Table(title="Limits of M table 6.7, MB with weights, int8", title_justify="left")
    for heading in ("application", "limit", "RAM", "weights", "ours", "s"):
        limits.add_column(heading, justify="left" if heading == "application" else "right")
    for row in small:
        sizes = (f"{row[key] / MB:.3f}" for key in ("limit", "ram_bytes", "weight_bytes", "bytes"))
        limits.add_row(row["application"], *sizes, f"{row['seconds_plan']:.1f}")
    yield limits


if __name__ == "__main__":
    main()
