"""The register map of a conventional driver in terms of the fields of ours, from a TOML file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import InputError
from ..language.description import Child, Description, Device, Field
from ..layout.layout import FieldAt, RegisterAt

_NUMBER = r"(0x[0-9a-fA-F]+|\d+)"
_SPREAD = re.compile(rf"{_NUMBER}(?: \+ {_NUMBER} i, i < (\d+))?")
_STEP = re.compile(r"(\w+)(?:\[(\d+)\])?")
EXAMPLE = '0x10 = { low = 0, high = 16 } or "0x14 + 4 i, i < 8" = { "steps[i].result" = 0 }'


def read_twin_map(path: Path, description: Description) -> tuple[RegisterAt, ...]:
    """A table for each device; each line has the byte of a register, and the lowest bit of each field in it."""
    try:
        told = tomllib.loads(path.read_text())
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot read '{path}', which says where the twin has the fields: {reason}") from error
    except ValueError as error:  # TOML, or UTF-8
        raise InputError(f"'{path}' is no TOML: {error}") from error
    devices = {device.name: device for device in description.devices}
    if wrong := next((name for name in told if name not in devices), None):
        raise InputError(f"'{path}': [{wrong}] is no device of the driver; it has {', '.join(devices)}")
    try:
        return tuple(at for name, registers in told.items() for at in _registers(description, devices[name], registers))
    except ValueError as error:
        raise InputError(f"'{path}': {error}") from error


def map_bytes_of(registers: tuple[RegisterAt, ...]) -> int:
    """Bytes of all devices, each up to its last register."""
    ends: dict[str, int] = {}
    for register in registers:
        ends[register.device] = max(ends.get(register.device, 0), register.offset + register.width // 8)
    return sum(ends.values())


def _registers(description: Description, device: Device, lines: object) -> Iterator[RegisterAt]:
    if not isinstance(lines, dict):
        raise ValueError(f"{device.name} is a table of registers: [{device.name}] {EXAMPLE}")
    for place, fields in lines.items():
        if not isinstance(fields, dict):
            raise ValueError(f"{device.name}.{place} says which fields it has; write {EXAMPLE}")
        for number, offset in _spread(place):
            found = tuple(_fields(description, device, fields, number))
            yield RegisterAt(device.name, offset, device.bus.width, found)


def _fields(
    description: Description, device: Device, fields: Mapping[str, object], number: int | None
) -> Iterator[FieldAt]:
    for path, bits in fields.items():
        for own, bit in _spread(str(bits)):
            index = own if number is None else number
            name = path if index is None else path.replace("[i]", f"[{index}]")
            group, field = _field(description, device, name)
            if bit + field.bits > device.bus.width:
                raise ValueError(f"{device.name}.{name} has {field.bits} bits and does not fit from bit {bit} on")
            yield FieldAt(name, group, field, bit, field.bits)


def _spread(told: str) -> Iterator[tuple[int | None, int]]:
    """One place, or those of the elements of an array by number: "0x14 + 4 i, i < 8"."""
    parts = _SPREAD.fullmatch(told)
    if parts is None:
        raise ValueError(f"'{told}' is no place; write {EXAMPLE}")
    first, step, count = parts.groups()
    if count is None:
        yield None, int(first, 0)
    else:
        yield from ((number, int(first, 0) + int(step, 0) * number) for number in range(int(count)))


def _field(description: Description, device: Device, path: str) -> tuple[str, Field]:
    """The field that a path such as "steps[3].result" leads to, and the group that declares it."""
    group, member = device.group, None
    for step in path.split("."):
        parts = _STEP.fullmatch(step)
        group = member.group if isinstance(member, Child) else group
        own = {one.name: one for one in description.groups[group].members} if not isinstance(member, Field) else {}
        member = own.get(parts[1]) if parts else None
        if parts is None or member is None or (parts[2] is None) != (member.count is None):
            raise ValueError(f"{device.name} has no field '{path}'")
        if member.count is not None and int(parts[2]) >= member.count:
            raise ValueError(f"{device.name}.{path} is beyond the {member.count} elements of '{parts[1]}'")
    if not isinstance(member, Field):
        raise ValueError(f"{device.name}.{path} is no field")
    return group, member
