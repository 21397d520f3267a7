"""How fast candidates of an architecture search are priced, and how exact the prices are.

    python benchmarks/search_pricing.py [--candidates 1000] [--compiled 10] [--jobs 2] [--json FILE]

Candidates are drawn from four spaces in equal shares: residual and inverted blocks on 32 × 32 × 3 images, separable
blocks on 49 × 10 spectrograms, sensor blocks on windows of 128 × 9. Each is priced for a Cortex-M4 under the manner
"streamed". Some are then compiled and run on the virtual board: the linker states RAM and flash, the board counts
instructions.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes share the cores

import click
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from edgewright.complete_plan import find_complete
from edgewright.emit.verify import verify
from edgewright.platform import load_board
from edgewright.search.architecture import CnnArchitecture, Shape3
from edgewright.search.model import default_ranges, onnx_model
from edgewright.search.pricing import CandidatePricer, Manner, Price
from edgewright.search.space import SearchSpace, SpaceKind

BOARD = "nucleo-f446re"
SHAPES: dict[SpaceKind, Shape3] = {
    SpaceKind.RESIDUAL: (32, 32, 3),
    SpaceKind.SEPARABLE: (49, 10, 1),
    SpaceKind.INVERTED: (32, 32, 3),
    SpaceKind.SENSOR: (128, 1, 9),
}
CLASSES = 10


@dataclass(frozen=True)
class PricedCandidate:
    space: str
    architecture: CnnArchitecture
    price: Price
    seconds: float  # of a core that pricing took


@dataclass(frozen=True)
class CompiledCandidate:
    """What was priced beside what the linker and the virtual board state."""

    space: str
    ram_priced: int
    ram_linked: int
    flash_priced: int
    flash_linked: int
    instructions_priced: int
    instructions_counted: int

    @property
    def error(self) -> float:
        return self.instructions_priced / self.instructions_counted - 1


def drawn(count: int, seed: int) -> Iterator[tuple[SpaceKind, CnnArchitecture]]:
    """Candidates of all spaces in turn, none twice."""
    random, seen = Random(seed), set[str]()
    spaces = {kind: SearchSpace(kind=kind, pools=(1, 2), squeeze=(False, True)) for kind in SHAPES}
    while len(seen) < count:
        kind = list(SHAPES)[len(seen) % len(SHAPES)]
        architecture = spaces[kind].draw(random, SHAPES[kind], CLASSES)
        if architecture.key not in seen:
            seen.add(architecture.key)
            yield kind, architecture


def priced(pricer: CandidatePricer, kind: SpaceKind, architecture: CnnArchitecture) -> PricedCandidate:
    begin = time.process_time()
    price = pricer.price(architecture)
    return PricedCandidate(kind.value, architecture, price, time.process_time() - begin)


def compiled(pricer: CandidatePricer, candidate: PricedCandidate) -> CompiledCandidate:
    """The candidate with random weights, compiled, verified and run."""
    architecture = candidate.architecture
    model = onnx_model(architecture, None, default_ranges(architecture))
    network = pricer.network(model)
    library = find_complete(network, pricer.request, pricer.board, pricer.target).library
    figures = verify(library, model.SerializeToString(), count=1, board=pricer.board)
    linked = (figures.ram_linked, figures.flash_code, figures.flash_runtime, figures.instructions)
    assert None not in linked, f"nothing was measured: {figures.notes}"
    return CompiledCandidate(
        candidate.space,
        candidate.price.ram_bytes,
        figures.ram_linked or 0,
        pricer.compiled_price(network).flash_bytes,
        figures.flash_weights + (figures.flash_code or 0) + (figures.flash_runtime or 0),
        candidate.price.instructions,
        figures.instructions or 0,
    )


def speed_table(candidates: list[PricedCandidate], seconds: float) -> Table:
    used = sum(one.seconds for one in candidates)
    table = Table(title=f"{len(candidates)} candidates priced in {seconds:.0f} s, with {used:.0f} s of one core")
    for heading in ("space", "candidates", "median, s", "slowest, s", "RAM from, B", "median, B", "to, B"):
        table.add_column(heading, justify="left" if heading == "space" else "right")
    for kind in SHAPES:
        mine = [one for one in candidates if one.space == kind.value]
        times, rams = [one.seconds for one in mine], [one.price.ram_bytes for one in mine]
        figures = (min(rams), round(statistics.median(rams)), max(rams))
        table.add_row(
            kind.value,
            str(len(mine)),
            f"{statistics.median(times):.2f}",
            f"{max(times):.2f}",
            *(f"{figure:,}" for figure in figures),
        )
    return table


def exactness_table(rows: list[CompiledCandidate]) -> Table:
    table = Table(title=f"{len(rows)} of them compiled for {BOARD}")
    for heading in ("space", "RAM, B", "linked", "flash, B", "linked", "instructions", "counted", "error"):
        table.add_column(heading, justify="left" if heading == "space" else "right")
    for row in rows:
        figures = [value for value in asdict(row).values() if isinstance(value, int)]
        table.add_row(row.space, *(f"{figure:,}" for figure in figures), f"{row.error:+.1%}")
    return table


def as_json(candidates: list[PricedCandidate], seconds: float, rows: list[CompiledCandidate]) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 1),
        "core_seconds": round(sum(one.seconds for one in candidates), 1),
        "candidates": [
            {"space": one.space, "architecture": one.architecture.text(), **asdict(one.price)} for one in candidates
        ],
        "compiled": [{**asdict(row), "error": round(row.error, 4)} for row in rows],
    }


@click.command()
@click.option("--candidates", "count", type=click.IntRange(4), default=1000, show_default=True)
@click.option("--compiled", "chosen", type=click.IntRange(0), default=10, show_default=True, help="So many of them.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Processes.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the figures to this file.")
def main(count: int, chosen: int, jobs: int, seed: int, output: Path | None) -> None:
    """Prices candidates in parallel; compiles some."""
    pricer = CandidatePricer(load_board(BOARD), Manner.STREAMED)
    begin = time.perf_counter()
    with Parallel(n_jobs=jobs) as parallel:
        candidates = parallel(delayed(priced)(pricer, *one) for one in drawn(count, seed))
        seconds = time.perf_counter() - begin
        Console(width=120).print(speed_table(candidates, seconds))
        some = Random(seed).sample(candidates, min(chosen, count))
        rows = parallel(delayed(compiled)(pricer, one) for one in some)
    if rows:
        Console(width=120).print(exactness_table(rows))
    if output:
        output.write_text(json.dumps(as_json(candidates, seconds, rows), indent=1) + "\n")


if __name__ == "__main__":
    main()
