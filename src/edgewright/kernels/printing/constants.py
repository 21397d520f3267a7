"""The constants of a library: packed as kernels want them, each stored once, counted as flash."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass
class FlashArray:
    """An array in flash."""

    values: Array  # flat
    note: str  # the layer, and what it is
    digest: str  # of type and values
    alignment: int
    unsigned: Array | None  # what stands there where the processor multiplies unsigned bytes


class Constants:
    """Arrays by their C names. Adding the same values again gives the first name.

    Where sums of bytes start depends on what the processor multiplies: such an array has two versions, of which the
    compiler takes one (EW_START).
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.by_name: dict[str, FlashArray] = {}
        self._known: dict[tuple[str, int], str] = {}  # names by digest and size

    def add(self, values: Array, note: str, alignment: int = ALIGNMENT, unsigned: Array | None = None) -> str:
        """The C name of an array with these values (flat, in C order); `note` becomes its comment."""
        flat = np.ascontiguousarray(values).reshape(-1)
        found = sha256(flat.data)
        if unsigned is not None:
            found.update(unsigned.data)
        digest = f"{flat.dtype.name}:{found.hexdigest()[:32]}"
        name = self._known.setdefault((digest, flat.size), f"{self.prefix}_c{len(self.by_name)}")
        if name not in self.by_name:
            least = max(ALIGNMENT, flat.itemsize)  # as compilers align elements of eight bytes
            self.by_name[name] = FlashArray(flat, note, digest, least, unsigned)
        constant = self.by_name[name]
        constant.alignment = max(constant.alignment, alignment)
        return name

    @property
    def bytes(self) -> int:
        """What the linker will count."""
        return packed_bytes(self.packed)

    @property
    def packed(self) -> tuple[Packed, ...]:
        """Every array, in the order of flash."""
        ordered = (self.by_name[name] for name in self.names)
        return tuple(Packed(each.note, each.values.nbytes, each.alignment, each.digest) for each in ordered)

    @property
    def names(self) -> list[str]:
        """In the order of flash: those of two versions last, since they come as C even beside a binary."""
        return sorted(self.by_name, key=lambda name: self.by_name[name].unsigned is not None)

    @property
    def of_two_versions(self) -> list[str]:
        return [name for name, constant in self.by_name.items() if constant.unsigned is not None]


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
