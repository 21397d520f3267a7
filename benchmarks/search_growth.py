"""Time of the joint search against the number of layers: growing chains of blocks, and every model of the corpus.

    python benchmarks/search_growth.py [models ...] [--quick] [--overhead S] [--repeats N] [--plot SVG] [--json FILE]

Chains are MobileNet-like (3x3 depthwise, 1x1) and ResNet-like (two 3x3 and an addition), with the same five
resolutions whatever their length; they grow until a search takes more than a minute. Models are those given, else those
of $EDGEWRIGHT_CORPUS/models, else bundled samples. Seconds are medians; the exponent says that time grows as layers to
that power along a chain.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import edgewright
from edgewright.fusion.search import PlanSearch
from edgewright.memory.request import PlanRequest
from edgewright.network import Builder, Network
from edgewright.network.operators import Binary, BinaryKind, Clamp, Conv2d, Reduce, ReduceKind
from growth_plot import growth_svg
from memory import find_models
from tiling_bars import LARGE_SECONDS

RELU = Clamp(0.0)
LEVELS = 5  # resolutions along a chain
BLOCKS = (4, 8, 16, 32, 64, 128, 256)
QUICK_BLOCKS = (4, 8, 16)
MODELS = "model"  # the family of those that are no chain


@dataclass(frozen=True)
class Measure:
    """One search, as the median of several runs."""

    family: str
    name: str
    layers: int
    untiled_bytes: int
    peak_bytes: int
    seconds: float


class Chain:
    """A float32 network that grows block by block: 96x96x3, then half the size and more channels at each level."""

    def __init__(self, name: str) -> None:
        self.builder = Builder(name)
        self.channels = 16
        self.x = self.builder.input("x", (1, 96, 96, 3))
        self.x = self.conv("stem", self.x, 3, self.channels, 3, stride=2)

    def conv(self, name: str, x: str, fan_in: int, fan_out: int, kernel: int, stride: int = 1, groups: int = 1) -> str:
        """A convolution with ReLU that keeps the size but for its stride; weights matter to no plan."""
        shape = (fan_out, kernel, kernel, fan_in // groups)
        weights = self.builder.constant(f"{name}_w", np.broadcast_to(np.float32(0.01), shape))
        around = (kernel // 2,) * 4
        op = Conv2d(stride=(stride, stride), pads=around, groups=groups, activation=RELU)
        return self.builder.layer(op, [x, weights], name)

    def build(self) -> Network:
        x = self.builder.layer(Reduce((1, 2), True, ReduceKind.MEAN), [self.x], "mean")
        return self.builder.build([x])


def mobilenet_like(blocks: int) -> Network:
    chain = Chain(f"mobilenet{blocks}")
    for i, stride in enumerate(strides(blocks)):
        fan_in, chain.channels = chain.channels, chain.channels * stride
        x = chain.conv(f"depthwise{i}", chain.x, fan_in, fan_in, 3, stride, groups=fan_in)
        chain.x = chain.conv(f"pointwise{i}", x, fan_in, chain.channels, 1)
    return chain.build()


def resnet_like(blocks: int) -> Network:
    chain = Chain(f"resnet{blocks}")
    for i, stride in enumerate(strides(blocks)):
        fan_in, chain.channels, short = chain.channels, chain.channels * stride, chain.x
        if stride > 1:
            short = chain.conv(f"short{i}", chain.x, fan_in, chain.channels, 1, stride)
        x = chain.conv(f"first{i}", chain.x, fan_in, chain.channels, 3, stride)
        x = chain.conv(f"second{i}", x, chain.channels, chain.channels, 3)
        chain.x = chain.builder.layer(Binary(BinaryKind.ADD, RELU), [short, x], f"add{i}")
    return chain.build()


FAMILIES: dict[str, Callable[[int], Network]] = {"MobileNet-like": mobilenet_like, "ResNet-like": resnet_like}


def strides(blocks: int) -> list[int]:
    """2 where a level begins, else 1; the levels are as equal in length as they can be."""
    levels = min(LEVELS, blocks)
    begins = {level * blocks // levels for level in range(1, levels)}
    return [2 if block in begins else 1 for block in range(blocks)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true", help="short chains, no models but those given")
    parser.add_argument("--overhead", type=float, default=0.05, help="MACs that may be added, as a share")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--plot", type=Path, help="write the plot to this SVG file")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    arguments = parser.parse_args()
    rows: list[Measure] = []
    with tempfile.TemporaryDirectory() as folder:
        is_bare = arguments.quick and not arguments.models
        files = [] if is_bare else find_models(arguments.models, Path(folder))
        for family, network in networks(QUICK_BLOCKS if arguments.quick else BLOCKS, files):
            if family != MODELS and any(row.seconds > LARGE_SECONDS for row in rows if row.family == family):
                continue  # a longer chain tells no more
            rows.append(measure(family, network, arguments.overhead, arguments.repeats))
            write(rows, arguments.json, arguments.plot)  # after each, so that a long run leaves something behind
    Console(width=140).print(table(rows))


def networks(counts: Sequence[int], files: Sequence[Path]) -> Iterator[tuple[str, Network]]:
    for family, make in FAMILIES.items():
        for blocks in counts:
            yield family, make(blocks)
    for file in files:
        yield MODELS, edgewright.read_model(file)


def measure(family: str, network: Network, overhead: float, repeats: int) -> Measure:
    print(f"{network.name}: {len(network.layers)} layers …", file=sys.stderr)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        plan = PlanSearch(network, PlanRequest(max_overhead=overhead)).least().plan
        times.append(time.perf_counter() - start)
    untiled = edgewright.plan(network, plain=True, explain=False).peak_bytes
    seconds = statistics.median(times)
    return Measure(family, network.name, len(network.layers), untiled, plan.peak_bytes, seconds)


def write(rows: Sequence[Measure], data: Path | None, plot: Path | None) -> None:
    if data:
        data.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    if plot:
        lines = {family: [row for row in rows if row.family == family] for family in FAMILIES}
        curves = {family: [(row.layers, row.seconds, row.name) for row in found] for family, found in lines.items()}
        dots = [(row.layers, row.seconds, row.name) for row in rows if row.family == MODELS]
        plot.write_text(growth_svg(curves, dots))


def exponent(one: Measure, other: Measure) -> float:
    """The power of the number of layers that takes one time to the other."""
    return log(other.seconds / one.seconds) / log(other.layers / one.layers)


def table(rows: Sequence[Measure]) -> Table:
    result = Table(title="Time of the joint search against layers", title_justify="left", caption_justify="left")
    for heading in (
        "family",
        "network",
        "layers",
        "untiled B",
        "joint B",
        "less",
        "seconds",
        "ms per layer",
        "exponent",
    ):
        result.add_column(heading, justify="left" if heading in ("family", "network") else "right", overflow="fold")
    powers = {other.name: exponent(one, other) for one, other in pairwise(rows) if one.family == other.family != MODELS}
    for row in rows:
        result.add_row(
            row.family,
            row.name,
            str(row.layers),
            f"{row.untiled_bytes:,}",
            f"{row.peak_bytes:,}",
            f"{row.untiled_bytes / row.peak_bytes:.2f}x",
            f"{row.seconds:.2f}",
            f"{1000 * row.seconds / row.layers:.1f}",
            f"{powers[row.name]:.2f}" if row.name in powers else "",
        )
    slowest = max(rows, key=lambda row: row.seconds)
    result.caption = f"slowest: {slowest.name} with {slowest.seconds:.1f} s"
    return result


if __name__ == "__main__":
    main()
