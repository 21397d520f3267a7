"""RV32 instructions, including compressed ones: stack, branches, calls (The RISC-V Instruction Set Manual, volume I).

Other instructions are only measured in length.

`capstone` (11 MB installed) decodes them as well, but does not report how far an instruction moves the stack pointer.
That would have to be derived for each mnemonic, which takes as long a table as this one.
"""

from __future__ import annotations

import struct

from .instruction import ControlFlow, Instruction, signed

SP, LINKS = 2, (1, 5)  # registers: the stack pointer; those that hold return addresses


def decode(code: bytes, at: int, address: int) -> Instruction:
    (word,) = struct.unpack_from("<H", code, at)
    if word & 3 != 3 or at + 4 > len(code):
        return _short(word, address)
    (word,) = struct.unpack_from("<I", code, at)
    return _long(word, address)


def _short(word: int, address: int) -> Instruction:
    """A compressed instruction."""
    register, kind = word >> 7 & 31, (word & 3, word >> 13)
    small = signed((word >> 12 & 1) << 5 | word >> 2 & 31, 6)
    match kind:
        case (1, 0b000) if register == SP:
            return Instruction(2, push=-small)
        case (1, 0b000):
            return Instruction(2, sets=register, value=small, adds_to=register)
        case (1, 0b001 | 0b101):
            flow = ControlFlow.CALL if kind[1] == 0b001 else ControlFlow.JUMP
            return Instruction(2, flow, address + _jump_distance(word))
        case (1, 0b010):
            return Instruction(2, sets=register, value=small)
        case (1, 0b011) if register == SP:
            return Instruction(2, push=-_stack_step(word))
        case (1, 0b011):
            return Instruction(2, sets=register, value=small << 12)
        case (1, 0b110 | 0b111):
            return Instruction(2, ControlFlow.BRANCH, address + _branch_distance(word))
        case (2, 0b100) if not word >> 2 & 31 and register:
            if word >> 12 & 1:
                return Instruction(2, ControlFlow.CALL)
            return _to_pointer(2, register)
        case (2, 0b100) if register == SP and word >> 12 & 1:
            return Instruction(2, push_by=word >> 2 & 31, push_up=True)
    return Instruction(2)


def _stack_step(word: int) -> int:
    bits = ((12, 9), (6, 4), (5, 6), (4, 8), (3, 7), (2, 5))
    return signed(sum((word >> source & 1) << target for source, target in bits), 10)


def _jump_distance(word: int) -> int:
    bits = ((12, 11), (11, 4), (10, 9), (9, 8), (8, 10), (7, 6), (6, 7), (5, 3), (4, 2), (3, 1), (2, 5))
    return signed(sum((word >> source & 1) << target for source, target in bits), 12)


def _branch_distance(word: int) -> int:
    bits = ((12, 8), (11, 4), (10, 3), (6, 7), (5, 6), (4, 2), (3, 1), (2, 5))
    return signed(sum((word >> source & 1) << target for source, target in bits), 9)


def _to_pointer(size: int, register: int) -> Instruction:
    """A jump to the address in a register: a return, or anywhere."""
    return (
        Instruction(size, ControlFlow.RETURN)
        if register in LINKS
        else Instruction(size, ControlFlow.JUMP, through=register)
    )


def _long(word: int, address: int) -> Instruction:
    register, source, small = word >> 7 & 31, word >> 15 & 31, signed(word >> 20, 12)
    match word & 0x7F:
        case 0x13 if not word >> 12 & 7:  # ADDI
            if register == SP:
                return Instruction(4, push=-small) if source == SP else Instruction(4)
            if source == 0:
                return Instruction(4, sets=register, value=small)
            return Instruction(4, sets=register, value=small, adds_to=source)
        case 0x13 if register == SP and word >> 12 & 7 == 7:  # ANDI: the stack pointer is aligned
            return Instruction(4, push=~small)
        case 0x33 if register == SP and source == SP and not word >> 12 & 7:  # ADD, SUB
            return Instruction(4, push_by=word >> 20 & 31, push_up=not word >> 30 & 1)
        case 0x37:
            return Instruction(4, sets=register, value=word & 0xFFFFF000)
        case 0x17:
            return Instruction(4, sets=register, value=(address + (word & 0xFFFFF000)) & 0xFFFFFFFF)
        case 0x6F:
            bits = signed(
                (word >> 31) << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3FF) << 1,
                21,
            )
            return Instruction(4, ControlFlow.CALL if register in LINKS else ControlFlow.JUMP, address + bits)
        case 0x67:
            if register in LINKS:
                return Instruction(4, ControlFlow.CALL, sets=None, adds_to=source, value=small)
            if source in LINKS and not small:
                return Instruction(4, ControlFlow.RETURN)
            return Instruction(4, ControlFlow.JUMP, through=source, adds_to=source, value=small)
        case 0x63:
            bits = signed(
                (word >> 31) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3F) << 5 | (word >> 8 & 0xF) << 1, 13
            )
            return Instruction(4, ControlFlow.BRANCH, address + bits)
    return Instruction(4)
