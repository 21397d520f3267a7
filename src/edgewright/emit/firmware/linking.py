"""A library as linked for its target, and never run: what it takes of flash, and of stack at most."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from ...board.machine import MIB, Bank, EmulatedMachine, machine_for
from ...board.toolchain import toolchain
from ...program.selection import Linked
from ..library import Library
from .image import build_firmware
from .measured import stack_promise

CODE, RAM, SPARE = Bank(0x0800_0000, 128 * MIB), Bank(0x2000_0000, 256 * MIB), Bank(0x6000_0000, 512 * MIB)


def link(library: Library, *, zig: bool | None = None) -> Linked:
    """Sizes as the linker finds them in memories that have room for everything, as the options ask to optimise.

    They are those of the firmware that is run to verify it: no size depends on what else there is.
    """
    tools, flag = toolchain(library.target, zig), library.options.optimise_flag(library.target)
    with tempfile.TemporaryDirectory(prefix="edgewright-") as folder:
        machine = _ample(machine_for(library.target, library.plan.lanes))
        elf = build_firmware(library, machine, tools, Path(folder).resolve(), optimise=flag).elf
        return Linked(
            compiler=f"{tools.name} {flag}",
            weights_bytes=elf.size(".weights"),
            code_bytes=elf.size(".library"),
            runtime_bytes=elf.size(".runtime"),
            stack_bytes=stack_promise(library, elf),
        )


def _ample(machine: EmulatedMachine) -> EmulatedMachine:
    """The machine with more memory than anybody emulates: whether something fits a board is for others to say."""
    return replace(machine, code=CODE, ram=RAM, spare=SPARE)
