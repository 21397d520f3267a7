"""Register maps read from CMSIS-SVD files: one for each kind of peripheral that is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ...errors import InputError
from ..language.description import Mode, Protection
from .fixed_map import (
    MOST_ELEMENTS,
    FixedCluster,
    FixedField,
    FixedItem,
    FixedMap,
    FixedRegister,
    NamedValue,
    ReadEffect,
    WriteEffect,
    settled,
)
from .input_file import read_input

DEEPEST = 16  # clusters in clusters
_MODES = {
    "read-only": Mode.RO,
    "write-only": Mode.WO,
    "writeOnce": Mode.WO,
    "read-write": Mode.RW,
    "read-writeOnce": Mode.RW,
}
_PROTECTION = {one.value[0]: one for one in Protection}
_WRITES = {"oneToClear": WriteEffect.ONE_CLEARS, "oneToSet": WriteEffect.ONE_SETS}
_READS = {"clear": ReadEffect.CLEARS, "modify": ReadEffect.TAKES}
_NUMBER = re.compile(r"\+?(?:0[xX]([0-9a-fA-F]+)|(?:#|0[bB])([01]+)|([0-9]+))([kKmMgG]?)")
_SCALE = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class _Damaged(Exception):
    """What is wrong with the file, and where."""


def read_svd(path: Path, wanted: Sequence[str] = ()) -> list[FixedMap]:
    """The maps of the peripherals named in `wanted`; where none is named, of the only one in the file."""
    root = _parsed(path)
    try:
        peripherals = {_name(element): element for element in root.iterfind("peripherals/peripheral")}
        names = _chosen(path, list(peripherals), wanted)
        whole = _Defaults().inside(root)
        notes = _byte_order(root)
        return [replace(found, left_out=(*notes, *found.left_out)) for found in _maps(peripherals, names, whole)]
    except _Damaged as error:
        raise InputError(f"SVD file '{path}' is damaged: {error}") from error


def _parsed(path: Path) -> Element:
    try:
        root = ElementTree.fromstring(read_input(path))
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError) as error:
        raise InputError(f"SVD file '{path}' is damaged: {error}") from error
    if root.tag != "device":
        raise InputError(f"'{path}' is no SVD file: its root is <{root.tag}>, not <device>")
    return root


def _chosen(path: Path, names: Sequence[str], wanted: Sequence[str]) -> Sequence[str]:
    if not names:
        raise InputError(f"SVD file '{path}' has no peripherals")
    if unknown := [name for name in wanted if name not in names]:
        raise InputError(f"'{path}' has no peripheral '{unknown[0]}'. It has {_listed(names)}.")
    if not wanted and len(names) > 1:
        raise InputError(f"'{path}' has {len(names)} peripherals. Name one with --peripheral: {_listed(names)}.")
    return list(dict.fromkeys(wanted)) or names


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def _byte_order(root: Element) -> tuple[str, ...]:
    """A note on a processor that is not little-endian. Registers are accessed as a whole, so their code is the same."""
    said = (root.findtext("cpu/endian") or "little").strip()
    return () if said == "little" else (f"the byte order of the processor ({said}); verification is little-endian",)


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What registers inherit from what they are in."""

    size: int = 32
    access: str = "read-write"
    reset: int = 0
    protection: Protection | None = None

    def inside(self, element: Element) -> _Defaults:
        return _Defaults(
            _number(element, "size", self.size),
            _text(element, "access") or self.access,
            _number(element, "resetValue", self.reset),
            _protection(element) or self.protection,
        )


def _maps(peripherals: dict[str, Element], names: Sequence[str], whole: _Defaults) -> list[FixedMap]:
    """Devices that are derived from one another without registers of their own are of one kind."""
    kinds: dict[str, FixedMap] = {}
    for name in names:
        kind = _kind(peripherals, name)
        address = _number(peripherals[name], "baseAddress")
        if kind in kinds:
            kinds[kind] = replace(kinds[kind], devices=(*kinds[kind].devices, (name, address)))
            continue
        element = _derived(peripherals[kind], peripherals.get)
        registers = element.find("registers")
        items = _items(list(registers) if registers is not None else [], whole.inside(element))
        kinds[kind] = FixedMap(kind, items, ((name, address),), _about(element))
    return [settled(found) for found in kinds.values()]


def _kind(peripherals: dict[str, Element], name: str) -> str:
    """The peripheral that has the registers of this one."""
    seen = [name]
    while peripherals[name].find("registers") is None and (base := peripherals[name].get("derivedFrom")):
        if base not in peripherals or base in seen:
            raise _Damaged(f"peripheral '{seen[0]}' is derived from '{base}', which leads nowhere")
        name = base
        seen.append(name)
    return name


def _items(elements: Sequence[Element], defaults: _Defaults, depth: int = 0) -> tuple[FixedItem, ...]:
    """Registers and clusters side by side."""
    if depth > DEEPEST:
        raise _Damaged(f"clusters lie deeper than {DEEPEST} in each other")
    found: list[FixedItem] = []
    for element in elements:
        if element.tag in ("register", "cluster"):
            whole = _derived(element, partial(_sibling, elements))
            inner = defaults.inside(whole)
            is_register = element.tag == "register"
            item: FixedItem = _register(whole, inner) if is_register else _cluster(whole, inner, depth)
            found += _arrayed(whole, replace(item, about=_about(whole)))
    return tuple(found)


def _cluster(element: Element, defaults: _Defaults, depth: int) -> FixedCluster:
    items = _items(list(element), defaults, depth + 1)
    return FixedCluster(_name(element), _number(element, "addressOffset"), items)


def _register(element: Element, defaults: _Defaults) -> FixedRegister:
    name, width = _name(element), defaults.size
    whole = FixedField(name, 0, width, *_effects(element, defaults.access), reset=defaults.reset)
    inside = element.find("fields")
    elements = [] if inside is None else inside.findall("field")
    fields = [at for each in elements for at in _fields(each, elements, element, defaults)]
    return FixedRegister(
        name,
        _number(element, "addressOffset"),
        width,
        tuple(fields) or (replace(whole, reset=whole.reset & ((1 << width) - 1)),),
        is_whole=not fields,
        protection=defaults.protection,
    )


def _fields(element: Element, siblings: Sequence[Element], register: Element, defaults: _Defaults) -> list[FixedField]:
    whole = _derived(element, partial(_sibling, siblings))
    bit, size = _bits(whole)
    effects = _effects(whole, defaults.access, register)
    values = tuple(_values(whole))
    field = FixedField(_name(whole), bit, size, *effects, about=_about(whole), values=values)
    count = _dimension(whole)
    step = _number(whole, "dimIncrement", 0)
    if count is None:
        return [_with_reset(field, defaults.reset)]
    if _is_indexed(whole, count) and step == size and count & (count - 1) == 0 and len(siblings) == 1:
        return [_with_reset(replace(field, name=_bare(field.name), count=count), defaults.reset)]
    names = _numbered(field.name, whole, count)
    return [_with_reset(replace(field, name=name, bit=bit + n * step), defaults.reset) for n, name in enumerate(names)]


def _with_reset(field: FixedField, reset: int) -> FixedField:
    return replace(field, reset=reset >> field.bit & ((1 << field.size) - 1))


def _bits(element: Element) -> tuple[int, int]:
    """First bit and number of bits, in any of the three ways to say it."""
    if said := _text(element, "bitRange"):
        match = re.fullmatch(r"\[(\d+):(\d+)\]", said)
        if match is None:
            raise _Damaged(f"field '{_name(element)}' has bitRange '{said}'")
        high, low = int(match[1]), int(match[2])
    elif element.find("lsb") is not None:
        low, high = _number(element, "lsb"), _number(element, "msb")
    else:
        low = _number(element, "bitOffset")
        high = low + _number(element, "bitWidth", 1) - 1
    if not 0 <= low <= high < 1024:
        raise _Damaged(f"field '{_name(element)}' has bits {high} to {low}")
    return low, high - low + 1


def _effects(element: Element, access: str, register: Element | None = None) -> tuple[Mode, WriteEffect, ReadEffect]:
    """What software may do, and what writing and reading do; a field follows its register where it says nothing."""

    def said(tag: str) -> str:
        return _text(element, tag) or (_text(register, tag) if register is not None else "")

    mode = _MODES.get(_text(element, "access") or access)
    if mode is None:
        raise _Damaged(f"'{_name(element)}' has access '{_text(element, 'access') or access}'")
    written, read = said("modifiedWriteValues"), said("readAction")
    on_write = _WRITES.get(written, WriteEffect.OTHER) if written else WriteEffect.NONE
    on_read = _READS.get(read, ReadEffect.TOUCHES) if read else ReadEffect.NONE
    return (mode, WriteEffect.NONE if mode is Mode.RO else on_write, ReadEffect.NONE if mode is Mode.WO else on_read)


def _values(element: Element) -> Iterable[NamedValue]:
    for value in element.iterfind("enumeratedValues/enumeratedValue"):
        said = _text(value, "value")
        match = _NUMBER.fullmatch(said)
        if match and (name := value.findtext("name")):  # those with bits that do not matter have no number
            yield NamedValue(name, _value(match), _about(value))


def _arrayed(element: Element, item: FixedItem) -> list[FixedItem]:
    """The item as an array, or as many items where its elements have names of their own."""
    count = _dimension(element)
    if count is None:
        return [item]
    stride = _number(element, "dimIncrement")
    if _is_indexed(element, count):
        return [replace(item, name=_bare(item.name), count=count, stride=stride)]
    names = _numbered(item.name, element, count)
    return [replace(item, name=name, offset=item.offset + n * stride) for n, name in enumerate(names)]


def _dimension(element: Element) -> int | None:
    if element.find("dim") is None:
        return None
    count = _number(element, "dim")
    if not 1 <= count <= MOST_ELEMENTS:
        raise _Damaged(f"'{_name(element)}' has {count} elements")
    return count


def _is_indexed(element: Element, count: int) -> bool:
    """Whether the elements are numbered from 0, so that an array of C names them."""
    return _indices(element, count) == [str(n) for n in range(count)]


def _indices(element: Element, count: int) -> list[str]:
    said = _text(element, "dimIndex")
    if not said:
        return [str(n) for n in range(count)]
    if match := re.fullmatch(r"(\d+)-(\d+)", said):
        found = [str(n) for n in range(int(match[1]), min(int(match[2]), int(match[1]) + count) + 1)]
    elif match := re.fullmatch(r"([A-Z])-([A-Z])", said):
        found = [chr(n) for n in range(ord(match[1]), ord(match[2]) + 1)]
    else:
        found = [part.strip() for part in said.split(",")]
    if len(found) != count:
        raise _Damaged(f"'{_name(element)}' has {count} elements, and dimIndex names {len(found)}")
    return found


def _numbered(name: str, element: Element, count: int) -> list[str]:
    pattern = name.replace("[%s]", "%s")
    pattern = pattern if "%s" in pattern else f"{pattern}%s"
    return [pattern.replace("%s", index) for index in _indices(element, count)]


def _bare(name: str) -> str:
    return name.replace("[%s]", "").replace("%s", "").strip("_") or name.replace("%s", "")


def _derived(element: Element, find: Callable[[str], Element | None], depth: int = 0) -> Element:
    """The element with what it does not say itself taken from where it is derived from."""
    base = element.get("derivedFrom")
    if base is None:
        return element
    origin = find(base)
    if origin is None or origin is element or depth > DEEPEST:
        raise _Damaged(f"'{element.findtext('name')}' is derived from '{base}', which leads nowhere")
    origin = _derived(origin, find, depth + 1)
    merged = copy(element)
    own = {child.tag for child in element}
    range_tags = {"bitRange", "lsb", "msb", "bitOffset", "bitWidth"}
    hidden = own | (range_tags if own & range_tags else set())
    arrays = {"dim", "dimIncrement", "dimIndex", "dimName", "dimArrayIndex"}
    merged.extend(child for child in origin if child.tag not in hidden and child.tag not in arrays)
    return merged


def _sibling(elements: Iterable[Element], path: str) -> Element | None:
    """The element of that name: derivedFrom may say where it is, the last word is its name."""
    name = path.rpartition(".")[2]
    return next((element for element in elements if element.findtext("name") == name), None)


def _name(element: Element) -> str:
    name = (element.findtext("name") or "").strip()
    if not name:
        raise _Damaged(f"a <{element.tag}> has no name")
    return name


def _about(element: Element) -> str:
    return " ".join((element.findtext("description") or "").split())


def _protection(element: Element) -> Protection | None:
    said = _text(element, "protection") or _text(element, "addressBlock/protection")
    if said and said not in _PROTECTION:
        raise _Damaged(f"'{element.findtext('name')}' has <protection> '{said}'; it is s, n or p")
    return _PROTECTION.get(said)


def _text(element: Element, tag: str) -> str:
    return (element.findtext(tag) or "").strip()


def _number(element: Element, tag: str, default: int | None = None) -> int:
    said = _text(element, tag)
    if not said and default is not None:
        return default
    if not said:
        raise _Damaged(f"'{element.findtext('name')}' has no <{tag}>")
    match = _NUMBER.fullmatch(said)
    if match is None or len(said) > 40:
        raise _Damaged(f"'{element.findtext('name')}' has <{tag}> '{said[:40]}', which is no number")
    return _value(match)


def _value(match: re.Match[str]) -> int:
    hexadecimal, binary, decimal, scale = match.groups()
    base = int(hexadecimal, 16) if hexadecimal else int(binary, 2) if binary else int(decimal)
    return base * _SCALE[scale.lower()]
