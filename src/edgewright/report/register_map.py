"""Pictures of a driver: its register map, bit by bit, and its conflict graph.

The map has a row for each register and a column for each bit, with fields coloured by kind. The graph has accesses on a
circle, and edges between accesses that must not be merged (S 6.4.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import cos, pi, sin

from .. import text
from ..hal.analysis.functions import Function, Regions
from ..hal.export.table import Entry, Table, TableBlock, TableField, TableRegister, about_field
from .charts import escaped, opening

LEFT, RIGHT, HEAD, ROW, GAP, NOTE = 184.0, 24.0, 22.0, 26.0, 6.0, 15.0  # px
ACROSS = 896.0  # px for all bits of the widest register
LETTER = 6.4  # px, mean width of a character, rounded up

KINDS = {
    "plain": "keeps what software writes",
    "hardware": "the peripheral sets it",
    "w1": "writing 1 clears or sets",
    "acts-read": "reading acts",
    "acts-write": "writing acts, or write only",
    "fifo": "FIFO",
    "isr": "shared with an interrupt routine",
}


def kind_of(at: TableField) -> str:
    """The most important property of a field: a key of KINDS."""
    if at.field.fifo:
        return "fifo"
    if at.nature.reading_acts:
        return "acts-read"
    if at.nature.writing_acts or not at.nature.readable:
        return "acts-write"
    if at.field.w1c or at.field.w1s:
        return "w1"
    return "hardware" if at.nature.by_hardware else "plain"


def register_map_svg(table: Table) -> str:
    """The registers that all devices of a group share, as an SVG element."""
    return "".join(_Map(table).lines())


class _Map:
    def __init__(self, table: Table) -> None:
        self.table = table
        rows = [register for entry in table.entries for register in _registers(entry)]
        self.bits = max([32, *(register.width for register in rows)])
        self.column = ACROSS / self.bits

    def lines(self) -> Iterator[str]:
        drawn = list(self._rows())
        height = max((end for _, end in drawn), default=HEAD) + 4
        name = escaped(self.table.group)
        yield from opening("registers", LEFT + ACROSS + RIGHT, height, f"registers of {name}", False)
        yield from self._bit_numbers()
        yield from (line for row, _ in drawn for line in row)
        yield "</svg>"

    def _bit_numbers(self) -> Iterator[str]:
        for bit in range(0, self.bits, 1 if self.bits <= 32 else 4):
            yield f'<text class="middle" x="{self._x(bit, 1) + self.column / 2:.1f}" y="{HEAD - 8:g}">{bit}</text>'

    def _rows(self) -> Iterator[tuple[list[str], float]]:
        """The lines of each row and where it ends."""
        y = HEAD
        for entry in self.table.entries:
            start = entry.offset if isinstance(entry, TableBlock) else 0
            for register in _registers(entry):
                notes = list(self._notes(register))
                yield (
                    list(self._row(register, entry, start + register.offset, y, notes)),
                    y + ROW + GAP + NOTE * len(notes),
                )
                y += ROW + GAP + NOTE * len(notes)

    def _row(self, register: TableRegister, entry: Entry, offset: int, y: float, notes: Sequence[str]) -> Iterator[str]:
        told = f"{'view ' if register.is_view else ''}{escape(_array(register))}0x{offset:03X}{_times(entry)}"
        yield f'<text class="name end" x="{LEFT - 10:g}" y="{y + 17:g}">{told}</text>'
        x, width = self._x(0, register.width), register.width * self.column
        yield f'<rect class="empty" x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{ROW:g}"/>'
        for at, free in self._free(register):
            yield from self._field(at, y, free)
        for number, note in enumerate(notes, 1):
            yield f'<text class="value" x="{x + 2:.1f}" y="{y + ROW + NOTE * number - 3:g}">{escape(note)}</text>'

    def _free(self, register: TableRegister) -> Iterator[tuple[TableField, float]]:
        """The fields from top to bottom, each with the free px to its left."""
        above = register.width
        for at in sorted(register.fields, key=lambda at: -at.bit):
            yield at, (above - at.bit - at.size) * self.column
            above = at.bit

    def _notes(self, register: TableRegister) -> Iterator[str]:
        """Lines below a register that name the fields whose names do not fit in the row."""
        line = ""
        for at, free in self._free(register):
            if self._is_cut(at, free):
                note = f"{at.bit} {text.printable(at.name)}"
                if line and LETTER * (len(line) + len(note) + 3) > register.width * self.column:
                    yield line
                    line = ""
                line += f" · {note}" if line else note
        if line:
            yield line

    def _is_cut(self, at: TableField, free: float) -> bool:
        name = text.printable(at.name)
        return not (self._fits(at) or _is_left_of_field(name, free)) and not name.rpartition("_")[2].isdigit()

    def _fits(self, at: TableField) -> bool:
        return LETTER * len(text.printable(at.name)) + 4 <= at.size * self.column

    def _field(self, at: TableField, y: float, free: float) -> Iterator[str]:
        """A field with its name inside it, to its left if there is more space (`free` px), or below the row."""
        x, width = self._x(at.bit, at.size), at.size * self.column
        shared = " shared" if at.field.shared_with_isr else ""
        told = text.printable(f"{at.path}, {_bits(at)}: {about_field(at) or KINDS['plain']}")
        box = f'x="{x + 0.5:.1f}" y="{y + 0.5:g}" width="{width - 1:.1f}" height="{ROW - 1:g}" rx="2"'
        yield f'<g class="{kind_of(at)}{shared}"><title>{escape(told)}</title><rect class="field" {box}/>'
        name = text.printable(at.name)
        if not self._fits(at) and _is_left_of_field(name, free):
            yield f'<text class="end value" x="{x - 5:.1f}" y="{y + 17:g}">{escape(name)}</text></g>'
        else:
            room = max(1, int((width - 4) / LETTER))
            label = str(at.bit) if self._is_cut(at, free) else escape(_label(name, room))
            yield f'<text class="middle value" x="{x + width / 2:.1f}" y="{y + 17:g}">{label}</text></g>'

    def _x(self, bit: int, size: int) -> float:
        """The x of a bit; the highest bit is on the left."""
        return LEFT + ACROSS - (bit + size) * self.column


def _is_left_of_field(name: str, free: float) -> bool:
    """Whether the name fits to the left of its field."""
    return LETTER * len(name) + 12 < free


def _registers(entry: Entry) -> tuple[TableRegister, ...]:
    return entry.registers if isinstance(entry, TableBlock) else (entry,)


def _array(register: TableRegister) -> str:
    """The name of the array whose elements fill a register, where only indices fit."""
    names = {at.path.partition("[")[0] for at in register.fields}
    is_array = len(register.fields) > 1 and len(names) == 1
    return f"{text.shortened(text.printable(names.pop()), 10)} " if is_array else ""


def _label(name: str, room: int) -> str:
    """The name shortened to a number of characters; for an array element, its index."""
    index = name.rpartition("_")[2]
    return index if len(name) > room >= len(index) and index.isdigit() else text.shortened(name, room)


def _times(entry: Entry) -> str:
    return f" +{entry.stride}·i, i&lt;{entry.count}" if entry.count > 1 else ""


def _bits(at: TableField) -> str:
    return f"bit {at.bit}" if at.size == 1 else f"bits {at.bit + at.size - 1}:{at.bit}"


COLOURS = 8  # of regions in the style sheet; they repeat
MOST = 48  # accesses; larger graphs are unreadable
SPACE = 34.0  # px on the circle for each access


def conflict_graph_svg(function: Function, regions: Regions) -> str:
    """The graph as an SVG element; empty if it has no edges or too many accesses."""
    if not 2 <= len(function.accesses) <= MOST:
        return ""
    return "".join(_Graph(function, regions).lines())


class _Graph:
    def __init__(self, function: Function, regions: Regions) -> None:
        self.function, self.regions = function, regions
        count = len(function.accesses)
        self.radius = max(46.0, SPACE * count / (2 * pi))
        self.size = 2 * (self.radius + 20)
        middle = self.size / 2
        angles = {a.number: 2 * pi * n / count - pi / 2 for n, a in enumerate(function.accesses)}
        self.at: Mapping[int, tuple[float, float]] = {
            number: (middle + self.radius * cos(angle), middle + self.radius * sin(angle))
            for number, angle in angles.items()
        }

    def lines(self) -> Iterator[str]:
        name = escaped(self.function.name)
        yield from opening("conflicts", self.size, self.size, f"conflict graph of {name}", False)
        for conflict in self.regions.conflicts or ():
            (x, y), (u, v) = self.at[conflict.first], self.at[conflict.second]
            told = escaped(f"{conflict.first} and {conflict.second}: {conflict.reason}")
            yield f'<path class="edge" d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}"><title>{told}</title></path>'
        regions = region_numbers(self.regions)
        for access in self.function.accesses:
            x, y = self.at[access.number]
            told = escaped(f"{access.number}: {access.kind.value} {access.name}")
            style = f"node r{regions.get(access.number, 0) % COLOURS} {access.kind.value}"
            yield f'<g class="{style}"><title>{told}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="12"/>'
            yield f'<text class="middle" x="{x:.1f}" y="{y + 4:.1f}">{access.number}</text></g>'
        yield "</svg>"


def region_numbers(regions: Regions) -> dict[int, int]:
    """The index of each access's region."""
    return {number: n for n, region in enumerate(regions.regions) for number in region}
