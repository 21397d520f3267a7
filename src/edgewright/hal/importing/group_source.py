"""A register map as source in the language of groups: a header that drivers include."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...text import printable
from ..language.description import Mode
from .fixed_map import (
    FixedCluster,
    FixedField,
    FixedItem,
    FixedMap,
    FixedRegister,
    ReadEffect,
    WriteEffect,
    unique_names,
)

LONGEST = 96  # characters of a comment


def device_name(name: str) -> str:
    """What the pointer to a device is called: the peripheral's name in small letters."""
    return unique_names([name.lower()])[0]


def group_name(name: str) -> str:
    return unique_names([name])[0]


def group_source(maps: Sequence[FixedMap], origin: str, stem: str) -> str:
    """The text of a header with all maps; `origin` is the file they were read from."""
    guard = re.sub(r"\W", "_", stem, flags=re.ASCII).upper() + "_GROUPS_H"
    lines = [
        f"/* Registers of {', '.join(found.name for found in maps)}, from {_comment_text(origin)}.",
        " *",
        f" * Where they lie is in {_comment_text(stem)}.lock.json: give it with --lock, and the map stays as it is.",
        " * Mark with hw what the peripheral changes by itself and software writes too: few files say it.",
        *(f" * Left out: {_comment_text(note)}." for found in maps for note in found.left_out),
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        '#include "edgewright_hal.h"',
    ]
    for found in maps:
        lines += ["", *_map(found)]
    return "\n".join([*lines, "", "#endif", ""])


def _map(found: FixedMap) -> Iterator[str]:
    name = group_name(found.name)
    yield from _values(found.items, name)
    yield from _group(name, found.items, found.about)
    widest, narrowest = found.bus
    for device, address in found.devices:
        yield ""
        yield f"make_device({name}, {device_name(device)}, 0x{address:08x});"
        if (widest, narrowest) != (32, 32):
            yield f"bus({device_name(device)}, {widest}, {narrowest});"


def _group(name: str, items: Sequence[FixedItem], about: str) -> Iterator[str]:
    """The groups inside, then the group itself."""
    for item in items:
        if isinstance(item, FixedCluster):
            yield from _group(f"{name}_{item.name}", item.items, item.about)
            yield ""
        elif not item.is_whole:
            yield from _register_group(f"{name}_{item.name}", item)
            yield ""
    yield from _head(name, about)
    for item in items:
        length = "" if item.count is None else f"[{item.count}]"
        if isinstance(item, FixedRegister) and item.is_whole:
            yield _member(item.fields[0], item, item.name, item.name + length, name, item.about)
        else:
            yield f"    bfGroup {name}_{item.name} {item.name}{length};"
    yield "};"


def _register_group(name: str, register: FixedRegister) -> Iterator[str]:
    yield from _head(name, register.about)
    for field in register.fields:
        length = "" if field.count is None else f"[{field.count}]"
        yield _member(field, register, field.name, field.name + length, name, field.about)
    yield "};"


def _head(name: str, about: str) -> Iterator[str]:
    if about:
        yield f"/* {_comment_text(about)} */"
    yield f"bfGroup {name} {{"


def _member(field: FixedField, register: FixedRegister, name: str, declared: str, group: str, about: str) -> str:
    kind = "bit" if field.size == 1 else f"uint{field.size}"
    words = " ".join([kind, *attributes_of(field, register, name, group), declared])
    return f"    {words};{_remark(about)}"


def attributes_of(field: FixedField, register: FixedRegister, name: str, group: str) -> Iterator[str]:
    """The attributes that say what the file says; `group` is the group that declares the field."""
    if field.mode is not Mode.RW:
        yield field.mode.value
    is_fifo = field.on_read is ReadEffect.TAKES and len(register.fields) == 1 and field.count is None
    is_fifo = is_fifo and field.on_write in (WriteEffect.NONE, WriteEffect.OTHER)
    if is_fifo:
        yield "fifo"
    elif field.on_read is ReadEffect.CLEARS:
        yield "clear_on_read"
    elif field.on_read is not ReadEffect.NONE:
        yield f"rse({group})"
    if field.on_write is WriteEffect.ONE_CLEARS:
        yield "w1c"
    elif field.on_write is WriteEffect.ONE_SETS or is_command(field, register):
        yield "w1s"
    elif field.on_write is WriteEffect.OTHER and not is_fifo:
        yield f"wse({name})"
    if field.by_hardware:
        yield "hw"
    if register.protection is not None:
        yield f"protection({register.protection.value})"
    if field.reset and not is_fifo:
        yield f"reset_value(0x{field.reset:x})"


def is_command(field: FixedField, register: FixedRegister) -> bool:
    """Whether a field that cannot be read stands beside others that are written: 0 must then do nothing."""
    beside = any(other is not field and other.mode is not Mode.RO for other in register.fields)
    return field.mode is Mode.WO and field.on_write is WriteEffect.NONE and (beside or field.count is not None)


def _values(items: Sequence[FixedItem], prefix: str) -> Iterator[str]:
    """Named values as enumerations; larger ones, which an enumerator may not have, as macros."""
    for path, field in _fields_with_values(items, prefix):
        names = unique_names([f"{path}_{value.name}" for value in field.values])
        named = list(zip(names, field.values, strict=True))
        if small := [pair for pair in named if pair[1].value < 1 << 31]:
            yield "enum {"
            yield from (f"    {name} = {value.value},{_remark(value.about)}" for name, value in small)
            yield "};"
        yield from (
            f"#define {name} 0x{value.value:x}u{_remark(value.about)}"
            for name, value in named
            if value.value >= 1 << 31
        )
        yield ""


def _fields_with_values(items: Sequence[FixedItem], prefix: str) -> Iterator[tuple[str, FixedField]]:
    for item in items:
        path = f"{prefix}_{item.name}"
        if isinstance(item, FixedCluster):
            yield from _fields_with_values(item.items, path)
        else:
            yield from ((f"{path}_{field.name}", field) for field in item.fields if field.values)


def _remark(about: str) -> str:
    return f" /* {_comment_text(about)} */" if about else ""


def _comment_text(text: str) -> str:
    """Text for a comment: one line, not too long, nothing that ends the comment."""
    line = " ".join(printable(text).split()).replace("*/", "* /").replace("/*", "/ *").rstrip("\\")
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1].rstrip()}…"
