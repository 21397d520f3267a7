"""The register map of hardware that exists, as a file describes it: what the readers give and the writers take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from typing import TypeVar

from ...errors import InputError
from ..language.description import Mode, Protection

WIDTHS = (8, 16, 32)
MOST_ELEMENTS = 1 << 16
_NO_WORD = re.compile(r"\W", re.ASCII)
_MEANT = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof bool
true false bfGroup make_device mapped_device bus ro wo w1c w1s clear_on_read fifo hw shared_with_isr split rse wse
reset_value pin bit stride while_zero together gathers snapshot unordered in_memory assign
protection
"""
RESERVED = frozenset(_MEANT.split()) | {f"uint{bits}" for bits in range(1, 65)}  # words that no member can have


class WriteEffect(Enum):
    """What a written value does beyond being stored."""

    NONE = "none"
    ONE_CLEARS = "one clears"
    ONE_SETS = "one sets"
    OTHER = "other"


class ReadEffect(Enum):
    """What reading does."""

    NONE = "none"
    CLEARS = "clears"
    TAKES = "takes"  # the next value follows, as from a FIFO
    TOUCHES = "touches"  # something else changes


@dataclass(frozen=True, slots=True)
class NamedValue:
    name: str
    value: int
    about: str = ""


@dataclass(frozen=True, slots=True)
class FixedField:
    """Bits of a register; `count` elements side by side where it is an array."""

    name: str
    bit: int
    size: int
    mode: Mode = Mode.RW
    on_write: WriteEffect = WriteEffect.NONE
    on_read: ReadEffect = ReadEffect.NONE
    by_hardware: bool = False
    reset: int = 0
    about: str = ""
    values: tuple[NamedValue, ...] = ()
    count: int | None = None

    @property
    def end(self) -> int:
        return self.bit + self.size * (self.count or 1)


@dataclass(frozen=True, slots=True)
class FixedRegister:
    """A register, or `count` of them; one without fields of its own is a field as a whole (`is_whole`)."""

    name: str
    offset: int
    width: int
    fields: tuple[FixedField, ...]
    about: str = ""
    is_whole: bool = False
    count: int | None = None
    stride: int = 0
    protection: Protection | None = None

    @property
    def size(self) -> int:
        """Bytes of one of them."""
        return self.width // 8


@dataclass(frozen=True, slots=True)
class FixedCluster:
    """Registers with a name together, or `count` times; offsets inside are from its start."""

    name: str
    offset: int
    items: tuple[FixedItem, ...]
    about: str = ""
    count: int | None = None
    stride: int = 0

    @property
    def size(self) -> int:
        return max((_end(item) for item in self.items), default=0)


FixedItem = FixedRegister | FixedCluster
Named = TypeVar("Named", FixedField, FixedItem)


@dataclass(frozen=True, slots=True)
class FixedMap:
    """All registers of a kind of peripheral, and the devices of that kind (name and address)."""

    name: str
    items: tuple[FixedItem, ...]
    devices: tuple[tuple[str, int], ...]
    about: str = ""
    left_out: tuple[str, ...] = ()  # what the file has and a group cannot say, in words

    @property
    def size(self) -> int:
        return max((_end(item) for item in self.items), default=4)

    @property
    def bus(self) -> tuple[int, int]:
        """The widest and the narrowest register."""
        widths = [register.width for register in registers_in(self.items)]
        return max(widths, default=32), min(widths, default=32)


def _end(item: FixedItem) -> int:
    return item.offset + ((item.count or 1) - 1) * item.stride + item.size


def registers_in(items: Iterable[FixedItem]) -> Iterator[FixedRegister]:
    for item in items:
        if isinstance(item, FixedRegister):
            yield item
        else:
            yield from registers_in(item.items)


def settled(found: FixedMap) -> FixedMap:
    """The map with sound names, and without what overlaps; InputError where nothing is left to describe."""
    notes = list(found.left_out)
    items = _settled_items(found.items, found.name, notes)
    if not items:
        why = f": {notes[0]}" if notes else ""
        raise InputError(f"peripheral '{found.name}' has no registers that a group can describe{why}")
    if (elements := _elements(items)) > MOST_ELEMENTS:
        raise InputError(f"peripheral '{found.name}' has {elements:,} registers; {MOST_ELEMENTS:,} is the limit")
    return replace(found, items=items, left_out=tuple(notes))


def _elements(items: Iterable[FixedItem]) -> int:
    return sum((item.count or 1) * (1 if isinstance(item, FixedRegister) else _elements(item.items)) for item in items)


def _settled_items(items: Sequence[FixedItem], where: str, notes: list[str]) -> tuple[FixedItem, ...]:
    kept: list[FixedItem] = []
    for item in sorted(items, key=lambda item: item.offset):
        path = f"{where}.{item.name}"
        if trouble := _trouble(item):
            notes.append(f"{path} {trouble}")
            continue
        taken = next((other for other in kept if _overlap(other, item)), None)
        if taken is not None:
            notes.append(f"{path} lies where {taken.name} is, at 0x{item.offset:X}")
            continue
        inside: FixedItem | None
        if isinstance(item, FixedRegister):
            inside = _settled_register(item, path, notes)
        else:
            within = _settled_items(item.items, path, notes)
            inside = replace(item, items=within) if within else None
        if inside is not None:
            kept.append(inside)
    return _renamed(kept)


def _renamed(items: Sequence[Named]) -> tuple[Named, ...]:
    names = unique_names([item.name for item in items])
    return tuple(replace(item, name=name) for item, name in zip(items, names, strict=True))


def _trouble(item: FixedItem) -> str:
    """Why a group cannot describe it; empty where it can."""
    if isinstance(item, FixedRegister) and item.width not in WIDTHS:
        return f"is {item.width} bits wide, and a bus does 8, 16 or 32"
    if isinstance(item, FixedRegister) and (item.offset % item.size or item.stride % item.size):
        return f"at 0x{item.offset:X} is not aligned to its {item.width} bits"
    if item.count is not None and item.count > 1 and item.stride < item.size:
        return f"has elements of {item.size} bytes every {item.stride} bytes"
    return ""


def _overlap(first: FixedItem, second: FixedItem) -> bool:
    """Whether two items share a byte; one may lie in the gaps of the other's elements."""
    if first.offset >= _end(second) or second.offset >= _end(first):
        return False
    starts = [_starts(item) for item in (first, second)]
    if prod(map(len, starts)) > MOST_ELEMENTS:
        return True
    return any(a < b + second.size and b < a + first.size for a in starts[0] for b in starts[1])


def _starts(item: FixedItem) -> range:
    count = item.count or 1
    return range(item.offset, item.offset + count * max(item.stride, 1), max(item.stride, 1))[:count]


def _settled_register(register: FixedRegister, path: str, notes: list[str]) -> FixedRegister | None:
    kept: list[FixedField] = []
    for field in sorted(register.fields, key=lambda field: field.bit):
        if field.size < 1 or field.end > register.width:
            notes.append(f"{path}.{field.name} does not fit the {register.width} bits of its register")
        elif (other := next((o for o in kept if o.bit < field.end and field.bit < o.end), None)) is not None:
            notes.append(f"{path}.{field.name} lies on the bits of {other.name}")
        else:
            kept.append(field)
    return replace(register, fields=_renamed(kept)) if kept else None


def unique_names(names: Sequence[str]) -> list[str]:
    """Identifiers of C for the names, no two alike and none that means something in the language of groups."""
    found: list[str] = []
    for name in names:
        word = _NO_WORD.sub("_", name.strip()) or "unnamed"
        word = f"_{word}" if word[0].isdigit() else word
        while word in RESERVED or word in found:
            word += "_"
        found.append(word)
    return found
