"""The constants of a library: packed as kernels want them, each stored once, counted as flash."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from ...network import Array
from ...program.selection import Packed, packed_bytes

C_TYPES = {
    "float32": "float",
    "float16": "uint16_t",  # bits; kernels widen them
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint32": "uint32_t",
    "float64": "double",
    "bool": "uint8_t",
}
ALIGNMENT = 4  # of every constant at least, so that kernels may read words
LARGE = 4 << 20  # bytes of weights beyond which they come as a binary file, not as C


class Constants:
    """Arrays by name. Adding the same bytes again gives the first name.

    Where sums of bytes start depends on what the processor multiplies: such an array has two versions, of which the
    compiler takes one (EW_START).
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.arrays: dict[str, Array] = {}
        self.unsigned: dict[str, Array] = {}  # by name: what stands there where unsigned bytes are multiplied
        self.alignments: dict[str, int] = {}
        self.notes: dict[str, str] = {}
        self._known: dict[str, str] = {}  # by digest
        self._digests: dict[str, str] = {}

    def add(self, values: Array, note: str, alignment: int = ALIGNMENT, unsigned: Array | None = None) -> str:
        """The C name of an array with these values (flat, in C order); `note` becomes its comment."""
        flat = np.ascontiguousarray(values).reshape(-1)
        digest = sha256(flat.data)
        if unsigned is not None:
            digest.update(unsigned.data)
        key = f"{flat.dtype.name}:{digest.hexdigest()[:32]}"
        if key not in self._known:
            name = f"{self.prefix}_c{len(self.arrays)}"
            self._known[key], self._digests[name] = name, key
            self.arrays[name], self.notes[name] = flat, note
            if unsigned is not None:
                self.unsigned[name] = unsigned
            self.alignments[name] = max(ALIGNMENT, flat.itemsize)  # as compilers align elements of eight bytes
        name = self._known[key]
        self.alignments[name] = max(self.alignments[name], alignment)
        return name

    @property
    def bytes(self) -> int:
        """What the linker will count."""
        return packed_bytes(self.packed)

    @property
    def packed(self) -> tuple[Packed, ...]:
        """Every array, in the order of flash."""
        return tuple(
            Packed(self.notes[name], self.arrays[name].nbytes, self.alignments[name], self._digests[name])
            for name in self.names
        )

    @property
    def names(self) -> list[str]:
        """In the order of flash: those of two versions last, since they come as C even beside a binary."""
        return sorted(self.arrays, key=self.unsigned.__contains__)


def c_type(values: Array) -> str:
    return C_TYPES[values.dtype.name]


def initialiser(values: Array, unsigned: Array | None = None, either: str = "EW_START", width: int = 110) -> str:
    """The values as C text, wrapped into lines; where there are `unsigned` ones, `either` of the two."""
    if values.dtype == np.float16:
        values = values.view(np.uint16)
    dtype = values.dtype.name
    words = [number(value, dtype) for value in values.tolist()]
    if unsigned is not None:
        words = [f"{either}({a}, {number(b, dtype)})" for a, b in zip(words, unsigned.tolist(), strict=True)]
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) + 2 > width:
            lines.append(line)
            line = "   "
        line += f" {word},"
    return "\n".join([*lines, line])


def _integer(value: int) -> str:
    if value == -(1 << 31):
        return "-2147483647 - 1"
    if value == -(1 << 63):
        return "-9223372036854775807 - 1"
    return str(int(value))


def _float(value: float, suffix: str) -> str:
    """The shortest decimal that reads back as the same number."""
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = repr(value)
    return (text if "." in text or "e" in text else text + ".0") + suffix


def number(value: float | np.floating | int, dtype: str = "float32") -> str:
    """One number as a C literal of the type."""
    if dtype == "float32":
        # The decimals of a float32, not of the double it becomes.
        return _float(float(str(np.float32(value))), "f")
    return _float(float(value), "") if dtype == "float64" else _integer(int(value))
