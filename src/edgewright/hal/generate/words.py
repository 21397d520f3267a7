"""Small pieces of C that generated code is made of: types, literals, masks."""

from __future__ import annotations

from ..layout.layout import Piece


def field_type(bits: int) -> str:
    """The C type of a field: the smallest that holds it."""
    return f"uint{type_bits(bits)}_t"


def read_type(kind: str, count: int) -> str:
    """The type of a variable for a value that is read together with others, so many in all.

    Flags that are tested or put together again are words: compilers see then that all of them are bits of one.
    """
    return "uint32_t" if count > 2 and kind != "uint64_t" else kind


def type_bits(bits: int) -> int:
    return next(width for width in (8, 16, 32, 64) if bits <= width)


def arithmetic_type(width: int) -> str:
    """The type to shift and mask a register in: never narrower than int, so that nothing becomes signed."""
    return "uint32_t" if width <= 32 else "uint64_t"


def literal(value: int) -> str:
    return f"0x{value:x}u" if value < 1 << 32 else f"0x{value:x}ull"


def ones(bits: int) -> int:
    return (1 << bits) - 1


def register_mask(piece: Piece) -> int:
    """The bits of the register that the piece covers, all lanes included."""
    return ones(piece.size * piece.lanes) << piece.bit


def end_bit(piece: Piece) -> int:
    """One past the last bit of the piece."""
    return piece.bit + piece.size * piece.lanes
