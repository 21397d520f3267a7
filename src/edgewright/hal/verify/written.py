"""The source as it was written: its groups are structs of volatile fields, and nothing of the rewriter takes part.

It runs each call after the naive design and is fed what that was answered: the two must access the same fields in the
same order, with the same values and calls in between, and leave the same behind.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..analysis.accesses import Access, Form, Kind
from ..design import Analysis
from ..generate import SUPPORT_HEADER, file_names
from ..generate.c_text import ones, type_bits
from ..language.description import Child, Description, Field
from ..layout.layout import FieldAt, RegisterAt
from .abi import Signature
from .addresses import Instances
from .build import Built, Image, compile_image, target_named
from .bus import BusAccess, Happening, Noted
from .caller import CALLBACKS, Caller, Pointers
from .calls import DrawnCall
from .machine import LIMIT
from .verification import Fault, StopReason

_PAGE = 4096
_WORD = 32  # bits of the widest access of the processors
_INCLUDE = re.compile(
    rb"^[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]*%s[>\"]" % re.escape(SUPPORT_HEADER.name).encode(), re.M
)


@dataclass(frozen=True, slots=True)
class _Cell:
    """Where a struct holds a field: all of it, 32 bits of a wide one, or a bit that a status word gathers."""

    device: str
    name: str  # as registers name it: "pads[3].dir"
    bits: int  # of the field
    size: int  # of the memory for it
    low: int = 0  # first bit of the field that lies here
    is_gathered: bool = False

    def __str__(self) -> str:
        return f"{self.device}.{self.name}"


@dataclass(frozen=True, slots=True)
class WrittenSource:
    """The untouched source, compiled, and where its structs have their fields."""

    image: Image
    cells: Mapping[int, _Cell]
    instances: Instances
    loose: frozenset[str]  # functions that use values of assignments, which C does not cut to the bits of a field


def written_source(
    analysis: Analysis,
    target: str,
    includes: Sequence[Path] = (),
    defines: Sequence[str] = (),
    weak: Sequence[str] = (),
) -> WrittenSource:
    description = analysis.description
    sizes = {device.name: _size(description, device.group)[0] for device in description.devices}
    addresses: dict[str, int] = {}
    end = 0
    for device in sorted(description.devices, key=lambda device: device.address):
        aligned = -(-max(end, device.address) // 8) * 8
        start = device.address if end <= device.address and device.address % 8 == 0 else -(-aligned // _PAGE) * _PAGE
        addresses[device.name], end = start, start + sizes[device.name]
    cells: dict[int, _Cell] = {}
    instances: Instances = {name: {} for name in description.groups}
    for device in description.devices:
        start = addresses[device.name]
        cells.update(_cells(description, device.group, device.name, start, ""))
        for group, address, name in _groups_in(description, device.group, start, device.name):
            instances[group][address] = name
    # Without optimisation: GCC 12 at -Os stores a volatile field four times in a do-while that runs three times.
    image = compile_image(
        _texts(analysis, addresses), target_named(target), False, includes, defines, (*CALLBACKS, *weak), "-O0"
    )
    loose = frozenset(f.name for f in analysis.functions if any(_is_cut(access, description) for access in f.accesses))
    return WrittenSource(image, cells, instances, loose)


def _is_cut(access: Access, description: Description) -> bool:
    """Whether the value of an assignment is used, of a field that has fewer bits than its type."""
    spot, bits = access.spot, description.field(access.owner, access.field).bits
    is_used = access.kind is Kind.WRITE and spot.form is not Form.POST and not (spot.alone or spot.is_unused)
    return is_used and bits != type_bits(bits)


def _texts(analysis: Analysis, addresses: Mapping[str, int]) -> dict[str, str]:
    """The source's files, and the support header with volatile fields and devices where they do not overlap."""
    source = analysis.source
    header = re.sub(r"^typedef (u\w+ hal_)", r"typedef volatile \1", SUPPORT_HEADER.read_text(), flags=re.MULTILINE)
    header = header.replace("(struct type *)(uintptr_t)(address)", "(struct type *)(uintptr_t)EDGEWRIGHT_AT_##name")
    places = "".join(f"#define EDGEWRIGHT_AT_{name} {address:#x}u\n" for name, address in addresses.items())
    files = {SUPPORT_HEADER.name: header.replace("#include <stdint.h>\n", f"#include <stdint.h>\n{places}", 1)}
    front = (
        b"" if any(map(_INCLUDE.search, source.written.values())) else b'#include "%s"\n' % SUPPORT_HEADER.name.encode()
    )
    for name, file in file_names(source).items():
        is_main = any(str(main) == name for main in source.main)
        files[file] = ((front if is_main else b"") + source.written[name]).decode()
    return files


def _size(description: Description, group: str) -> tuple[int, int]:
    """Bytes and alignment of a group as a struct."""
    at, alignment = 0, 1
    for _, start, size, aligned in _members(description, group):
        at, alignment = start + size, max(alignment, aligned)
    return -(-at // alignment) * alignment, alignment


def _members(description: Description, group: str) -> Iterator[tuple[Field | Child, int, int, int]]:
    """Each member with its first byte, its bytes and its alignment, by the rules of both processors."""
    at = 0
    for member in description.groups[group].members:
        if isinstance(member, Field):
            size = alignment = max(type_bits(member.bits), 8) // 8
        else:
            size, alignment = _size(description, member.group)
        at = -(-at // alignment) * alignment
        yield member, at, size * (member.count or 1), alignment
        at += size * (member.count or 1)


def _cells(description: Description, group: str, device: str, start: int, prefix: str) -> Iterator[tuple[int, _Cell]]:
    words = _words(description, group)
    for member, offset, size, _ in _members(description, group):
        count = member.count or 1
        for number in range(count):
            name = prefix + member.name + ("" if member.count is None else f"[{number}]")
            address = start + offset + size // count * number
            if isinstance(member, Child):
                for place, cell in _cells(description, member.group, device, address, f"{name}."):
                    word = words.get((member.name, cell.name.removeprefix(f"{name}.")))
                    yield place, _bit(cell, prefix, word, number) if word else cell
                continue
            room = 8 * size // count
            for low in range(0, room, _WORD):
                cell = _Cell(device, name, member.bits, min(room, _WORD), low)
                word = words.get((member.name, member.name))
                yield address + low // 8, _bit(cell, prefix, word, number) if word else cell


def _words(description: Description, group: str) -> dict[tuple[str, str], Field]:
    """The words of a group by the array that they gather and the field of its elements."""
    return {(f.gathers[0], f.gathers[-1]): f for f in description.groups[group].fields if f.gathers}


def _bit(cell: _Cell, prefix: str, word: Field, number: int) -> _Cell:
    return _Cell(cell.device, prefix + word.name, word.bits, cell.size, number, True)


def _groups_in(description: Description, group: str, address: int, name: str) -> Iterator[tuple[str, int, str]]:
    yield group, address, name
    for member, offset, size, _ in _members(description, group):
        if isinstance(member, Child):
            for number in range(member.count or 1):
                inner = f"{name}.{member.name}" + ("" if member.count is None else f"[{number}]")
                at = address + offset + size // (member.count or 1) * number
                yield from _groups_in(description, member.group, at, inner)


class Written:
    """Runs the untouched source; `registers` are those of the naive design, by address."""

    def __init__(
        self,
        source: WrittenSource,
        built: Built,
        registers: Mapping[int, RegisterAt],
        signatures: Mapping[str, Signature],
        foreign: frozenset[int],
        watched: frozenset[str],
        pointers: Pointers,
    ) -> None:
        self._loose = source.loose
        self._source = source
        self._registers = registers
        self._script = _Script((), source.cells, registers, False)
        pages = frozenset(address & ~(_PAGE - 1) for address in source.cells) | foreign
        self._caller = Caller(built, source.instances, dict(signatures), pages, self._called, pointers=pointers)
        for name in watched:
            self._caller.machine.watch(name, partial(self._touched, name))

    def reset(self, seed: int) -> None:
        self._caller.reset(seed)

    def is_loose(self, entered: Collection[str]) -> bool:
        """Whether the last call may have gone on with a value that the language cuts to a field and C does not."""
        return self._script.has_cut and not self._loose.isdisjoint(entered)

    def run(
        self, call: DrawnCall, log: Sequence[Happening], is_cut: bool
    ) -> tuple[object, Fault | None, Mapping[str, object]]:
        """Result, fault and memory of a call that has to do what the log says, or so far if that `is_cut`."""
        self._script = self._caller.machine.bus = _Script(log, self._source.cells, self._registers, is_cut)
        result, fault = self._caller.call(call, 4 * LIMIT)
        fault = fault or self._script.missing()
        return result, fault, {} if fault else self._caller.memory(call)

    def _called(self, name: str, arguments: tuple[object, ...]) -> None:
        self._script.note(Noted("call", name, arguments))

    def _touched(self, name: str, is_write: bool, value: int) -> None:
        self._script.note(Noted("foreign", f"variable {name}", value if is_write else "read"))


class _Script:
    """A bus that insists on the accesses to fields that a log tells, and gives its answers."""

    def __init__(
        self, log: Sequence[Happening], cells: Mapping[int, _Cell], registers: Mapping[int, RegisterAt], is_cut: bool
    ) -> None:
        self._log = list(log)
        self._cells = cells
        self._registers = registers
        self._is_cut = is_cut
        self._at = 0
        self._halves: dict[tuple[bool, str, str], int] = {}  # of wide fields, what the other access takes
        self.has_cut = False  # whether a field was written more than its bits hold

    def read(self, address: int, bits: int) -> int:
        return self._access(False, address, bits, 0)

    def write(self, address: int, bits: int, value: int) -> None:
        self._access(True, address, bits, value)

    def note(self, what: Noted) -> None:
        known = self._next(str(what))
        if known != what:
            raise _wrong(f"{what}, where the design has {self._told(known)}")

    def missing(self) -> Fault | None:
        """What the design did and the source did not."""
        rest = self._log[self._at :]
        return _wrong(f"the end, where the design has {self._told(rest[0])}") if rest and not self._is_cut else None

    def _access(self, is_write: bool, address: int, bits: int, value: int) -> int:
        verb = "write" if is_write else "read"
        cell = self._cells.get(address)
        if cell is None:
            return self._foreign(BusAccess(is_write, address, bits, value))
        if bits != cell.size:
            raise _wrong(f"a {verb} of {bits} bits of {cell}")
        key = is_write, cell.device, cell.name
        if key in self._halves:
            whole = self._halves.pop(key)
        else:
            whole = self._collected(is_write, cell, f"a {verb} of {cell}")
            if cell.bits > _WORD and not cell.is_gathered:
                self._halves[key] = whole
        mask = 1 if cell.is_gathered else ones(min(cell.bits - cell.low, _WORD))
        self.has_cut |= is_write and value & ~mask != 0
        known = whole >> cell.low & mask
        if is_write and known != value & mask:
            raise _wrong(f"a write of {value & mask} to {cell}, where the design writes {known}")
        return known

    def _foreign(self, access: BusAccess) -> int:
        known = self._next(str(access))
        if isinstance(known, Noted) and known.kind == "foreign":
            known = self._next(str(access))
        is_same = isinstance(known, BusAccess) and (known.is_write, known.address, known.bits) == (
            *(access.is_write, access.address, access.bits),
        )
        if not isinstance(known, BusAccess) or not is_same or (access.is_write and known.value != access.value):
            raise _wrong(f"a {access}, where the design has {self._told(known)}")
        return known.value

    def _collected(self, is_write: bool, cell: _Cell, told: str) -> int:
        """The field's value in the accesses that the design makes for it."""
        value = found = 0
        while found < cell.bits:
            known = self._next(told) if is_write else self._next_read(cell, told)
            if is_write and isinstance(known, BusAccess) and not known.is_write and cell.is_gathered:
                known = self._next(told)  # the rest of the word is put back
            at = self._field(known, cell)
            if at is None or not isinstance(known, BusAccess) or known.is_write != is_write:
                raise _wrong(f"{told}, where the design has {self._told(known)}")
            value |= (known.value >> at.bit & ones(at.size)) << at.low
            found += at.size
        return value

    def _next_read(self, cell: _Cell, told: str) -> Happening:
        """The next read of the field among those that nothing separates: C leaves their order in an expression open."""
        for number in range(self._at, len(self._log)):
            known = self._log[number]
            if not isinstance(known, BusAccess) or known.is_write:
                break
            if self._field(known, cell) is not None:
                self._log.insert(self._at, self._log.pop(number))
                break
        return self._next(told)

    def _field(self, known: Happening, cell: _Cell) -> FieldAt | None:
        register = self._registers.get(known.address) if isinstance(known, BusAccess) else None
        if register is None or register.device != cell.device:
            return None
        return next((at for at in register.fields if at.name == cell.name), None)

    def _next(self, told: str) -> Happening:
        if self._at == len(self._log):
            if self._is_cut:
                raise Fault(StopReason.ENDLESS, "as far as the design got")
            raise _wrong(f"{told}, where the design has nothing more")
        self._at += 1
        return self._log[self._at - 1]

    def _told(self, known: Happening) -> str:
        register = self._registers.get(known.address) if isinstance(known, BusAccess) else None
        if register is None:
            return f"a {known}"
        assert isinstance(known, BusAccess)
        return f"a {'write' if known.is_write else 'read'} of {register.device}.{register.fields[0].name}"


def _wrong(what: str) -> Fault:
    return Fault(StopReason.WRONG, f"the source as written has {what}")
