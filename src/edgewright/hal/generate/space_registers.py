"""The registers of one space and the semantics of their fields: what the generator of a HAL function needs to know."""

from __future__ import annotations

from dataclasses import dataclass

from ..analysis.accesses import Kind
from ..analysis.spaces import Slot, Space
from ..design import Design
from ..language.description import Description
from ..language.semantics import Nature
from ..layout.layout import Piece, Register, SpaceLayout
from ..layout.rules import written_registers
from .c_text import field_type, read_type
from .calls import Call


@dataclass(frozen=True, slots=True)
class SpaceRegisters:
    space: Space
    layout: SpaceLayout
    description: Description
    is_fixed: bool = False  # hardware that exists: bits without a field are not ours to change

    def nature(self, slot: str) -> Nature:
        found = self.space.slot(slot)
        return self.description.nature(found.group, found.field.name)

    def slots(self, names: tuple[str, ...]) -> tuple[Slot, ...]:
        return tuple(self.space.slot(name) for name in names)

    def registers(self, call: Call) -> tuple[Register, ...]:
        """The registers that a function reads, or those and the views that it writes: low parts of fields first."""
        slots = call.slots
        found = (
            written_registers(self.layout, slots, call.kept, self.space, self.description)
            if call.kind is Kind.WRITE
            else {register: None for slot in slots for register in self.layout.holding(slot)}
        )
        return tuple(sorted(found, key=lambda register: min(p.low for p in register.pieces if p.slot in slots)))

    def indices(self, call: Call) -> list[str]:
        """C: the indices that a function takes, in order."""
        return [f"i{n}" for n in range(len(self.space.slot(call.slots[0]).counts) + call.is_bit)]

    def is_shared(self, register: Register) -> bool:
        """Whether an interrupt handler uses a field of the register."""
        return any(self.space.slot(piece.slot).field.shared_with_isr for piece in register.pieces)


def space_registers(design: Design, space: str) -> SpaceRegisters:
    analysis, layout = design.analysis, design.layout
    return SpaceRegisters(analysis.spaces[space], layout.spaces[space], analysis.description, layout.is_fixed)


def address(register: Register, qualifier: str = "") -> str:
    """C: a pointer to the register, from `grp` and the indices `i0`, `i1`, …

    It is computed as a pointer, not as a number: then compilers keep a base and access at offsets from it.
    """
    terms = [f"({qualifier}char *)grp"] + ([f"0x{register.offset:x}u"] if register.offset else [])
    last = len(register.counts) - 1
    for number, stride in enumerate(register.strides):
        index = f"i{number}"
        terms.append(f"{index} / {register.lanes}u" if number == last and register.lanes > 1 else index)
        terms[-1] = f"({terms[-1]}) * {stride}u" if "/" in terms[-1] else f"{terms[-1]} * {stride}u"
    total = f"({qualifier}void *)({' + '.join(terms)})" if len(terms) > 1 else "grp"
    return f"({qualifier}volatile uint{register.width}_t *){total}"


def value_type(slot: Slot, call: Call) -> str:
    """C: the type of a value that a function reads or writes."""
    return field_type(1 if call.is_bit else slot.field.bits)


def result_type(slot: Slot, call: Call) -> str:
    """C: the type of a value that is read; one that is only compared is as wide as C makes it anyway."""
    if call.is_polled and slot.field.bits <= 16:
        return "int"
    return read_type(value_type(slot, call), len(call.slots))


def shift_amount(register: Register, piece: Piece, call: Call) -> str:
    """C: how far up the piece lies; empty at bit 0. The last index says which lane, or which bit of a word."""
    if call.is_bit:
        return f"({piece.bit}u + i{len(register.counts)})" if piece.bit else f"i{len(register.counts)}"
    if piece.lanes == 1:
        return str(piece.bit) if piece.bit else ""
    lane = f"i{len(register.counts) - 1} % {piece.lanes}u"
    scaled = f"({lane})" if piece.size == 1 else f"({lane}) * {piece.size}u"
    return f"({f'{piece.bit}u + ' if piece.bit else ''}{scaled})"
