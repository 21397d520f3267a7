"""The constants of a library: packed as kernels want them, each stored once, counted as flash."""

from __future__ import annotations

from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class WeightRows:
    """Weights in rows, one after the other: each has `depth` times as many numbers as its width says."""

    widths: tuple[int, ...]
    depth: int

    def is_part_of(self, values: Array, whole: WeightRows, larger: Array) -> bool:
        """Whether each row begins a row of the larger array, in order."""
        if self.depth > whole.depth or self.widths != whole.widths[: len(self.widths)]:
            return False
        here = there = 0
        for width in self.widths:
            size = width * self.depth
            if not np.array_equal(values[here : here + size], larger[there : there + size]):
                return False
            here, there = here + size, there + width * whole.depth
        return True


@dataclass(frozen=True, slots=True)
class WeightView:
    """An array that is part of another."""

    whole: str
    pitch: int | None  # of its rows in there, if it has rows


@dataclass
class FlashArray:
    """An array in flash."""

    values: Array  # flat
    note: str  # the layer, and what it is
    digest: str  # of type and values
    alignment: int
    unsigned: Array | None  # what stands there where the processor multiplies unsigned bytes
    rows: WeightRows | None = None  # which kernels find by their pitch


class Constants:
    """Arrays by their C names. Adding the same values again gives the first name.

    Where sums of bytes start depends on what the processor multiplies: such an array has two versions, of which the
    compiler takes one (EW_START).

    With `has_views`, an array that is the beginning of a larger one, or consists of the beginnings of its rows, is not
    stored: its name stands for the larger one's. Kernels then read the pitch of rows from their tables.
    """

    def __init__(self, prefix: str, has_views: bool = False) -> None:
        self.prefix = prefix
        self.has_views = has_views
        self.by_name: dict[str, FlashArray] = {}
        self._known: dict[tuple[str, int, WeightRows | None], str] = {}  # names by digest, size and rows
        self._views: tuple[int, Mapping[str, WeightView]] = 0, {}  # of the first arrays, of which it says how many

    def add(
        self,
        values: Array,
        note: str,
        alignment: int = ALIGNMENT,
        unsigned: Array | None = None,
        rows: WeightRows | None = None,
    ) -> str:
        """The C name of an array with these values (flat, in C order); `note` becomes its comment."""
        flat = np.ascontiguousarray(values).reshape(-1)
        found = sha256(flat.data)
        if unsigned is not None:
            found.update(unsigned.data)
        digest = f"{flat.dtype.name}:{found.hexdigest()[:32]}"
        rows = rows if self.has_views else None
        name = self._known.setdefault((digest, flat.size, rows), f"{self.prefix}_c{len(self.by_name)}")
        if name not in self.by_name:
            least = max(ALIGNMENT, flat.itemsize)  # as compilers align elements of eight bytes
            self.by_name[name] = FlashArray(flat, note, digest, least, unsigned, rows)
        constant = self.by_name[name]
        constant.alignment = max(constant.alignment, alignment)
        return name

    @property
    def views(self) -> Mapping[str, WeightView]:
        """The arrays that are not stored, by name."""
        if self.has_views and self._views[0] != len(self.by_name):
            self._views = len(self.by_name), views_among(self.by_name)
        return self._views[1]

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
        stored = (name for name in self.by_name if name not in self.views)
        return sorted(stored, key=lambda name: self.by_name[name].unsigned is not None)

    @property
    def of_two_versions(self) -> list[str]:
        return [name for name, constant in self.by_name.items() if constant.unsigned is not None]


def views_among(arrays: Mapping[str, FlashArray]) -> Mapping[str, WeightView]:
    """The arrays that are part of one that is stored, which is no smaller and of the same type."""
    found: dict[str, WeightView] = {}
    wholes: dict[tuple[str, bytes], list[str]] = {}  # by type and the first bytes
    for name in sorted(arrays, key=lambda name: -arrays[name].values.size):
        array = arrays[name]
        if array.unsigned is not None or not array.values.size:
            continue
        others = wholes.setdefault((array.values.dtype.name, array.values[:1].tobytes()), [])
        view = next((view for other in others if (view := _view(array, other, arrays[other]))), None)
        if view is None:
            others.append(name)
        else:
            found[name] = view
            arrays[view.whole].alignment = max(arrays[view.whole].alignment, array.alignment)
    return found


def _view(array: FlashArray, name: str, whole: FlashArray) -> WeightView | None:
    """The array as the first values of `whole`, or as the first values of its first rows."""
    if np.array_equal(array.values, whole.values[: array.values.size]):
        return WeightView(name, array.rows.depth if array.rows else None)
    if array.rows and whole.rows and array.rows.is_part_of(array.values, whole.rows, whole.values):
        return WeightView(name, whole.rows.depth)
    return None


def pitch_of(name: str) -> str:
    """The C name of the pitch of an array's rows."""
    return f"{name}_pitch"


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
