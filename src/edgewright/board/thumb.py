"""Thumb and Thumb-2 instructions of Cortex-M: stack, branches, calls (Armv8-M Architecture Reference Manual).

Other instructions are only measured in length.

`capstone` (11 MB installed) decodes them as well, but does not report how far an instruction moves the stack pointer.
That would have to be derived for each mnemonic, which takes as long a table as this one.
"""

from __future__ import annotations

import struct

from .instruction import ControlFlow, Instruction, signed

SP, LR, PC = 13, 14, 15
FRAMES = (7, 11)  # frame pointers: their old value is restored at the end of a function


def decode(code: bytes, at: int, address: int) -> Instruction:
    (first,) = struct.unpack_from("<H", code, at)
    if first >> 11 < 0b11101 or at + 4 > len(code):
        return _short(code, first, at, address)
    (second,) = struct.unpack_from("<H", code, at + 2)
    return _branch(first, second, address) or _memory(first, second) or _arithmetic(code, first, second, at, address)


def _short(code: bytes, word: int, at: int, address: int) -> Instruction:
    """An instruction of 16 bits."""
    low = word & 0xFF
    match word >> 8:
        case 0xB4 | 0xB5:
            return Instruction(2, push=4 * (low.bit_count() + (word >> 8 & 1)))
        case 0xBC | 0xBD as kind:
            flow = ControlFlow.RETURN if kind == 0xBD else ControlFlow.NEXT
            return Instruction(2, flow, push=-4 * (low.bit_count() + (kind & 1)), pops=low)
        case 0xB0:
            return Instruction(2, push=4 * (low & 0x7F) * (1 if low & 0x80 else -1))
        case 0xBF if low & 0xF:  # IT: up to four
            return Instruction(2, conditional=4 - ((low & -low).bit_length() - 1))
        case 0x44 if low & 0x87 == 0x85:
            return Instruction(2, push_by=low >> 3 & 0xF, push_up=True)
        case 0x46 if low & 0x87 == 0x85 and low >> 3 & 0xF not in FRAMES:
            return Instruction(2, push_by=PC)  # by an unknown amount
        case 0x46 if low & 0x87 == 0x87:  # to the program counter: a jump table
            return Instruction(2, ControlFlow.JUMP)
        case 0x47:
            register = low >> 3 & 0xF
            if low & 0x80:
                return Instruction(2, ControlFlow.CALL)
            return (
                Instruction(2, ControlFlow.RETURN)
                if register == LR
                else Instruction(2, ControlFlow.JUMP, through=register)
            )
        case kind if kind >> 4 == 0xD and kind & 0xF < 0xE:
            return Instruction(2, ControlFlow.BRANCH, address + 4 + 2 * signed(low, 8))
        case kind if kind >> 3 == 0b11100:
            return Instruction(2, ControlFlow.JUMP, address + 4 + 2 * signed(word, 11))
        case kind if kind & 0xF5 == 0xB1:  # compare with zero and branch
            return Instruction(2, ControlFlow.BRANCH, address + 4 + ((word >> 3 & 0x1F) << 1 | (word >> 9 & 1) << 6))
        case kind if kind >> 3 == 0b01001:
            return _literal(code, at, address, word >> 8 & 7, 4 * low, 2)
        case kind if kind >> 3 == 0b00100:
            return Instruction(2, sets=word >> 8 & 7, value=low)
    return Instruction(2)


def _literal(code: bytes, at: int, address: int, register: int, distance: int, size: int) -> Instruction:
    """A constant loaded from the code section, if in reach."""
    place = at + ((address + 4) & ~3) + distance - address
    if not 0 <= place <= len(code) - 4 or register == PC:
        return Instruction(size)
    return Instruction(size, sets=register, value=struct.unpack_from("<I", code, place)[0])


def _branch(first: int, second: int, address: int) -> Instruction | None:
    if first >> 11 != 0b11110 or not second >> 15:
        return None
    sign = first >> 10 & 1
    if second & 0x1000:  # B.W, BL
        j1, j2 = (1 ^ sign ^ (second >> at & 1) for at in (13, 11))
        distance = sign << 24 | j1 << 23 | j2 << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
        flow = ControlFlow.CALL if second & 0x4000 else ControlFlow.JUMP
        return Instruction(4, flow, address + 4 + signed(distance, 25))
    if second & 0x4000 or first >> 7 & 7 == 7:
        return None  # not a conditional branch
    distance = sign << 20 | (second >> 11 & 1) << 19 | (second >> 13 & 1) << 18 | (first & 0x3F) << 12
    return Instruction(4, ControlFlow.BRANCH, address + 4 + signed(distance | (second & 0x7FF) << 1, 21))


def _memory(first: int, second: int) -> Instruction | None:
    """Loads and stores that change the stack pointer, or load the program counter."""
    if first == 0xE92D:
        return Instruction(4, push=4 * second.bit_count())
    if first == 0xE8BD:
        flow = ControlFlow.RETURN if second >> 15 else ControlFlow.NEXT
        return Instruction(4, flow, push=-4 * second.bit_count(), pops=second)
    if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:
        return Instruction(4, ControlFlow.JUMP)  # TBB, TBH
    if first & 0xFE0F == 0xF80D and second & 0x0900 == 0x0900:  # one register, stepping
        is_return = first & 0x0050 == 0x0050 and second >> 12 == PC
        distance = second & 0xFF
        return Instruction(
            4,
            ControlFlow.RETURN if is_return else ControlFlow.NEXT,
            push=-distance if second & 0x200 else distance,
        )
    if first & 0xFF70 == 0xF850 and second >> 12 == PC:
        return Instruction(4, ControlFlow.JUMP)  # the program counter from a table
    if first & 0xFE6F == 0xE86D:  # two registers, stepping
        distance = 4 * (second & 0xFF)
        return Instruction(4, push=-distance if first & 0x80 else distance)
    if first & 0xFE2F == 0xEC2D:  # vectors and floating point, stepping
        scalar = second >> 9 & 7 == 0b101
        distance = 4 * (second & 0xFF) if scalar else (second & 0x7F) << (second >> 7 & 3)
        return Instruction(4, push=-distance if first & 0x80 else distance)
    return None


def _arithmetic(code: bytes, first: int, second: int, at: int, address: int) -> Instruction:
    register, low = second >> 8 & 0xF, (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
    half = (first & 0xF) << 12 | low
    if first & 0xFBF0 == 0xF240 and not second >> 15:
        return Instruction(4, sets=register, value=half)
    if first & 0xFBF0 == 0xF2C0 and not second >> 15:
        return Instruction(4, sets=register, value=half << 16, adds_to=register)
    if first & 0xFBF0 == 0xF040 and first & 0xF == 0xF and not second >> 15:
        return Instruction(4, sets=register, value=_expanded(low))
    if first & 0xFF7F == 0xF85F:
        return _literal(code, at, address, second >> 12, (second & 0xFFF) * (1 if first & 0x80 else -1), 4)
    if register != SP or second >> 15:
        return Instruction(4)
    match first & 0xFBFF:
        case 0xF1AD | 0xF1BD:
            return Instruction(4, push=_expanded(low))
        case 0xF2AD:
            return Instruction(4, push=low)
        case 0xF10D | 0xF11D:
            return Instruction(4, push=-_expanded(low))
        case 0xF20D:
            return Instruction(4, push=-low)
    if first & 0xFFEF in (0xEBAD, 0xEB0D) and not second & 0x70F0:
        return Instruction(4, push_by=second & 0xF, push_up=first & 0xFFEF == 0xEB0D)
    return Instruction(4)


def _expanded(low: int) -> int:
    """The value of a 12-bit data-processing constant (ThumbExpandImm)."""
    if low >> 10:
        rotation, byte = low >> 7, 0x80 | low & 0x7F
        return (byte >> rotation | byte << (32 - rotation)) & 0xFFFFFFFF
    byte = low & 0xFF
    return byte * (0x00000001, 0x00010001, 0x01000100, 0x01010101)[low >> 8 & 3]
