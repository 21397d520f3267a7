"""Register maps read from C headers: structs of volatile words, or macros with offsets; both with macros for fields.

A struct is laid out by libclang, and macros are evaluated by it, so that a header means what a compiler takes it for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from math import prod
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..language.cursors import KINDS, Cursor, cindex, constant
from ..language.description import Mode
from .fixed_map import FixedCluster, FixedField, FixedItem, FixedMap, FixedRegister, NamedValue, registers_in, settled
from .input_file import read_input

LONGEST = 512  # characters of a declaration that are looked at
_KEEP_GOING = 0x200  # CXTranslationUnit_KeepGoing: headers that are not there are no reason to stop
_STANDARD = Path(__file__).parent.parent / "include" / "standard"
_WORLD = ("-xc", "--target=riscv32-unknown-elf", "-ffreestanding", "-nostdinc", "-w", "-ferror-limit=0")
# What CMSIS headers say of members; one's own definition comes later and counts.
_CMSIS = {"__I": "volatile const", "__O": "volatile", "__IO": "volatile"}
_QUALIFIERS = _CMSIS | {f"{name}M": text for name, text in _CMSIS.items()}
_WRITE_ONLY = frozenset({"__O", "__OM"})
_GAP = re.compile(r"_*(reserved|rsvd|rfu|res\d|pad\d*$|padding|unused|dummy)", re.IGNORECASE)
_TYPE_ENDS = re.compile(r"(_?(typedef|type|regs?|registers|struct)|_s|_t)+$", re.IGNORECASE)
_ENDS = {
    "mask": ("_MSK", "_MASK", "_BITMASK"),
    "pos": ("_POS", "_SHIFT", "_LSB", "_OFFSET"),
    "bit": ("_BIT",),
}
_REGISTER = re.compile(r"(?P<name>\w+?)_(?:REG_)?(?:OFFSET|OFS)|(?P<before>\w+)_REG|(?:\w+_)?REG_(?P<after>\w+)")
_BASE = re.compile(r"(\w+?)_BASE(?:_?ADDR(?:ESS)?)?")


def read_header(path: Path, wanted: Sequence[str] = ()) -> list[FixedMap]:
    """The maps of the devices or structs named in `wanted`; where none is named, of the only one in the file."""
    header = _Header.read(path)
    maps = header.struct_maps() or header.offset_maps()
    if not maps:
        what = "neither a struct with volatile members nor macros like UART_CTRL_OFFSET"
        raise InputError(f"header '{path}' has no registers: {what}")
    chosen = [found for found in maps if not wanted or _is_wanted(found, wanted)]
    listed = ", ".join([found.name for found in maps][:12])
    for name in wanted:
        if not any(_is_wanted(found, [name]) for found in maps):
            raise InputError(f"'{path}' has no peripheral '{name}'. It has {listed}.")
    if not wanted and len(chosen) > 1:
        raise InputError(f"'{path}' has {len(chosen)} peripherals. Name one with --peripheral: {listed}.")
    return [settled(_only(found, wanted)) for found in chosen]


def _is_wanted(found: FixedMap, wanted: Sequence[str]) -> bool:
    return found.name in wanted or any(name in wanted for name, _ in found.devices)


def _only(found: FixedMap, wanted: Sequence[str]) -> FixedMap:
    """The map with the devices that are named, or with all where it is itself."""
    devices = tuple(device for device in found.devices if device[0] in wanted)
    return replace(found, devices=devices) if devices and found.name not in wanted else found


@dataclass(frozen=True, slots=True)
class _Header:
    """What libclang makes of a header."""

    stem: str
    structs: Mapping[str, Any]  # types of structs with volatile members, by name
    values: Mapping[str, int]  # of all macros that are numbers, in the order of the file
    pointers: Mapping[str, tuple[str, int]]  # macros that are pointers to structs: which, and where
    shifted: frozenset[str]  # macros in capital letters that are written as bits: (1u << 3), BIT(3)

    @classmethod
    def read(cls, path: Path) -> _Header:
        read_input(path)  # libclang does not say what is wrong with a file
        unit = _parsed(path, "")
        macros = (cursor for cursor in unit.cursor.get_children() if cursor.kind is KINDS.MACRO_DEFINITION)
        own = [macro for macro in macros if _is_in(macro, path) and _is_value(macro)]
        names = list(dict.fromkeys(macro.spelling for macro in own))
        shifted = frozenset(macro.spelling.upper() for macro in own if _is_shifted(macro))
        probes = (
            f"static const unsigned long long ew_value_{n} = (unsigned long long)({name});\n"
            f"static __typeof__({name}) ew_type_{n};\n"
            for n, name in enumerate(names)
        )
        unit = _parsed(path, "".join(probes))
        structs: dict[str, Any] = {}
        plain: dict[str, Any] = {}  # structs without volatile members: registers if a macro points to one
        values, pointers = {}, {}
        for cursor in unit.cursor.get_children():
            kind, _, number = cursor.spelling.rpartition("_")
            if kind == "ew_value" and (value := constant(cursor)) is not None:
                values[names[int(number)]] = value
            elif kind == "ew_type" and (told := cursor.type.get_canonical()).kind is cindex.TypeKind.POINTER:
                target = told.get_pointee().get_canonical()
                name = next((name for name, struct in structs.items() if _is_one(struct, target)), None)
                if name is None and (name := next((n for n, s in plain.items() if _is_one(s, target)), None)):
                    structs[name] = plain[name]
                if name is not None and names[int(number)] in values:
                    pointers[names[int(number)]] = name, values[names[int(number)]]
            elif cursor.kind in (KINDS.TYPEDEF_DECL, KINDS.STRUCT_DECL) and _is_in(cursor, path):
                struct = cursor.type.get_canonical()
                if cursor.spelling and struct.kind is cindex.TypeKind.RECORD:
                    known = structs if _is_volatile(struct) else plain
                    for name in [name for name, other in known.items() if other == struct]:
                        del known[name]
                    known[cursor.spelling] = struct
        return cls(path.stem, structs, values, pointers, shifted)

    def struct_maps(self) -> list[FixedMap]:
        """A map for each struct that no other contains."""
        inner = {child.spelling for struct in self.structs.values() for child in _inside(struct)}
        found = []
        for name, struct in self.structs.items():
            if struct.spelling in inner:
                continue
            devices = tuple((device, at) for device, (of, at) in self.pointers.items() if of == name)
            short = _TYPE_ENDS.sub("", name) or name
            items = tuple(_members(struct, 0))
            words = short.upper().split("_")
            prefixes = [
                "_".join(words[start:end]) for start in range(len(words)) for end in range(len(words), start, -1)
            ]
            fields = _Fields({macro.upper(): value for macro, value in self.values.items()}, prefixes, self.shifted)
            found.append(FixedMap(short, fields.filled(items), devices))
        return found

    def offset_maps(self) -> list[FixedMap]:
        """Maps for registers that macros give the offsets of, by what their names begin with."""
        offsets = dict(self._offsets())
        heads: dict[str, dict[str, int]] = {}
        common = _common(list(offsets))
        for name, offset in offsets.items():
            head = common or name.partition("_")[0]
            heads.setdefault(head, {})[name.removeprefix(f"{head}_")] = offset
        found = []
        for head, registers in heads.items():
            values = {macro.upper(): value for macro, value in self.values.items()}
            fields = _Fields(values, [head.upper(), ""], self.shifted)
            plain = [_whole(name, offset, 32, Mode.RW) for name, offset in registers.items()]
            bases = ((match[1], at) for macro, at in self.values.items() if (match := _BASE.fullmatch(macro)))
            devices = tuple((name, at) for name, at in bases if re.fullmatch(rf"{head}\d*", name, re.IGNORECASE))
            found.append(FixedMap(head or self.stem, tuple(_arrays(fields.filled(plain))), devices))
        return found

    def _offsets(self) -> Iterator[tuple[str, int]]:
        """Registers and their offsets; where a file says REG_OFFSET, other offsets are those of fields."""
        strict = any(macro.upper().endswith("_REG_OFFSET") for macro in self.values)
        upper = {macro.upper() for macro in self.values}
        for macro, value in self.values.items():
            match = _REGISTER.fullmatch(macro.upper())
            if match is None or (strict and not macro.upper().endswith("_REG_OFFSET")):
                continue
            name = macro[slice(*match.span(match.lastgroup or 0))]
            if not any(name.upper() + end in upper for end in _ENDS["mask"]) and value < 1 << 20:
                yield name, value


def _common(names: Sequence[str]) -> str:
    """What all names begin with, in whole words and less than any of them."""
    columns = takewhile(
        lambda column: len(set(column)) == 1, zip(*(name.split("_")[:-1] for name in names), strict=False)
    )
    return "_".join(column[0] for column in columns)


def _parsed(path: Path, more: str) -> Any:
    before = "".join(f"#define {name} {text}\n" for name, text in _QUALIFIERS.items())
    text = f'#include <stdint.h>\n{before}#include "{path.resolve()}"\n{more}'
    options = _KEEP_GOING | cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    flags = [*_WORLD, "-isystem", str(_STANDARD)]
    try:
        return cindex.Index.create().parse("probe.c", flags, [("probe.c", text)], options)
    except (cindex.TranslationUnitLoadError, UnicodeEncodeError) as error:
        raise InputError(f"libclang cannot parse '{path}'; does a compiler accept it?") from error


def _is_in(cursor: Cursor, path: Path) -> bool:
    file = cursor.location.file
    return file is not None and Path(str(file.name)) == path.resolve()


def _is_value(cursor: Cursor) -> bool:
    """Whether a macro stands for something, and takes no arguments."""
    name, *rest = cursor.get_tokens()
    return bool(rest) and not (rest[0].spelling == "(" and rest[0].extent.start.offset == name.extent.end.offset)


def _is_one(struct: Any, target: Any) -> bool:
    """Whether a type is the struct, volatile or not."""
    return bool(struct.get_declaration() == target.get_declaration())


def _is_shifted(macro: Cursor) -> bool:
    """Whether a macro is written as bits: with a shift, or a macro that makes one."""
    return any(token.spelling in ("<<", "BIT", "GENMASK") for token in macro.get_tokens())


def _element(kind: Any) -> tuple[Any, int | None]:
    """The type of an array's elements and how many there are; no number for what is no array."""
    counts = []
    kind = kind.get_canonical()
    while kind.kind is cindex.TypeKind.CONSTANTARRAY:
        counts.append(kind.element_count)
        kind = kind.element_type.get_canonical()
    return kind, prod(counts) if counts else None


def _inside(struct: Any) -> Iterator[Any]:
    """The structs in a struct, at any depth."""
    for member in struct.get_fields():
        kind, _ = _element(member.type)
        if kind.kind is cindex.TypeKind.RECORD:
            yield kind
            yield from _inside(kind)


def _is_volatile(struct: Any) -> bool:
    """Whether a struct has registers: some member is volatile."""
    for member in struct.get_fields():
        kind, _ = _element(member.type)
        is_inner = kind.kind is cindex.TypeKind.RECORD and _is_volatile(kind)
        if is_inner or kind.is_volatile_qualified() or member.type.is_volatile_qualified():
            return True
    return False


def _members(struct: Any, start: int) -> Iterator[FixedItem]:
    """The registers and clusters of a struct; members without a name stand for what is in them."""
    for member in struct.get_fields():
        kind, count = _element(member.type)
        at = start + member.get_field_offsetof() // 8
        size = kind.get_size()
        if _GAP.match(member.spelling) or count == 0 or size < 1:
            continue
        if kind.kind is not cindex.TypeKind.RECORD:
            is_const = kind.is_const_qualified() or member.type.is_const_qualified()
            mode = Mode.RO if is_const else Mode.WO if _WRITE_ONLY & _words_before(member) else Mode.RW
            register = _whole(member.spelling, at, size * 8, mode)
            yield register if count is None else replace(register, count=count, stride=size)
        elif member.is_anonymous() or not member.spelling:
            yield from _members(kind, at)
        else:
            stride = 0 if count is None else size
            yield FixedCluster(member.spelling, at, tuple(_members(kind, 0)), count=count, stride=stride)


def _words_before(member: Cursor) -> set[str]:
    """The words of a declaration up to the member's name, as written: macros are nothing more to libclang."""
    with Path(str(member.location.file.name)).open("rb") as file:
        file.seek(max(0, member.location.offset - LONGEST))
        text = file.read(min(LONGEST, member.location.offset))
    return set(re.findall(r"\w+", re.split(rb"[;{}]", text)[-1].decode(errors="replace")))


def _whole(name: str, offset: int, width: int, mode: Mode) -> FixedRegister:
    return FixedRegister(name, offset, width, (FixedField(name, 0, width, mode),), is_whole=True)


@dataclass(frozen=True, slots=True)
class _Fields:
    """Macros that say where fields lie: UART_CTRL_MODE_Pos and _Msk, or _SHIFT, _OFFSET, _BIT, _MASK."""

    values: Mapping[str, int]  # macros in capital letters
    prefixes: Sequence[str]  # what their names may begin with
    shifted: frozenset[str] = frozenset()  # those that are written as bits

    def filled(self, items: Sequence[FixedItem]) -> tuple[FixedItem, ...]:
        """The items, with the fields of every register that macros name."""
        names = {register.name.upper() for register in registers_in(items)}
        return tuple(self._item(item, names, "") for item in items)

    def _item(self, item: FixedItem, names: set[str], around: str) -> FixedItem:
        if isinstance(item, FixedCluster):
            inner = tuple(self._item(one, names, f"{around}{item.name.upper()}_") for one in item.items)
            return replace(item, items=inner)
        for prefix in self.prefixes:
            for path in dict.fromkeys((f"{around}{item.name.upper()}", item.name.upper())):
                stem = f"{prefix}_{path}_" if prefix else f"{path}_"
                if fields := tuple(self._found(stem, item, names)):
                    return replace(item, fields=fields, is_whole=False)
        return item

    def _found(self, stem: str, register: FixedRegister, names: set[str]) -> Iterator[FixedField]:
        own = register.name.upper()
        longer = [f"{stem[: -len(own) - 1]}{name}_" for name in names if name.startswith(f"{own}_")]
        said: dict[str, dict[str, int]] = {}
        for macro, value in self.values.items():
            if not macro.startswith(stem) or any(macro.startswith(other) for other in longer):
                continue
            for what, ends in _ENDS.items():
                end = next((end for end in ends if macro.endswith(end)), None)
                if end is not None and (name := macro[len(stem) : -len(end)]):
                    said.setdefault(name, {})[what] = value
        for name, parts in said.items():
            if place := _place(parts):
                bit, size = place
                values = tuple(self._named(f"{stem}{name}_", size)) if size < 32 else ()
                yield FixedField(name, bit, size, register.fields[0].mode, values=values)
        if not said:
            yield from self._masks(stem, register, longer)

    def _masks(self, stem: str, register: FixedRegister, longer: Sequence[str]) -> Iterator[FixedField]:
        """Fields of macros that are their masks, where there are no others: `UART_CTRL_EN (1u << 0)`.

        Masks that overlap are values of a field that nothing names.
        """
        masks = {
            macro.removeprefix(stem): value
            for macro, value in self.values.items()
            if macro.startswith(stem) and macro in self.shifted and not any(macro.startswith(one) for one in longer)
        }
        for name, mask in masks.items():
            is_apart = not any(mask & other for others, other in masks.items() if others != name)
            place = _place({"mask": mask}) if is_apart and mask >> register.size * 8 == 0 else None
            if place is not None:
                yield FixedField(name, place[0], place[1], register.fields[0].mode)

    def _named(self, stem: str, size: int) -> Iterator[NamedValue]:
        """Values that have names: macros that begin with the field's and fit it."""
        ends = tuple(end for of in _ENDS.values() for end in of)
        for macro, value in self.values.items():
            name = macro.removeprefix(stem)
            if name != macro and not name[0].isdigit() and not f"_{name}".endswith(ends) and value < 1 << size:
                yield NamedValue(name, value)


def _place(parts: Mapping[str, int]) -> tuple[int, int] | None:
    """First bit and number of bits; None where macros do not say both, or say it of bits that lie apart."""
    mask = parts.get("mask")
    if mask is None:
        return (parts["bit"], 1) if parts.get("bit", 64) < 64 else None
    if mask < 1:
        return None
    low = (mask & -mask).bit_length() - 1
    bits = mask >> low
    if bits & (bits + 1):
        return None
    return low or parts.get("pos", parts.get("bit", 0)), bits.bit_length()


def _arrays(items: Sequence[FixedItem]) -> Iterator[FixedItem]:
    """Registers that are numbered from 0, equally far apart and alike, as one array."""
    numbered: dict[str, list[FixedRegister]] = {}
    for item in items:
        match = re.fullmatch(r"(.*?)_?(\d+)", item.name)
        runs = numbered.setdefault(match[1] if match else item.name, [])
        assert isinstance(item, FixedRegister)
        runs.append(item)
    for name, run in numbered.items():
        steps = {after.offset - before.offset for before, after in pairwise(run)}
        ends = [item.name.removeprefix(name).strip("_") for item in run]
        alike = {tuple((f.bit, f.size, f.name) for f in item.fields if not item.is_whole) for item in run}
        is_array = len(run) > 1 and len(steps) == 1 and len(alike) == 1 and ends == [str(n) for n in range(len(run))]
        if not is_array or min(steps) < run[0].size:
            yield from run
            continue
        fields = (replace(run[0].fields[0], name=name),) if run[0].is_whole else run[0].fields
        yield replace(run[0], name=name, fields=fields, count=len(run), stride=min(steps))
