"""How fast orders are found and proven: growth with the layers, wide branches, randomly wired and searched cells.

python benchmarks/ordering.py [--json FILE] [--seeds N] [--hard]
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from edgewright.memory.ordering import OrderProblem, order

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.memory import order_shapes as shapes
from tests.memory.order_baselines import order_depth_first, order_greedy


def cases(seeds: int, hard: bool) -> Iterator[tuple[str, OrderProblem]]:
    """Names and problems, easy ones first; `hard` adds cells of 64 nodes without any waist."""
    for name, shape in (("chain", shapes.chain), ("residual", shapes.residual), ("U-Net", shapes.u_net)):
        for layers in (100, 500, 1000, 2000):
            yield f"{name} {layers}", shape(layers)
    for fork in (0, 20_000, 200_000):
        for seed in range(seeds):
            yield f"branches 25x4, fork {fork}, seed {seed}", shapes.parallel_branches(25, 4, seed, fork)
    for seed in range(seeds):
        problem = shapes.parallel_branches(25, 4, seed, 60_000, concat=True, in_place=True)
        yield f"branches 25x4, concat, seed {seed}", problem
    for kind in ("ws", "er", "ba"):
        for sizes in (shapes.equal_sizes, shapes.varied_sizes):
            for seed in range(seeds):
                label = f"RandWire {kind} 3x32, {sizes.__name__[:-6]}, seed {seed}"
                yield label, shapes.randwire(3, seed, kind, sizes=sizes, in_place=bool(seed % 2))
    for seed in range(seeds):
        yield f"SwiftNet-like, seed {seed}", shapes.searched_cells(seed)
        yield f"SwiftNet-like in place, seed {seed}", shapes.searched_cells(seed, in_place=True)
    for sizes in (shapes.equal_sizes, shapes.varied_sizes):
        for seed in range(seeds if hard else 0):
            yield (
                f"WS 64 flat, {sizes.__name__[:-6]}, seed {seed}",
                shapes.randwire(1, seed, nodes=64, sizes=sizes),
            )


@click.command()
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write the rows to this file.")
@click.option("--seeds", default=3, show_default=True, help="Problems of each random kind.")
@click.option("--hard", is_flag=True, help="Add flat cells of 64 nodes.")
def main(json_file: Path | None, seeds: int, hard: bool) -> None:
    """Orders every case and prints what it needs, beside the orders others would use."""
    columns = ("case", "steps", "greedy", "depth first", "ours", "bound", "proven", "method", "seconds")
    table = Table(*columns)
    rows = []
    for name, problem in cases(seeds, hard):
        begin = time.perf_counter()
        found = order(problem)
        seconds = time.perf_counter() - begin
        row = {
            "case": name,
            "steps": len(problem.steps),
            "greedy": order_greedy(problem).peak,
            "depth first": order_depth_first(problem).peak,
            "ours": found.peak,
            "bound": found.bound,
            "proven": found.optimal,
            "method": found.method,
            "seconds": round(seconds, 3),
        }
        rows.append(row)
        table.add_row(*(f"{row[column]}" for column in columns))
    Console(width=140).print(table)
    if json_file:
        json_file.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
