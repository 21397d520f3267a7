"""What lies between the stages of a library on the virtual board: its arenas, written out after each stage."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...board.machine import machine_for
from ...board.qemu import TRACE
from ...board.toolchain import toolchain
from ...network import Array
from ...platform import Board
from ..library import Library
from ..stagewise import Tracer
from .glue import Probes
from .image import build_firmware
from .measured import chosen_emulator, packed, run_firmware


def trace(
    library: Library,
    inputs: Mapping[str, Array],
    *,
    optimise: str = "-Os",
    board: Board | None = None,
    timeout_s: float = 600.0,
) -> dict[str, Array]:
    """The tensors between stages, of one run on the emulated machine of the library's target."""
    machine = machine_for(library.target, library.plan.lanes)
    tracer = Tracer(library.plan)
    with tempfile.TemporaryDirectory(prefix="edgewright-") as folder:
        firmware = build_firmware(
            library,
            machine,
            toolchain(library.target),
            Path(folder).resolve(),
            optimise=optimise,
            probes=Probes.MEMORY,
            board=board,
        )
        data = packed(library.network, inputs)
        run_firmware(library, firmware, machine, chosen_emulator(machine), data, timeout_s)
        with (firmware.path.parent / TRACE).open("rb") as file:
            for stage in range(len(library.stages)):
                arenas = {name: np.frombuffer(file.read(size), np.uint8) for name, size in library.arenas.items()}
                tracer.take(stage, arenas)
    return tracer.tensors
