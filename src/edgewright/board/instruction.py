"""The effect of an instruction on the stack and on control flow, as needed for a stack bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class ControlFlow(Enum):
    """Where execution continues."""

    NEXT = "next"
    BRANCH = "branch"  # to the target, or to the next instruction
    JUMP = "jump"  # to the target; without one, through a table or a pointer
    CALL = "call"  # of the target, then the next instruction; without a target, through a pointer
    RETURN = "return"


@dataclass(frozen=True, slots=True)
class Instruction:
    size: int
    flow: ControlFlow = ControlFlow.NEXT
    target: int | None = None
    push: int = 0  # bytes by which the stack pointer falls; negative if it rises
    push_by: int | None = None  # a register by whose value it falls
    push_up: bool = False  # it rises by that value instead
    through: int | None = None  # a jump to the address in this register, which may leave the function
    pops: int = 0  # registers popped from the stack, one bit each
    conditional: int = 0  # number of following instructions that may be skipped
    sets: int | None = None  # a register whose value becomes known
    value: int = 0
    adds_to: int | None = None  # that value is added to this register


Decoder = Callable[[bytes, int, int], Instruction]  # (code, offset into it, address)


def signed(value: int, bits: int) -> int:
    """The two's complement value of `bits` bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
