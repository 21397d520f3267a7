"""How functions are called on RV32 (ilp32) and Cortex-M (AAPCS): which words go where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...platform.target import Architecture


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar type as calls need it; `bits` is 0 for void."""

    bits: int = 32
    is_signed: bool = False
    group: str | None = None  # it points to such a group
    pointee: int = 0  # bytes of what else it points to
    is_const: bool = False  # what it points to
    callback: Signature | None = None  # it points to a function
    values: tuple[int, ...] = ()  # the only ones that it has, for an enumeration
    inside: tuple[tuple[int, Type], ...] = ()  # it points to a struct with pointers at these bytes
    objects: tuple[str, ...] = ()  # variables of the driver that it may point to
    flags: tuple[int, ...] = ()  # bytes of what it points to that are `bool`: nothing but 0 and 1 may be there

    @property
    def is_pointer(self) -> bool:
        return self.group is not None or self.pointee > 0 or self.callback is not None

    def held(self, value: int) -> int:
        """The value as registers hold it: extended to 32 bits by its sign, or with zeros."""
        value &= (1 << self.bits) - 1
        if self.is_signed and self.bits < 32 and value >> (self.bits - 1):
            value -= 1 << self.bits
        return value & ((1 << max(self.bits, 32)) - 1)


@dataclass(frozen=True, slots=True)
class Signature:
    name: str
    result: Type
    parameters: tuple[tuple[str, Type], ...] = ()
    problem: str = ""  # why such a function cannot be called here


@dataclass(frozen=True, slots=True)
class PassedArguments:
    """Words for the argument registers and, from the stack pointer up, for the stack."""

    registers: tuple[int, ...]
    stack: tuple[int, ...]


def pass_arguments(architecture: Architecture, types: Sequence[Type], values: Sequence[int]) -> PassedArguments:
    """Where a call's arguments go."""
    words: dict[int, int] = {}
    for type_, value, places in zip(types, values, places_of(architecture, types), strict=True):
        held = type_.held(value)
        words |= {place: held >> 32 * part & 0xFFFF_FFFF for part, place in enumerate(places)}
    room = _room(architecture)
    highest = max(words, default=-1)
    registers = tuple(words.get(place, 0) for place in range(min(highest + 1, room)))
    return PassedArguments(registers, tuple(words.get(place, 0) for place in range(room, highest + 1)))


def places_of(architecture: Architecture, types: Sequence[Type]) -> list[tuple[int, ...]]:
    """The words of each argument: numbers of registers, and beyond those, words of the stack.

    Arm puts 64-bit values into even places only; RISC-V does so on the stack alone.
    """
    room = _room(architecture)
    found: list[tuple[int, ...]] = []
    at = 0
    for type_ in types:
        wide = type_.bits > 32
        if wide and at % 2 and (architecture is Architecture.CORTEX_M or at >= room):
            at += 1
        found.append((at, at + 1) if wide else (at,))
        at += 1 + wide
    return found


def _room(architecture: Architecture) -> int:
    return 4 if architecture is Architecture.CORTEX_M else 8
