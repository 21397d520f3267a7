"""HAL functions that write: a plain store where no other bits must be preserved, otherwise a read-modify-write."""

from __future__ import annotations

from collections.abc import Iterator

from ..layout.layout import Piece, Register
from .c_text import arithmetic_type, end_bit, field_type, literal, ones, register_mask, type_bits
from .calls import Call
from .space_registers import SpaceRegisters, address, shift_amount, value_type

_SMALL = 1 << 11  # constants below it fit an instruction of RISC-V, and so do those whose complement does


def write_function(placement: SpaceRegisters, call: Call, name: str) -> list[str]:
    """The lines of one writing HAL function; a single write gives back the value as it is stored."""
    slots = placement.slots(call.slots)
    values = [f"{value_type(slot, call)} v{n}" for n, slot in enumerate(placement.slots(call.given))]
    indices = [f"uint32_t {index}" for index in placement.indices(call)]
    parameters = ", ".join([f"struct {call.space} *grp", *indices, *values])
    stores = _stores(placement, call)
    if len(slots) > 1:
        return [f"static inline void {name}({parameters})", "{", *stores, "}"]
    result, bits = value_type(slots[0], call), 1 if call.is_bit else slots[0].field.bits
    stored = "v0" if bits == type_bits(bits) else f"({result})(v0 & {literal(ones(bits))})"
    return [f"static inline {result} {name}({parameters})", "{", *stores, f"    return {stored};", "}"]


def _stores(placement: SpaceRegisters, call: Call) -> list[str]:
    registers = placement.registers(call)
    stores = [list(_store(placement, call, register)) for register in registers]
    for n, lines in enumerate(stores):
        if len(stores) > 1 and len(lines) > 1:  # each with a `p` of its own
            stores[n] = ["{", *(f"    {line}" for line in lines), "}"]
    return [f"    {line}" for lines in stores for line in lines]


def needs_critical_section(placement: SpaceRegisters, call: Call) -> bool:
    """Whether the function reads, modifies and writes a register that an interrupt handler uses."""
    return any(
        placement.is_shared(register) and _kept(placement, call.given, register)
        for register in placement.registers(call)
    )


def _store(placement: SpaceRegisters, call: Call, register: Register) -> Iterator[str]:
    terms = " | ".join(_term(placement, call, register, p) for p in register.pieces if p.slot in call.given)
    cast = f"(uint{register.width}_t)" if register.width < 32 else ""
    if not _kept(placement, call.given, register):
        yield f"*{address(register)} = {f'{cast}({terms})' if cast else terms};"
        return
    shared = placement.is_shared(register)
    text = f"{_rest(placement, call, register)} | {terms}"
    yield f"volatile uint{register.width}_t *const p = {address(register)};"
    if shared:
        yield "HAL_ENTER_CRITICAL();"
    yield f"*p = {f'{cast}({text})' if cast else text};"
    if shared:
        yield "HAL_EXIT_CRITICAL();"


def _kept(placement: SpaceRegisters, slots: tuple[str, ...], register: Register) -> int:
    """The bits that a write of the slots must put back, the lane that is written included."""
    kept = 0
    for piece in register.pieces:
        nature = placement.nature(piece.slot)
        if piece.slot in slots:
            kept |= register_mask(piece) if piece.lanes > 1 and not nature.neutral else 0
            continue
        assert nature.neutral or not nature.acts, f"{piece.slot} must not share a register with {slots}"
        kept |= 0 if nature.neutral else register_mask(piece)
    return kept


def _rest(placement: SpaceRegisters, call: Call, register: Register) -> str:
    """C: what was read, without the bits that are written."""
    lanes = [p for p in register.pieces if p.slot in call.slots and p.lanes > 1]
    if not lanes:
        return f"(*p & {literal(_and_mask(placement, call.slots, register))})"
    kind = arithmetic_type(register.width)
    cleared = [f"~(({kind}){literal(ones(p.size))} << {shift_amount(register, p, call)})" for p in lanes]
    alike = all(not placement.nature(p.slot).neutral or p.slot in call.slots for p in register.pieces)
    static = [] if alike else [literal(_kept(placement, call.slots, register))]
    return f"(*p & {' & '.join(static + cleared)})"


def _and_mask(placement: SpaceRegisters, slots: tuple[str, ...], register: Register) -> int:
    """A constant that keeps what must be kept and clears what must be cleared; short where there is a choice.

    Bits without a field and read-only ones may be either; in hardware that exists they stay what they were.
    """
    kept = _kept(placement, slots, register)
    free = ones(register.width)
    for piece in register.pieces:
        if placement.nature(piece.slot).writable:
            free &= ~register_mask(piece)
    return kept if kept < _SMALL and not placement.is_fixed else kept | free


def _term(placement: SpaceRegisters, call: Call, register: Register, piece: Piece) -> str:
    """C: the value in its place."""
    number = call.given.index(piece.slot)
    kind = arithmetic_type(register.width)
    amount = shift_amount(register, piece, call)
    if call.is_bit:
        return f"(({kind})(v{number} & 1u) << {amount})"
    text = f"({kind})(v{number} >> {piece.low})" if piece.low else f"({kind})v{number}"
    bits = placement.space.slot(piece.slot).field.bits
    if text.startswith(f"({field_type(bits)})v"):
        text = f"v{number}"
    if _needs_mask(placement, register, piece, type_bits(bits) - piece.low):
        text = f"({text} & {literal(ones(piece.size))})"
    return f"({text} << {amount})" if amount else text


def _needs_mask(placement: SpaceRegisters, register: Register, piece: Piece, bits: int) -> bool:
    """Whether a value of so many bits could reach a field above; bits of our own that hold none ignore writes."""
    if piece.lanes > 1:
        return piece.size < bits
    above = range(piece.bit + piece.size, min(piece.bit + bits, register.width))
    if placement.is_fixed:
        return bool(above)
    return any(
        other.bit < above.stop and end_bit(other) > above.start and placement.nature(other.slot).writable
        for other in register.pieces
        if other is not piece
    )
