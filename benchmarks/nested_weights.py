"""Four scenarios that are slices of one network: flash, code and instructions on the virtual board, bit by bit.

    python benchmarks/nested_weights.py [MODEL ...] [--target cortex-m4] [--own-biases] [--most 1.15] [--json FILE]

Each int8 network of $EDGEWRIGHT_CORPUS/models is cut to 1, 0.75, 0.5 and 0.25 of its channels. All four are linked into
one firmware and each is run in it; then each is linked and run alone, as it is without the others. Every output is
compared with the reference execution. With --own-biases, each width has other biases, as training each gives them. Ends
with status 1 when an output is wrong, or when the four take more than so many times the flash of the largest.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from edgewright.application.library import AppLibrary, emit_application
from edgewright.application.search import JointSearch
from edgewright.board.machine import machine_for
from edgewright.board.toolchain import toolchain
from edgewright.emit.firmware.glue import HarnessGlue
from edgewright.emit.firmware.image import STACK, build_image, library_flags
from edgewright.emit.firmware.measurement import chosen_emulator, run_firmware
from edgewright.kernels.printing.source import CWriter
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.read import read
from edgewright.program.options import Options

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.helpers.nested_networks import application_of, narrowed

MODELS = ("mlperf_kws_ref_int8", "mlperf_ic_resnet8_int8", "mlperf_vww96_int8")
TARGETS = ("cortex-m4", "rv32imc", "cortex-m0plus", "cortex-m55")
WIDTHS = (1.0, 0.75, 0.5, 0.25)


@dataclass(frozen=True)
class Linked:
    """One firmware, and the instructions of a run of each network in it."""

    weights: int
    code: int  # with tables, and what it calls
    ram: int
    instructions: tuple[int, ...]

    @property
    def flash(self) -> int:
        return self.weights + self.code


@dataclass(frozen=True)
class Row:
    model: str
    target: str
    together: Linked
    alone: tuple[Linked, ...]

    @property
    def ratios(self) -> dict[str, float]:
        largest = self.alone[0]
        return {
            "flash_alone": sum(one.flash for one in self.alone) / largest.flash,
            "flash": self.together.flash / largest.flash,
            "weights": self.together.weights / largest.weights,
            "code": self.together.code / largest.code,
        }

    @property
    def slower(self) -> list[float]:
        """Instructions in the firmware of all, for each in its own."""
        alone = [one.instructions[0] for one in self.alone]
        return [all_ / one for all_, one in zip(self.together.instructions, alone, strict=True)]


def glue(library: AppLibrary) -> HarnessGlue:
    """A harness that runs the network whose number it reads."""
    c, parts = CWriter(), library.code.parts
    ends = [
        [part.network.tensors[name].bytes for name in (*part.network.inputs, *part.network.outputs)] for part in parts
    ]
    reads, writes = max(x for x, _ in ends), max(y for _, y in ends)
    c.lines += ['#include "board.h"', f'#include "{library.name}.h"', ""]
    c.line("BOARD_MEMORY board_stamp board_probes[1];")
    c.line("const uint32_t board_probe_count = 0;")
    c.line(f"BOARD_MEMORY static uint8_t x[{reads}], y[{writes}];")
    c.line("BOARD_MEMORY static uint32_t which;")
    with c.block("int32_t board_inputs(void)"):
        c.line(f"static const uint32_t sizes[] = {{{', '.join(str(x) for x, _ in ends)}}};")
        c.line("return board_read(&which, 4) || board_read(x, sizes[which]);")
    with c.block("void board_run(void)"):
        c.line("board_stack_top = board_stack();")
        with c.block("switch (which)"):
            for number, part in enumerate(parts):
                call = f"{library.code.function(part)}((const void *)x, (void *)y)"
                c.line(f"case {number}: {call}; break;")
    with c.block("void board_outputs(void)"):
        c.line(f"board_write(y, {writes}u);")
    return HarnessGlue(c.text(), reads + writes + 64)


def linked(networks: list[Network], target: str) -> Linked:
    """A firmware of these networks, each run once; an error where an output is not that of the reference."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        application = application_of(networks, target, folder, "plain = true")
        library = emit_application(application, JointSearch(application).fastest.layout)
        machine, tools = machine_for(library.target), toolchain(library.target)
        flags = library_flags(library, Options().optimise_flag(library.target))
        firmware = build_image(library, glue(library), machine, tools, folder, flags, 2 * STACK)
        counts = []
        for number, network in enumerate(networks):
            inputs = random_inputs(network, seed=number)
            given = np.uint32(number).tobytes() + b"".join(value.tobytes() for value in inputs.values())
            record = run_firmware(library, firmware, machine, chosen_emulator(machine), given, 600.0)
            (expected,) = execute(network, inputs).values()
            if record.outputs[: expected.nbytes] != expected.tobytes():
                raise click.ClickException(f"'{network.name}' computes a wrong output on {target}")
            counts.append(record.instructions)
        code = firmware.elf.size(".library", ".runtime")
        return Linked(firmware.elf.size(".weights"), code, firmware.ram_linked, tuple(counts))


@click.command()
@click.argument("models", nargs=-1)
@click.option("--target", "targets", multiple=True, default=TARGETS, show_default=True)
@click.option("--own-biases", is_flag=True, help="Give each width other biases.")
@click.option("--most", default=1.15, show_default=True, help="Flash of the four over that of the largest.")
@click.option("--json", "path", type=click.Path(path_type=Path))
def main(models: tuple[str, ...], targets: tuple[str, ...], own_biases: bool, most: float, path: Path | None) -> None:
    corpus = os.environ.get("EDGEWRIGHT_CORPUS")
    if not corpus:
        raise click.UsageError("EDGEWRIGHT_CORPUS names no folder with models.")
    table = Table(title="Four nested scenarios in one firmware, over the largest one alone", title_justify="left")
    for heading in ("network", "target", "flash apart", "flash", "weights", "code", "instructions of each"):
        table.add_column(heading, justify="left" if heading in ("network", "target") else "right")
    rows = []
    for name in models or MODELS:
        file = Path(corpus).resolve() / "models" / f"{name}.tflite"
        networks = [narrowed(read(file), width, 1 if own_biases else None) for width in WIDTHS]
        for target in targets:
            alone = tuple(linked([network], target) for network in networks)
            rows.append(row := Row(name, target, linked(networks, target), alone))
            slower = ", ".join(f"{100 * (ratio - 1):+.1f} %" for ratio in row.slower)
            table.add_row(name, target, *(f"{ratio:.3f}" for ratio in row.ratios.values()), slower)
    Console(width=140).print(table)
    if path is not None:
        found = [asdict(row) | {"ratios": row.ratios, "slower": row.slower} for row in rows]
        path.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(1 if any(row.ratios["flash"] > most for row in rows) else 0)


if __name__ == "__main__":
    main()
