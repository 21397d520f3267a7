"""HAL functions that read: one access for each register, then as few shifts and masks as the layout allows."""

from __future__ import annotations

from collections.abc import Iterator

from ..analysis.spaces import Slot
from ..layout.layout import Piece, Register
from .c_text import end_bit, literal, ones
from .calls import Call
from .space_registers import SpaceRegisters, address, result_type, shift_amount


def read_function(placement: SpaceRegisters, call: Call, name: str) -> list[str]:
    """The lines of one reading HAL function."""
    slots, registers = placement.slots(call.slots), placement.registers(call)
    words = {register: "word" if len(registers) == 1 else f"word{n}" for n, register in enumerate(registers)}
    loads = [line for register, word in words.items() for line in _load(placement, call, register, word)]
    values = [_value(placement, slot, words, call) for slot in slots]
    kinds = [result_type(slot, call) for slot in slots]
    indices = [f"uint32_t {index}" for index in placement.indices(call)]
    parameters = [f"const struct {call.space} *grp", *indices]
    if len(slots) == 1:
        head = f"static inline {kinds[0]} {name}({', '.join(parameters)})"
        return [head, "{", *loads, f"    return {values[0]};", "}"]
    results = [f"{kind} *v{n}" for n, kind in enumerate(kinds)]
    stores = [f"    *v{n} = {value};" for n, value in enumerate(values)]
    return [f"static inline void {name}({', '.join([*parameters, *results])})", "{", *loads, *stores, "}"]


def _load(placement: SpaceRegisters, call: Call, register: Register, word: str) -> Iterator[str]:
    """The lines that read a register; in hardware of our own, compilers are told that bits above all fields are 0.

    Not in the condition of a loop: there it looks like one more way out, and GCC copies the condition in front.
    """
    yield f"    const uint{register.width}_t {word} = *{address(register, 'const ')};"
    end = max(end_bit(piece) for piece in register.pieces)
    if end < register.width and not placement.is_fixed and not call.is_polled:
        yield f"    EDGEWRIGHT_ASSUME({word} <= {literal(ones(end))});"


def _value(placement: SpaceRegisters, slot: Slot, words: dict[Register, str], call: Call) -> str:
    """C: the field's value out of the words read, low part first."""
    parts = [
        (piece, register, word)
        for register, word in words.items()
        for piece in register.pieces
        if piece.slot == slot.name
    ]
    kind = result_type(slot, call)
    if call.is_bit:
        piece, register, word = parts[0]
        return f"({kind})(({word} >> {shift_amount(register, piece, call)}) & 1u)"
    if len(parts) == 1:
        return _cast(placement, slot, *parts[0], call)
    texts = []
    for piece, register, word in parts:
        part = _cast(placement, slot, piece, register, word, call)
        texts.append(f"({part} << {piece.low})" if piece.low else part)
    return f"({kind})({' | '.join(texts)})"


def _cast(placement: SpaceRegisters, slot: Slot, piece: Piece, register: Register, word: str, call: Call) -> str:
    kind, text = result_type(slot, call), _extracted(placement, slot, piece, register, word, call)
    if text == word and kind == f"uint{register.width}_t":
        return text
    return f"({kind}){text}" if text == word else f"({kind})({text})"


def _extracted(placement: SpaceRegisters, slot: Slot, piece: Piece, register: Register, word: str, call: Call) -> str:
    amount = shift_amount(register, piece, call)
    text = f"{word} >> {amount}" if amount else word
    if not _needs_mask(placement, slot, piece, register, call):
        return text
    # The shift of a narrow register is done in int; its value stays below the register's, so no sign comes in.
    return f"({text}) & {literal(ones(piece.size))}" if amount else f"{text} & {literal(ones(piece.size))}"


def _needs_mask(placement: SpaceRegisters, slot: Slot, piece: Piece, register: Register, call: Call) -> bool:
    """Whether something may lie above the piece that neither the shift nor the conversion removes.

    Bits that hold no field read as 0, unless the hardware exists and may do with them as it likes.
    """
    if result_type(slot, call) == f"uint{piece.size}_t":
        return False
    if placement.is_fixed and end_bit(piece) < register.width:
        return True
    return piece.lanes > 1 or any(other.bit > piece.bit for other in register.pieces)
