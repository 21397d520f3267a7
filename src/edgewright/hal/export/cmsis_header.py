"""A design as a C header in the style of CMSIS: structs of registers, `_Pos` and `_Msk` macros, pointers to devices.

For code beside the driver, and for readers: the driver itself uses the generated HAL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...errors import InputError
from ..design import Design
from ..language.description import Mode
from .table import Entry, Table, TableBlock, TableRegister, about_field, about_register, tables, unique

_SUFFIX = re.compile(r"(?<=.)_?[Tt]ype$")  # of a group: its struct has one anyway
_QUALIFIERS = """\
#include <stdint.h>

#ifndef __I
#define __I volatile const
#endif
#ifndef __O
#define __O volatile
#endif
#ifndef __IO
#define __IO volatile
#endif"""


def cmsis_header(design: Design, name: str) -> str:
    """The text of a header with a struct for each kind of device."""
    guard = re.sub(r"\W", "_", name, flags=re.ASCII).upper() + "_CMSIS_H"
    devices = design.analysis.description.devices
    names = unique([device.name.upper() for device in devices])
    parts = [f"/* Registers of {name}, as edgewright laid them out. */\n#ifndef {guard}\n#define {guard}", _QUALIFIERS]
    found = tables(design)
    kinds = unique([_SUFFIX.sub("", table.group) for table in found])
    for table, kind, prefix in zip(found, kinds, unique([kind.upper() for kind in kinds]), strict=True):
        rows = _named(table.entries, names)
        parts += ["\n".join(_struct(table, rows, kind)), "\n".join(_macros(rows, prefix))]
    types = {table.group: f"{kind}_Type" for table, kind in zip(found, kinds, strict=True)}
    for macro, device in zip(names, devices, strict=True):
        if not device.is_mapped:
            base = f"#define {macro}_BASE (0x{device.address:08X}UL)"
            parts.append(f"{base}\n#define {macro} (({types[device.group]} *){macro}_BASE)")
    return "\n\n".join([*(part for part in parts if part), "#endif", ""])


def _struct(table: Table, rows: Sequence[Entry], kind: str) -> Iterator[str]:
    if table.about:
        yield f"/* {table.about} */"
    yield "typedef struct {"
    yield from (f"    {line}" for line in _members(rows, table.size, table.group))
    yield f"}} {kind}_Type;"


def _named(entries: Sequence[Entry], taken: Sequence[str]) -> list[Entry]:
    """The entries with names in capital letters, by their places; none is that of a device, which is a macro."""
    rows = sorted(entries, key=lambda entry: entry.offset)
    names = unique([*taken, *(row.name.upper() for row in rows)])[len(taken) :]
    return [replace(row, name=name) for row, name in zip(rows, names, strict=True)]


def _members(rows: Sequence[Entry], size: int, where: str) -> Iterator[str]:
    """Registers and blocks with the gaps between them."""
    at = 0
    for row in rows:
        yield from _gap(at, row.offset)
        inner = [replace(row, offset=0, count=1)] if isinstance(row, TableRegister) else _registers(row)
        stride = row.stride if row.count > 1 else inner[0].width // 8
        widest = max(register.width for register in inner) // 8
        if row.offset % widest or stride % widest or any(one.offset % (one.width // 8) for one in inner):
            raise InputError(
                f"--cmsis: {where}.{row.name} at 0x{row.offset:X} repeats every {stride} bytes, and no C struct "
                f"with members of {8 * widest} bits does. Leave --cmsis out, or declare the bus without byte lanes."
            )
        length = "" if row.count == 1 else f"[{row.count}]"
        if isinstance(row, TableRegister) and stride == row.width // 8:
            yield f"{_declared(row)}{length}; /* 0x{row.offset:03X}: {about_register(row)} */"
        else:
            yield "struct {"
            yield from (f"    {line}" for line in _members(inner, stride, f"{where}.{row.name}"))
            yield f"}} {row.name}{length}; /* 0x{row.offset:03X} */"
        at = row.offset + row.count * stride
    yield from _gap(at, size)


def _registers(block: TableBlock) -> list[TableRegister]:
    """The registers of a block by their places, with names in capital letters."""
    rows = sorted(block.registers, key=lambda register: register.offset)
    names = unique([register.name.upper() for register in rows])
    return [replace(register, name=name) for register, name in zip(rows, names, strict=True)]


def _gap(start: int, end: int) -> Iterator[str]:
    if end > start:
        yield f"uint8_t RESERVED{start}[{end - start}];"


def _declared(register: TableRegister) -> str:
    modes = {at.field.mode for at in register.fields}
    access = "__O" if register.is_view or modes == {Mode.WO} else "__I" if modes == {Mode.RO} else "__IO"
    return f"{access} uint{register.width}_t {register.name}"


def _macros(rows: Sequence[Entry], prefix: str) -> Iterator[str]:
    """Where each field lies, named after group, block, register and field."""
    for row in rows:
        inner = [row] if isinstance(row, TableRegister) else _registers(row)
        for register in inner:
            path = f"{prefix}_{row.name}" if register is row else f"{prefix}_{row.name}_{register.name}"
            for at, name in zip(register.fields, unique([at.name.upper() for at in register.fields]), strict=True):
                about = about_field(at)
                yield f"#define {path}_{name}_Pos ({at.bit}U)" + (f" /* {about} */" if about else "")
                yield f"#define {path}_{name}_Msk (0x{(1 << at.size) - 1:X}UL << {path}_{name}_Pos)"
