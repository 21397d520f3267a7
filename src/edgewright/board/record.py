"""The record that the firmware writes: stamps, stack, outputs; or the reason why it stopped."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from ..errors import EdgewrightError
from ..platform.target import Architecture, Target
from .elf import Elf
from .layout import GUARD
from .machine import EmulatedMachine

MAGIC = 0x52425745


class RunStatus(Enum):
    OK = 0
    FAULT = 1
    NO_INPUT = 2


@dataclass(frozen=True, slots=True)
class Record:
    instructions: int
    stages: tuple[int, ...]  # instructions of each, in order; empty unless the library was built with probes
    stack: int
    outputs: bytes
    critical_path: int | None = None  # sequential instructions, if two cores shared the work


def read_record(data: bytes, machine: EmulatedMachine, target: Target, elf: Elf, stages: int | None = None) -> Record:
    """The results of a run; a fault of the firmware is an error that says where and why.

    Stamps of its stages are followed by those of two cores that took turns, three for each turn.
    """
    if len(data) < 8 or struct.unpack_from("<I", data)[0] != MAGIC:
        raise EdgewrightError(f"the firmware on {machine.name} ended without a record")
    status = RunStatus(struct.unpack_from("<I", data, 4)[0])
    if status is RunStatus.FAULT:
        pc, cause, address = struct.unpack_from("<III", data, 8)
        raise EdgewrightError(_fault(pc, cause, address, machine, target, elf))
    if status is RunStatus.NO_INPUT:
        raise EdgewrightError(f"the firmware on {machine.name} could not read its inputs")
    words = struct.unpack_from("<8I", data, 8)
    before, ready, after = ((words[i], words[i + 1]) for i in (0, 2, 4))
    stack, count = words[6:]
    at = 40 + 8 * count
    stamps = list(struct.iter_unpack("<II", data[40:at]))
    cost = machine.instructions(before, ready)
    instructions = machine.instructions(ready, after) - cost
    turns = len(stamps) if stages is None else stages + 3
    return Record(
        instructions, _stages(stamps[:turns], machine), stack, data[at:], _critical_path(stamps[turns:], machine)
    )


def _critical_path(stamps: list[tuple[int, int]], machine: EmulatedMachine) -> int | None:
    """For each turn the share of the core with more work."""
    if not stamps:
        return None
    shares = [machine.instructions(a, b) for a, b in pairwise(stamps)]
    return sum(max(shares[at : at + 2]) for at in range(0, len(shares), 3))


def _stages(stamps: list[tuple[int, int]], machine: EmulatedMachine) -> tuple[int, ...]:
    """The first two stamps enclose nothing: their difference is the cost of a probe."""
    if len(stamps) < 3:
        return ()
    cost = machine.instructions(stamps[0], stamps[1])
    return tuple(machine.instructions(a, b) - cost for a, b in pairwise(stamps[2:]))


_ARM = {
    0: "instruction fetch from forbidden memory",
    1: "data access to forbidden memory",
    4: "stack overflow",
    8: "instruction fetch from memory that is not there",
    9: "data access to memory that is not there",
    10: "data access to memory that is not there",
    12: "stack overflow",
    16: "undefined instruction",
    17: "jump out of Thumb code",
    19: "instruction of a coprocessor that is off",
    20: "stack overflow",
    24: "unaligned access",
    25: "division by zero",
}
_RISCV = {
    0: "misaligned jump",
    1: "instruction fetch from forbidden memory",
    2: "illegal instruction",
    3: "breakpoint",
    4: "misaligned load",
    5: "load from forbidden memory",
    6: "misaligned store",
    7: "store to forbidden memory",
}


def _fault(pc: int, cause: int, address: int, machine: EmulatedMachine, target: Target, elf: Elf) -> str:
    bottom = elf.symbols["__stack_bottom"][0]
    if bottom - GUARD <= address < bottom:
        reasons = ["stack overflow"]
    elif target.architecture is Architecture.CORTEX_M:
        reasons = [text for bit, text in _ARM.items() if cause >> bit & 1]
    else:
        reasons = [_RISCV.get(cause, "trap")]
    reason = " and ".join(dict.fromkeys(reasons)) or "hard fault"
    where = f" at {address:#010x}" if address else ""
    return f"the firmware faulted on {machine.name}: {reason}{where} ({elf.place(pc)}, cause {cause:#x})"
