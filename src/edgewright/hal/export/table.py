"""The registers of a group of fields as documents list them: regular ones as arrays, arrays side by side as blocks.

A register is called after the group that has all its fields there and nowhere else; any other after that of its fields
which the source declares first. So a name changes only with what it stands for, not with what else shares the register.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from ..design import Design
from ..language.description import Description, Field, Protection
from ..language.semantics import Nature
from ..layout.layout import FieldAt, RegisterAt, elaborate

_INDEX = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class TableField:
    name: str  # an identifier, unique in its register
    path: str  # as C names it: pads[0].dir; of an array, its first element
    field: Field
    nature: Nature
    bit: int
    size: int
    low: int

    @property
    def reset(self) -> int:
        """What it holds after reset: those bits of the field's reset value that lie here."""
        return self.field.reset >> self.low & ((1 << self.size) - 1)

    @property
    def is_changed(self) -> bool:
        """Whether the peripheral writes it too."""
        return self.nature.changes or (self.nature.by_hardware and not self.nature.is_locked)


@dataclass(frozen=True, slots=True)
class TableRegister:
    """A register, or `count` of them that lie `stride` bytes apart."""

    name: str
    offset: int
    width: int
    fields: tuple[TableField, ...]
    count: int = 1
    stride: int = 0
    is_view: bool = False  # a further address of some fields of another register, where they are written alone
    about: str = ""  # the comment above the group that it is

    @property
    def protection(self) -> Protection | None:
        """Which software may access it: what all of its fields say."""
        return self.fields[0].field.protection

    def is_shown_by(self, view: TableRegister) -> bool:
        """Whether a view is one of this register."""
        places = {(at.path, at.bit) for at in self.fields}
        is_part = {(at.path, at.bit) for at in view.fields} <= places
        return is_part and (self.count, self.is_view, view.is_view) == (view.count, False, True)


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Registers that repeat together; their offsets are from the start of the block."""

    name: str
    offset: int
    registers: tuple[TableRegister, ...]
    count: int
    stride: int


Entry = TableRegister | TableBlock
Run = list[RegisterAt]


@dataclass(frozen=True, slots=True)
class Table:
    """What all devices of one group look like."""

    group: str
    about: str
    size: int  # bytes
    entries: tuple[Entry, ...]  # by offset


def tables(design: Design) -> tuple[Table, ...]:
    """One table for each group that a device has, in the order of the devices."""
    description = design.analysis.description
    found: dict[str, Table] = {}
    registers = elaborate(description, design.analysis.spaces, design.layout)
    for device in description.devices:
        if device.group not in found:
            own = [register for register in registers if register.device == device.name]
            size = design.layout.spaces[device.group].size
            found[device.group] = Table(
                device.group, description.groups[device.group].about, size, tuple(entries(own, description))
            )
    return tuple(found.values())


def entries(registers: Sequence[RegisterAt], description: Description) -> list[Entry]:
    """The registers of one device, folded into arrays and blocks where they are regular."""
    runs = list(_runs(registers))
    homes = _homes(runs)
    groups = _beside(runs)
    rows: list[Entry] = []
    for group in groups:
        if any(_overlap(group, other) for other in groups if other is not group):
            rows += [_row([register], description, homes) for run in group for register in run]
        else:
            together = [_row(run, description, homes) for run in group]
            rows.append(together[0] if len(together) == 1 else _block(together))
    rows.sort(key=lambda row: row.offset)
    return _with_unique_names(rows)


def _runs(registers: Sequence[RegisterAt]) -> Iterator[Run]:
    """Registers alike but for their first indices, cut where the steps of address or indices change."""
    alike: dict[object, Run] = defaultdict(list)
    for register in registers:
        shape = tuple((_INDEX.sub("[]", at.name, count=1), at.bit, at.size, at.low) for at in register.fields)
        alike[register.width, register.is_view, shape].append(register)
    for same in alike.values():
        run = same[:1]
        for before, register in pairwise(same):
            if len(run) > 1 and _step(before, register) != _step(run[0], run[1]):
                yield run
                run = []
            run.append(register)
        yield run


def _step(first: RegisterAt, second: RegisterAt) -> tuple[int, tuple[int, ...]]:
    """Bytes and indices from one register to the next."""
    pairs = zip(_indices(first), _indices(second), strict=True)
    return second.offset - first.offset, tuple(b - a for a, b in pairs)


def _indices(register: RegisterAt) -> list[int]:
    return [int(number) for at in register.fields for number in _INDEX.findall(at.name)]


def _homes(runs: Sequence[Run]) -> frozenset[str]:
    """The groups, by their paths, whose fields lie in one register alone, or in an array of registers."""
    held: dict[str, set[int]] = defaultdict(set)
    for number, run in enumerate(runs):
        for register in run if not run[0].is_view else ():
            for at in register.fields:
                held[_group_path(at)].add(number)
    return frozenset(path for path, numbers in held.items() if path and len(numbers) == 1)


def _group_path(at: FieldAt) -> str:
    """The path of the group that the field is in: channels[].setup of channels[3].setup.mode; empty at the top."""
    return _INDEX.sub("[]", at.name.rpartition(".")[0])


def _row(run: Run, description: Description, homes: frozenset[str]) -> TableRegister:
    first = run[0]
    whole = [_identifier(at, run) for at in first.fields]
    paths = {_group_path(at) for at in first.fields}
    about = ""
    if len(paths) == 1 and paths <= homes and not first.is_view:
        about = description.groups[first.fields[0].group].about
        name = _word_of(_bare(first.fields[0], run).rpartition(".")[0])
        names = unique([word.removeprefix(f"{name}_") for word in whole])
    else:
        first_declared = min(range(len(whole)), key=lambda n: (first.fields[n].field.place, first.fields[n].bit))
        name, names = (_beginning(whole) if len(whole) > 1 else "") or whole[first_declared], unique(whole)
    fields = tuple(
        TableField(name, at.name, at.field, description.nature(at.group, at.field.name), at.bit, at.size, at.low)
        for name, at in zip(names, first.fields, strict=True)
    )
    name = f"{name}_alone" if first.is_view else name
    return TableRegister(name, first.offset, first.width, fields, len(run), _stride(run), first.is_view, about)


def _identifier(at: FieldAt, run: Run) -> str:
    """The field's path as an identifier; the index that counts the registers of a run is left out."""
    part = "" if at.size == at.field.bits else f"_{at.low + at.size - 1}_{at.low}"
    return _word_of(_bare(at, run)) + part


def _bare(at: FieldAt, run: Run) -> str:
    return _without_run_index(at.name, run) if len(run) > 1 else at.name


def _word_of(path: str) -> str:
    return _INDEX.sub(r"_\1", path).replace(".", "_")


def _without_run_index(name: str, run: Run) -> str:
    """The name without the index that steps by one from register to register; lanes step by more and keep theirs."""
    place = next(i for i, at in enumerate(run[0].fields) if at.name == name)
    later = iter(_INDEX.findall(run[1].fields[place].name))
    return _INDEX.sub(lambda match: "" if int(next(later)) - int(match[1]) == 1 else match[0], name)


def _beside(runs: Iterable[Run]) -> list[list[Run]]:
    """Arrays that interleave, which documents can only show as one array of blocks."""
    found: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: run[0].offset):
        if last := next((group for group in found if _interleaves(group[0], run)), None):
            last.append(run)
        else:
            found.append([run])
    return found


def _interleaves(first: Run, run: Run) -> bool:
    alike = len(run) == len(first) > 1 and _stride(run) == _stride(first)
    return alike and run[0].offset + run[0].width // 8 <= first[0].offset + _stride(first)


def _overlap(some: list[Run], others: list[Run]) -> bool:
    """Whether one lies, at least partly, in the gaps of the other."""
    return some[0][0].offset < _end(others) and others[0][0].offset < _end(some)


def _end(group: list[Run]) -> int:
    return max(run[-1].offset + run[-1].width // 8 for run in group)


def _stride(run: Run) -> int:
    return run[1].offset - run[0].offset if len(run) > 1 else 0


def _block(rows: list[TableRegister]) -> TableBlock:
    first = rows[0]
    common = _beginning([row.name for row in rows])
    inside = [replace(_cut(row, f"{common}_"), offset=row.offset - first.offset) for row in rows]
    registers = unique([row.name for row in inside])
    return TableBlock(
        common or f"{first.name}_and_more",
        first.offset,
        tuple(replace(row, name=name) for row, name in zip(inside, registers, strict=True)),
        first.count,
        first.stride,
    )


def _cut(row: TableRegister, beginning: str) -> TableRegister:
    """The register, once, with names that lack their beginning, where an identifier is left."""
    names = [_shorter(at.name, beginning) for at in row.fields]
    fields = tuple(replace(at, name=name) for at, name in zip(row.fields, unique(names), strict=True))
    return replace(row, name=_shorter(row.name, beginning), fields=fields, count=1, stride=0)


def _shorter(name: str, beginning: str) -> str:
    rest = name.removeprefix(beginning)
    return rest if rest[:1].isalpha() else name


def _beginning(names: Sequence[str]) -> str:
    """The words that all names begin with."""
    words = [f"{name}_".split("_")[:-1] for name in names]
    same = takewhile(lambda ours: len(set(ours)) == 1, zip(*words, strict=False))
    return "_".join(ours[0] for ours in same)


def _with_unique_names(rows: list[Entry]) -> list[Entry]:
    names = unique([row.name for row in rows])
    return [replace(row, name=name) for row, name in zip(rows, names, strict=True)]


def unique(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that are taken."""
    found: list[str] = []
    for name in names:
        candidates = (name if i == 0 else f"{name}_{i + 1}" for i in range(len(names) + len(found) + 1))
        found.append(next(candidate for candidate in candidates if candidate not in found))
    return found


MOST_NAMES = 8
MAPPED = "mapped at run time: this address stands for it"


def about_field(at: TableField) -> str:
    """What its comment says, and what it does beyond keeping what software writes; empty for a plain field without."""
    return "; ".join([*filter(None, [at.field.about]), *_facts(at)])


def about_register(register: TableRegister) -> str:
    """The fields in it, as the driver's source names them."""
    paths = [at.path for at in register.fields]
    names = ", ".join(paths) if len(paths) <= MOST_NAMES else f"{paths[0]} to {paths[-1]}"
    told = names if register.count == 1 else f"{names} and so on"
    told = f"{register.about}: {told}" if register.about else told
    return f"{told}: writes reach these alone" if register.is_view else told


def _facts(at: TableField) -> Iterator[str]:
    field = at.field
    if field.fifo:
        yield "FIFO: reading takes the next value, writing appends one"
    if field.clear_on_read:
        yield "reading clears it"
    if others := [str(target) for target in field.rse if target.member != field.name]:
        yield f"reading touches {', '.join(others)}"
    if field.wse:
        yield f"writing touches {', '.join(map(str, field.wse))}"
    if field.gathers:
        array, *names = field.gathers
        yield f"bit n is {'.'.join([f'{array}[n]', *names])}"
    if field.w1c:
        yield "writing 1 clears"
    if field.w1s:
        yield "writing 1 sets"
    if field.while_zero:
        yield f"may be written only while {' and '.join(map(str, field.while_zero))} is 0"
    if at.is_changed:
        yield "the peripheral changes it too" if at.nature.writable else "the peripheral sets it"
    if field.protection is not None:
        yield f"{field.protection} access only"
    if field.shared_with_isr:
        yield "an interrupt routine accesses it too"
    if at.size != field.bits:
        yield f"bits {at.low + at.size - 1}:{at.low} of {field.name}"
