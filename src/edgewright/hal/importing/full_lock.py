"""A lock file that says where all registers of existing hardware lie, so that no layout moves them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..lock.lock_file import FORMAT, readable
from .fixed_map import FixedCluster, FixedField, FixedItem, FixedMap, FixedRegister
from .group_source import device_name, group_name

Dimensions = tuple[tuple[int, int], ...]  # elements and bytes from one to the next, outermost first


def full_lock(maps: Sequence[FixedMap]) -> str:
    """The text of the lock file."""
    groups: dict[str, dict[str, Any]] = {}
    devices, layouts = {}, {}
    for found in maps:
        name = group_name(found.name)
        groups |= _groups(name, found.items)
        for device, address in found.devices:
            devices[device_name(device)] = {"group": name, "address": f"0x{address:X}"}
        word = found.bus[0] // 8
        registers = sorted(_registers(found.items, "", 0, ()), key=lambda register: register["offset"])
        layouts[name] = {"size": -(-found.size // word) * word, "registers": registers}
    return readable({"format": FORMAT, "is_fixed": True, "devices": devices, "groups": groups, "layout": layouts})


def _groups(name: str, items: Sequence[FixedItem]) -> dict[str, dict[str, Any]]:
    """Bits and elements of the fields of a group and of all groups in it."""
    found: dict[str, dict[str, Any]] = {name: {}}
    for item in items:
        if isinstance(item, FixedCluster):
            found |= _groups(f"{name}_{item.name}", item.items)
        elif item.is_whole:
            found[name][item.name] = _sizes(item.fields[0].size, item.count)
        else:
            found[f"{name}_{item.name}"] = {field.name: _sizes(field.size, field.count) for field in item.fields}
    return found


def _sizes(bits: int, count: int | None) -> dict[str, int]:
    return {"bits": bits} if count is None else {"bits": bits, "count": count}


def _registers(items: Sequence[FixedItem], prefix: str, start: int, around: Dimensions) -> Iterator[dict[str, Any]]:
    for item in items:
        dimensions = around if item.count is None else (*around, (item.count, item.stride))
        path = f"{prefix}{item.name}" + ("" if item.count is None else "[]")
        if isinstance(item, FixedCluster):
            yield from _registers(item.items, f"{path}.", start + item.offset, dimensions)
        else:
            yield from _register(item, path, start + item.offset, dimensions)


def _register(register: FixedRegister, path: str, offset: int, around: Dimensions) -> Iterator[dict[str, Any]]:
    """The register, or array of registers; an array of fields side by side is one more dimension of one register."""
    lanes = register.fields[0].count
    dimensions = around if lanes is None else (*around, (1, register.size))
    fields = [_field(field, register, path, around) for field in register.fields]
    yield {"offset": offset, "width": register.width, **_both(dimensions), "fields": fields}


def _field(field: FixedField, register: FixedRegister, path: str, around: Dimensions) -> dict[str, Any]:
    ends = "" if field.count is None else "[]"
    counts = [count for count, _ in around] + ([] if field.count is None else [field.count])
    return {
        "name": path if register.is_whole else f"{path}.{field.name}{ends}",
        "bit": field.bit,
        "size": field.size,
        **({} if field.count is None else {"lanes": field.count}),
        **({"counts": counts} if counts else {}),
    }


def _both(dimensions: Dimensions) -> dict[str, list[int]]:
    if not dimensions:
        return {}
    return {"counts": [count for count, _ in dimensions], "strides": [stride for _, stride in dimensions]}
