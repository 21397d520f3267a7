"""RAM of the MicroNet networks for keyword spotting, beside what their authors publish.

    python benchmarks/micronet.py [--check] [--json FILE]

MicroNet-KWS S, M and L (Banbury et al., MLSys 2021, table 5) as architectures with random int8 weights: input 49 × 10,
a convolution 10 × 4, depthwise-separable blocks of which the first has stride 2, a mean, 12 classes. The published SRAM
is that of TensorFlow Lite Micro, which includes its interpreter; ours is the arena that the linker places, to which the
stack comes that the table states. --check compiles the networks and runs them on the virtual board.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from edgewright.complete_plan import find_complete
from edgewright.emit.verify import verify
from edgewright.fusion.timing import Timing
from edgewright.platform import load_board
from edgewright.search.architecture import CnnArchitecture, PlainBlock, SeparableBlock
from edgewright.search.model import default_ranges, onnx_model
from edgewright.search.pricing import CandidatePricer, Manner

BOARD = "nucleo-l4r5zi"  # a Cortex-M4 with room for the weights of L
INPUT, CLASSES = (49, 10, 1), 12
MANNERS = (Manner.WHOLE, Manner.TILED, Manner.STREAMED, Manner.PULLED)


@dataclass(frozen=True)
class PublishedNetwork:
    """A network with the figures of its authors, and what we aim at."""

    stem: int  # channels of the first convolution
    blocks: tuple[int, ...]  # channels of the separable blocks
    sram_kb: float  # of 1000 bytes
    flash_kb: float
    aim_kb: float


NETWORKS = {
    "S": PublishedNetwork(84, (112, 84, 84, 84, 196), 53.2, 102, 10.5),
    "M": PublishedNetwork(140, (140, 140, 140, 112, 196), 103.3, 163, 16),
    "L": PublishedNetwork(276, (248, 276, 276, 248, 248, 248, 248), 208.8, 612, 40),
}


@dataclass(frozen=True)
class NetworkFigures:
    network: str
    manner: str
    ram_bytes: int  # of all buffers
    stack_bytes: int | None
    flash_bytes: int  # weights, tables and code as linked
    instructions: int  # estimated
    counted: int | None  # on the virtual board


def architecture_of(network: PublishedNetwork) -> CnnArchitecture:
    first, *others = network.blocks
    blocks = (SeparableBlock(first, (3, 3), (2, 2)), *(SeparableBlock(channels, (3, 3)) for channels in others))
    return CnnArchitecture(INPUT, (PlainBlock(network.stem, (10, 4)), *blocks), CLASSES)


def measured(name: str, manner: Manner, is_checked: bool) -> NetworkFigures:
    """The figures of a network under one manner; the code compared with onnxruntime where it is checked."""
    architecture = architecture_of(NETWORKS[name])
    pricer = CandidatePricer(load_board(BOARD), manner)
    model = onnx_model(architecture, None, default_ranges(architecture))
    library = find_complete(pricer.network(model), pricer.request, pricer.board, pricer.target).library
    plan, counted = library.plan, None
    if is_checked:
        figures = verify(library, model.SerializeToString(), count=1, board=pricer.board)
        assert figures.verified and figures.ram_linked == plan.peak_bytes
        counted = figures.instructions
    estimated = round(Timing(pricer.target).of(plan))
    return NetworkFigures(name, manner.value, plan.peak_bytes, plan.stack_bytes, plan.flash_bytes, estimated, counted)


def table(rows: list[NetworkFigures]) -> Table:
    made = Table(title="MicroNet-KWS with random int8 weights, Cortex-M4")
    for heading in ("network", "manner", "RAM, B", "published, B", "aim, B", "stack, B", "flash, B", "instructions"):
        made.add_column(heading, justify="left" if heading in ("network", "manner") else "right")
    for row in rows:
        published = NETWORKS[row.network]
        figures = (row.ram_bytes, published.sram_kb * 1000, published.aim_kb * 1000, row.stack_bytes or 0)
        flash, instructions = row.flash_bytes, row.counted or row.instructions
        numbers = [f"{figure:,.0f}" for figure in (*figures, flash, instructions)]
        made.add_row(row.network, row.manner, *numbers, style="green" if figures[0] <= figures[2] else None)
    return made


@click.command()
@click.option("--check", "is_checked", is_flag=True, help="Run the code on the virtual board too.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Write the figures to this file.")
def main(is_checked: bool, output: Path | None) -> None:
    """Plans, compiles and prints; figures in green keep the aim."""
    rows = [measured(name, manner, is_checked) for name in NETWORKS for manner in MANNERS]
    Console(width=120).print(table(rows))
    if output:
        output.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
