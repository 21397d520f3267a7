"""Cost of planning against the number of layers: residual networks from 50 to 2000 layers.

python benchmarks/scaling.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import edgewright
from edgewright.network import Builder, Network
from edgewright.network.operators import Binary, BinaryKind, Clamp, Concat, Conv2d


def residual(blocks: int) -> Network:
    """Blocks of two convolutions and an addition."""
    b = Builder(f"residual{blocks}")
    w = np.broadcast_to(np.float32(0.1), (16, 3, 3, 16))
    x = b.input("x", (1, 16, 16, 16))
    for i in range(blocks):
        y = b.layer(Conv2d(pads=(1, 1, 1, 1), activation=Clamp(0.0)), [x, b.constant("w", w)], f"a{i}")
        y = b.layer(Conv2d(pads=(1, 1, 1, 1)), [y, b.constant("w", w)], f"b{i}")
        x = b.layer(Binary(BinaryKind.ADD), [x, y], f"add{i}")
    return b.build([x])


def inception(blocks: int) -> Network:
    """Blocks of four branches that are joined by a concat."""
    b = Builder(f"inception{blocks}")
    x = b.input("x", (1, 16, 16, 32))
    for i in range(blocks):
        parts = []
        for j, (k, mid) in enumerate(((1, 8), (3, 12), (5, 4), (1, 8))):
            w1 = np.broadcast_to(np.float32(0.1), (mid, 1, 1, 32))
            w2 = np.broadcast_to(np.float32(0.1), (8, k, k, mid))
            y = b.layer(Conv2d(), [x, b.constant("w", w1)], f"reduce{i}_{j}")
            same = (k // 2,) * 4
            parts.append(b.layer(Conv2d(pads=same), [y, b.constant("w", w2)], f"conv{i}_{j}"))
        x = b.layer(Concat(3), parts, f"concat{i}")
    return b.build([x])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    table = Table(title="Planning time against layers", title_justify="left")
    for heading in ("network", "layers", "peak", "proven", "seconds", "ms per layer"):
        table.add_column(heading, justify="right")
    for make, counts in ((residual, (17, 67, 167, 334, 667)), (inception, (6, 25, 60, 120, 223))):
        for count in counts:
            network = make(count)
            start = time.perf_counter()
            plan = edgewright.plan(network, explain=False)
            seconds = time.perf_counter() - start
            layers = len(network.layers)
            rows.append({"network": make.__name__, "layers": layers, "seconds": seconds, "optimal": plan.optimal})
            table.add_row(
                make.__name__,
                str(layers),
                f"{plan.peak_bytes:,}",
                str(plan.optimal),
                f"{seconds:.2f}",
                f"{1000 * seconds / layers:.2f}",
            )
    Console(width=150).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
