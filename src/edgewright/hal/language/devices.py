"""Devices as make_device(...) declares them (S 6.3.1), with what bus, unordered and in_memory say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from .cursors import KINDS, Cursor, constant, group_of, is_device, place
from .description import Bus, Device, Group, Refusal
from .nodes import operand
from .source import BUS_WIDTH, IN_MEMORY, UNORDERED, Source, named_device

_WIDTHS = (8, 16, 32)


def devices_of(
    source: Source, groups: Mapping[str, Group], default: Bus, refusals: list[Refusal]
) -> tuple[Device, ...]:
    """The devices in the order of the source; those that cannot be are refused."""
    buses = _buses(source, refusals)
    devices = [
        device
        for cursor in source.cursors
        if is_device(cursor) and (device := _device(cursor, groups, buses, default, refusals))
    ]
    unordered, in_memory = (
        {name: cursor for cursor in source.cursors if (name := named_device(cursor, word)) is not None}
        for word in (UNORDERED, IN_MEMORY)
    )
    said = [(f"bus({name}, …)", name, cursor) for name, (_, cursor) in buses.items()]
    said += [(f"unordered({name})", name, cursor) for name, cursor in unordered.items()]
    said += [(f"in_memory({name})", name, cursor) for name, cursor in in_memory.items()]
    names = {device.name for device in devices}
    refusals += [
        Refusal(place(cursor), f"{what}: no device '{name}'", "declare it with make_device")
        for what, name, cursor in said
        if name not in names
    ]
    refusals += _clashes(devices)
    return tuple(replace(d, unordered=d.name in unordered, in_memory=d.name in in_memory) for d in devices)


def _buses(source: Source, refusals: list[Refusal]) -> dict[str, tuple[Bus, Cursor]]:
    found = {}
    for cursor in source.cursors:
        if (name := named_device(cursor, BUS_WIDTH)) is not None:
            bus = Bus(*(constant.enum_value for constant in cursor.get_children()))
            found[name] = bus, cursor
            if bus.width not in _WIDTHS or bus.narrowest not in _WIDTHS or bus.narrowest > bus.width:
                what = f"a bus of {bus.width} bits with accesses down to {bus.narrowest}"
                hint = "both are 8, 16 or 32, the second not above the first"
                refusals.append(Refusal(place(cursor), what, hint))
    return found


def _device(
    cursor: Cursor,
    groups: Mapping[str, Group],
    buses: Mapping[str, tuple[Bus, Cursor]],
    default: Bus,
    refusals: list[Refusal],
) -> Device | None:
    here, name = place(cursor), str(cursor.spelling)
    group, address = group_of(cursor.type), _address(cursor)
    bus = buses[name][0] if name in buses else default
    if group is None or group not in groups:
        refusals.append(Refusal(here, f"device '{name}' is of '{group}', which is no group", "define it with bfGroup"))
    elif address is None or not 0 <= address < 1 << 32:
        refusals.append(Refusal(here, f"the address of device '{name}' is no constant of 32 bits", "write a number"))
    elif address % (bus.width // 8):
        what = f"device '{name}' at {address:#x} is not aligned to its bus of {bus.width} bits"
        refusals.append(Refusal(here, what, f"take a multiple of {bus.width // 8}"))
    else:
        return Device(name, group, address, here, bus)
    return None


def _address(cursor: Cursor) -> int | None:
    """What the pointer is made from, as written: inside the cast to the group, a cast to an integer."""
    inner = cursor
    for _ in range(2):
        casts = [child for child in inner.get_children() if child.kind is KINDS.CSTYLE_CAST_EXPR]
        if not casts:
            return None
        inner = casts[0]
    return constant(operand(inner))


def _clashes(devices: list[Device]) -> Iterator[Refusal]:
    for number, device in enumerate(devices):
        for other in devices[:number]:
            if device.name == other.name:
                yield Refusal(device.place, f"another device '{device.name}' is declared at {other.place}")
            elif device.address == other.address:
                what = f"devices '{other.name}' and '{device.name}' are both at {device.address:#x}"
                yield Refusal(device.place, what, "devices overlap; change one of the addresses")
