"""What an instruction does to the stack and to the flow of control: all that a bound on the stack needs of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class ControlFlow(Enum):
    """Where execution goes on."""

    NEXT = "next"
    BRANCH = "branch"  # to the target, or to the next instruction
    JUMP = "jump"  # to the target; to one of a table or behind a pointer where there is none
    CALL = "call"  # of the target, and on to the next instruction; of what a pointer leads to where there is none
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class Instruction:
    size: int
    flow: ControlFlow = ControlFlow.NEXT
    target: int | None = None
    push: int = 0  # bytes that the stack pointer goes down by; negative where it goes up
    push_by: int | None = None  # a register whose value it goes down by
    push_up: bool = False  # up by that value instead
    through: int | None = None  # a jump to where this register points, which may leave the function
    pops: int = 0  # registers that are taken from the stack, a bit each
    conditional: int = 0  # this many instructions after it may be skipped each
    sets: int | None = None  # a register that becomes known: its value
    value: int = 0
    adds_to: int | None = None  # that value is added to what this register holds


Decoder = Callable[[bytes, int, int], Instruction]  # (code, offset into it, address)


def signed(value: int, bits: int) -> int:
    """The number that `bits` bits mean in two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
