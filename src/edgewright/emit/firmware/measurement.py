"""What linking and running on the virtual board tell: flash, RAM, stack, instructions, outputs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np

from ... import text
from ...board.elf import Elf
from ...board.machine import MIB, Bank, EmulatedMachine, machine_for
from ...board.qemu import TRACE, has_qemu, require_qemu, run_qemu
from ...board.record import Record, read_record
from ...board.stack import stack_bound
from ...board.toolchain import Toolchain, toolchain
from ...board.unicorn import has_unicorn, require_unicorn, run_unicorn
from ...errors import EdgewrightError
from ...network import Array, Network
from ...network.kernels import checked_input
from ...platform import Board
from ...platform.target import Architecture
from ...program.selection import Linked
from ..library import Library
from ..stagewise import Tracer
from .glue import Probes, glue
from .host_program import build_program, emulator, object_sizes, run_program
from .image import STACK, Firmware, Linkable, build_firmware


class Emulator(Enum):
    QEMU = "qemu"  # whole machines
    UNICORN = "unicorn"  # processors alone, from PyPI


@dataclass(frozen=True)
class Measurement:
    outputs: Mapping[str, Array]
    instructions: int | None  # of one run; inputs and outputs stay in the arena where they lie densely there
    critical_path: int | None  # of them, one after the other where two cores shared them; None unless asked for
    stages: Mapping[str, int]  # instructions of each; empty unless asked for
    stack_bytes: int | None  # high-water mark of the run
    stack_bound: int | None  # no run can take more, without interrupts; None where the code has no bound
    ram_linked: int  # .data and .bss of the library: its arenas
    flash_weights: int
    flash_code: int  # of the library: kernels, schedule, tables
    flash_runtime: int  # what the library calls: memcpy, mathematics, the compiler's helpers
    compiler: str
    emulator: str

    @property
    def flash(self) -> int:
        return self.flash_weights + self.flash_code + self.flash_runtime


def measure(
    library: Library,
    inputs: Mapping[str, Array],
    *,
    optimise: str = "-Os",
    profile: bool = False,
    board: Board | None = None,
    stack: int = STACK,
    emulator: Emulator | None = None,
    zig: bool | None = None,
    timeout_s: float = 600.0,
) -> Measurement:
    """Builds firmware for the library's target, runs it once on an emulated machine, and reads everything off.

    With `profile`, a second firmware with probes tells the instructions of each stage; the other figures are
    those of the first. `board` bounds RAM and flash; without it, RAM is what the plan asks for. Under an operating
    system (host, aarch64) nothing is counted.
    """
    with tempfile.TemporaryDirectory(prefix="edgewright-") as temporary:
        where = Path(temporary).resolve()
        tools, data = toolchain(library.target, zig), packed(library.network, inputs)
        if library.target.architecture in (Architecture.HOST, Architecture.AARCH64):
            return _measure_program(library, tools, where, data, optimise, timeout_s)
        machine = machine_for(library.target, library.plan.lanes)
        chosen = chosen_emulator(machine, emulator)

        def run(place: Path, probes: Probes) -> tuple[Firmware, Record]:
            firmware = build_firmware(
                library, machine, tools, place, optimise=optimise, probes=probes, stack=stack, board=board
            )
            return firmware, run_firmware(library, firmware, machine, chosen, data, timeout_s, len(library.stages))

        firmware, record = run(where, Probes.NONE)
        profiled = run(where / "profile", Probes.STAMPS)[1] if profile else None
        elf = firmware.elf
        return Measurement(
            outputs=unpacked(library.network, record.outputs),
            instructions=record.instructions,
            critical_path=profiled.critical_path if profiled else None,
            stages=dict(zip(library.stages, profiled.stages, strict=True)) if profiled else {},
            stack_bytes=record.stack,
            stack_bound=stack_promise(library, elf, record.stack),
            ram_linked=firmware.ram_linked,
            flash_weights=elf.size(".weights"),
            flash_code=elf.size(".library"),
            flash_runtime=elf.size(".runtime"),
            compiler=f"{tools.name} {optimise}",
            emulator=_named(chosen, machine, library.plan.lanes),
        )


def _named(emulator: Emulator, machine: EmulatedMachine, lanes: int) -> str:
    """The emulator, its machine, and how many cores of it run the lanes of a library that has several."""
    cores = machine.cores if emulator is Emulator.QEMU else 1
    return f"{emulator.value} {machine.name}" + (f" ({text.plural(cores, 'core')})" if lanes > 1 else "")


def run_firmware(
    library: Linkable,
    firmware: Firmware,
    machine: EmulatedMachine,
    emulator: Emulator,
    inputs: bytes,
    timeout_s: float,
    stages: int | None = None,
) -> Record:
    """What the run gave; with the number of `stages`, stamps beyond theirs are those of cores that took turns."""
    if emulator is Emulator.QEMU:
        found = run_qemu(firmware.path, machine, inputs, timeout_s)
        return read_record(found, machine, library.target, firmware.elf, stages)
    found = run_unicorn(firmware.elf, firmware.layout, library.target, machine, inputs, timeout_s, firmware.path.parent)
    return read_record(found, stamping(machine, emulator), library.target, firmware.elf, stages)


def stamping(machine: EmulatedMachine, emulator: Emulator) -> EmulatedMachine:
    """The machine as its stamps are to be read: those of Unicorn are counts of instructions."""
    return machine if emulator is Emulator.QEMU else replace(machine, fpgaio=0)


def chosen_emulator(machine: EmulatedMachine, wanted: Emulator | None = None) -> Emulator:
    """The emulator that was asked for, or QEMU, or Unicorn where it is the only one; an error says what to install."""
    if wanted is Emulator.UNICORN or (wanted is None and not has_qemu(machine) and has_unicorn()):
        require_unicorn(machine)
        return Emulator.UNICORN
    require_qemu(machine)
    return Emulator.QEMU


def _measure_program(
    library: Library, tools: Toolchain, folder: Path, inputs: bytes, optimise: str, timeout_s: float
) -> Measurement:
    program = build_program(library, glue(library, Probes.NONE), tools, folder, optimise, library.plan.lanes)
    outputs = run_program(library, program, inputs, timeout_s)
    code, ram = object_sizes(folder, "library")
    return Measurement(
        outputs=unpacked(library.network, outputs),
        instructions=None,
        critical_path=None,
        stages={},
        stack_bytes=None,
        stack_bound=None,
        ram_linked=ram,
        flash_weights=object_sizes(folder, "weights")[0],
        flash_code=code,
        flash_runtime=object_sizes(folder, "threads")[0],
        compiler=f"{tools.name} {optimise}",
        emulator=" ".join(emulator(library)) or "this machine",
    )


def stack_promise(library: Library, elf: Elf, used: int | None = None) -> int | None:
    """The most stack that a run can take; an error where one took more, since a bound is a promise."""
    root = f"{library.name}_run"
    pulled = library.plan.pulled
    own = (root, f"{root}_in")  # and what compilers split off them: NAME_run_in.part.0
    callers = [symbol for symbol in elf.symbols if symbol.split(".")[0] in own] if pulled else []
    bound = partial(stack_bound, elf, library.target.architecture, root, callers)
    # The harness hands out rows itself, on the same stack.
    alone = bound()
    most = bound([symbol for symbol in elf.symbols if symbol.startswith("pull_")]) if pulled else alone
    if used is not None and most is not None and used > most:
        raise EdgewrightError(
            f"the run took {used} bytes of stack, and {most} were found to be the most it can take; please report this"
        )
    return alone


def packed(network: Network, inputs: Mapping[str, Array]) -> bytes:
    """The inputs in the order of the network, as the harness reads them."""
    values = [checked_input(network.tensors[name], inputs) for name in network.inputs]
    return b"".join(value.tobytes() for value in values)


def unpacked(network: Network, data: bytes) -> dict[str, Array]:
    """The outputs as the harness wrote them."""
    outputs, at = {}, 0
    for name in dict.fromkeys(network.outputs):
        tensor = network.tensors[name]
        if at + tensor.bytes > len(data):
            raise EdgewrightError(f"the record ends before output '{name}'")
        outputs[name] = np.frombuffer(data, tensor.dtype.numpy, tensor.size, at).reshape(tensor.shape).copy()
        at += tensor.bytes
    return outputs


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


CODE, RAM, SPARE = Bank(0x0800_0000, 128 * MIB), Bank(0x2000_0000, 256 * MIB), Bank(0x6000_0000, 512 * MIB)


def link(library: Library, *, zig: bool | None = None) -> Linked:
    """The library as linked and never run: its sizes, in memories that have room for everything, optimised as asked.

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
