"""Runs firmware under Unicorn: the processor with only the memory of the layout; no system to install."""

from __future__ import annotations

import gc
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakSet

from ..errors import EdgewrightError
from ..interrupts import interruptible
from ..platform.target import Architecture, Target
from .elf import Elf
from .layout import LinkLayout
from .machine import EmulatedMachine
from .qemu import TRACE

PAGE = 4096
FPGAIO_SECONDS, FPGAIO_COUNTER = 0x10, 0x18  # registers of the block from which the firmware reads the time
_SYSTEM = 0xE000_E000  # the system control space of a Cortex-M, here plain memory

_ENGINES: WeakSet[Any] = WeakSet()  # engines that still have memory
_MANY_ENGINES = 4

HANDLES = {"input.bin": 1, "record.bin": 2, TRACE: 3}

# Unicorn's names of the machines' processors; it has no Cortex-M55.
_MODELS = {
    "mps2-an385": "CORTEX_M3",
    "mps2-an386": "CORTEX_M4",
    "mps2-an500": "CORTEX_M7",
    "mps2-an505": "CORTEX_M33",
    "mps2-an521": "CORTEX_M33",  # one of its cores, with none to release
}


def has_unicorn() -> bool:
    return find_spec("unicorn") is not None


def require_unicorn(machine: EmulatedMachine | None = None) -> None:
    """Raises an error if the emulator, or the machine's processor in it, is missing."""
    if not has_unicorn():
        raise EdgewrightError("the emulator Unicorn is not installed; pip install 'edgewright[board]'")
    if machine is not None and machine.fpgaio and machine.name not in _MODELS:
        package = "Debian: apt install qemu-system-arm"
        raise EdgewrightError(f"Unicorn has not the processor of {machine.name}; install QEMU ({package})")


@dataclass
class _Files:
    """The semihosting files: one to read, one to write, one that grows."""

    inputs: bytes
    at: int = 0
    record: bytearray = field(default_factory=bytearray)
    trace: bytearray = field(default_factory=bytearray)
    ended: bool = False


def run_unicorn(
    elf: Elf,
    layout: LinkLayout,
    target: Target,
    machine: EmulatedMachine,
    inputs: bytes,
    timeout_s: float,
    folder: Path,
) -> bytes:
    """The record of a run, with instruction counts as stamps. Other output goes to `folder`."""
    import unicorn

    core = _core(target, machine)
    _map_memory(core.uc, elf, layout, machine)
    files = _Files(inputs)
    stamps: list[int] = []
    call = _breakpoint(elf, core)
    core.uc.hook_add(unicorn.UC_HOOK_CODE, lambda *_: _semihosting(core, files, call), begin=call, end=call)
    core.uc.hook_add(unicorn.UC_HOOK_BLOCK, _counter(core, elf.symbols["board_now"][0] & ~1, stamps, machine.fpgaio))
    start = time.monotonic()
    try:
        core.start(elf, int(timeout_s * 1e6))
    except unicorn.UcError as error:
        place = elf.place(core.uc.reg_read(core.pc))
        raise EdgewrightError(f"the firmware faulted under Unicorn: {error} ({place})") from None
    if not files.ended:
        if time.monotonic() - start >= timeout_s:
            raise EdgewrightError(f"the firmware under Unicorn did not end within {timeout_s:g} s")
        raise EdgewrightError(f"the firmware under Unicorn stopped at {elf.place(core.uc.reg_read(core.pc))}")
    (folder / TRACE).write_bytes(files.trace)
    return bytes(files.record) if machine.fpgaio else _with_stamps(bytes(files.record), stamps)


@dataclass(frozen=True)
class _EmulatedCore:
    """A processor: its start, its registers, the length of its instructions."""

    uc: Any
    pc: int
    result: int  # register of the operation number and of the result
    argument: int
    mark: bytes  # the breakpoint
    thumb: bool

    def start(self, elf: Elf, timeout_us: int) -> None:
        begin = elf.symbols["board_reset"][0] | int(self.thumb)
        interruptible(lambda: self.uc.emu_start(begin, 0xFFFF_FFFE, timeout=timeout_us), self.uc.emu_stop)


def new_engine(target: Target) -> Any:
    """An engine for the target's architecture, without memory.

    Each reserves a gibibyte of addresses and is kept alive by a cycle with its hooks: unused ones are collected first
    if there are many.
    """
    import unicorn

    if len(_ENGINES) >= _MANY_ENGINES:
        gc.collect()
    if target.architecture is Architecture.RV32:
        engine = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
    else:
        engine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    _ENGINES.add(engine)
    return engine


def _core(target: Target, machine: EmulatedMachine) -> _EmulatedCore:
    from unicorn import arm_const
    from unicorn import riscv_const as riscv

    uc = new_engine(target)
    if target.architecture is Architecture.RV32:
        return _EmulatedCore(
            uc, riscv.UC_RISCV_REG_PC, riscv.UC_RISCV_REG_A0, riscv.UC_RISCV_REG_A1, b"\x73\x00\x10\x00", False
        )
    uc.ctl_set_cpu_model(getattr(arm_const, f"UC_CPU_ARM_{_MODELS[machine.name]}"))
    return _EmulatedCore(
        uc, arm_const.UC_ARM_REG_PC, arm_const.UC_ARM_REG_R0, arm_const.UC_ARM_REG_R1, b"\xab\xbe", True
    )


def _map_memory(uc: Any, elf: Elf, layout: LinkLayout, machine: EmulatedMachine) -> None:
    """Maps only the pages of the regions: any other access ends the run."""
    pages: set[int] = set()
    for region in layout.regions:
        pages |= set(range(region.origin // PAGE, -(-(region.origin + region.length) // PAGE)))
    if machine.fpgaio:
        pages |= {machine.fpgaio // PAGE, _SYSTEM // PAGE}
    if machine.system_control:
        pages.add(machine.system_control // PAGE)
    for page in sorted(pages):
        if page - 1 not in pages:
            first = page
        if page + 1 not in pages:
            uc.mem_map(first * PAGE, (page + 1 - first) * PAGE)
    for segment in elf.segments:
        uc.mem_write(segment.address, segment.data)


def _counter(core: _EmulatedCore, now: int, stamps: list[int], clock: int) -> Callable[..., None]:
    """Counts by blocks, each decoded once; a call of `board_now` is a stamp, which reads the count as the time."""
    lengths: dict[tuple[int, int], int] = {}
    total = 0

    def count(uc: Any, address: int, size: int, _: object) -> None:
        nonlocal total
        if address == now:
            stamps.append(total)
            if clock:
                uc.mem_write(clock + FPGAIO_SECONDS, struct.pack("<I", total >> 32))
                uc.mem_write(clock + FPGAIO_COUNTER, struct.pack("<I", total & 0xFFFF_FFFF))
        length = lengths.get((address, size))
        if length is None:
            length = lengths[address, size] = instructions_in(bytes(uc.mem_read(address, size)), core.thumb)
        total += length

    return count


def instructions_in(code: bytes, thumb: bool) -> int:
    """The number of instructions in the bytes: Thumb's, or RISC-V's including compressed ones."""
    at = number = 0
    while at < len(code):
        word = int.from_bytes(code[at : at + 2], "little")
        is_long = word >> 11 in (0b11101, 0b11110, 0b11111) if thumb else word & 3 == 3
        at += 4 if is_long else 2
        number += 1
    return number


def _breakpoint(elf: Elf, core: _EmulatedCore) -> int:
    """The address of the instruction by which the firmware calls the host; it is skipped, never executed."""
    start, size = elf.symbols["board_call"]
    return start + bytes(core.uc.mem_read(start & ~1, size or 64)).index(core.mark) - (start & 1)


def _semihosting(core: _EmulatedCore, files: _Files, pc: int) -> None:
    uc = core.uc
    operation, argument = uc.reg_read(core.result), uc.reg_read(core.argument)
    words = struct.unpack("<III", bytes(uc.mem_read(argument, 12)))
    match operation:
        case 0x01:  # open
            result = HANDLES[bytes(uc.mem_read(words[0], words[2])).decode()]
        case 0x05:
            grown = files.trace if words[0] == HANDLES[TRACE] else files.record
            grown += uc.mem_read(words[1], words[2])
            result = 0
        case 0x06:
            data = files.inputs[files.at : files.at + words[2]]
            files.at += len(data)
            uc.mem_write(words[1], data)
            result = words[2] - len(data)
        case 0x20:
            files.ended = True
            uc.emu_stop()
            return
        case _:
            result = 0
    uc.reg_write(core.result, result)
    uc.reg_write(core.pc, (pc + len(core.mark)) | int(core.thumb))


def _with_stamps(record: bytes, stamps: list[int]) -> bytes:
    """The record with the counted stamps in place of those read: RISC-V has no clock here.

    Stamps come in the order before, ready, the probes, after.
    """
    if struct.unpack_from("<I", record, 4)[0] or len(stamps) < 3:
        return record
    packed = [struct.pack("<II", count >> 32, count & 0xFFFF_FFFF) for count in stamps]
    count = struct.unpack_from("<I", record, 36)[0]
    head = record[:8] + packed[0] + packed[1] + packed[-1] + record[32:40]
    return head + b"".join(packed[2:-1]) + record[40 + 8 * count :]
