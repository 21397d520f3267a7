"""Devices as make_device(...) and mapped_device(...) declare them (S 6.3.1), with what bus, unordered and in_memory say
of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .cursors import KINDS, Cursor, children, constant, group_of, is_device, place
from .description import Bus, Device, Group, Refusal
from .nodes import operand
from .source import BUS_WIDTH, IN_MEMORY, MAPPED, UNORDERED, Source, named_device

_WIDTHS = (8, 16, 32)


def devices_of(
    source: Source, groups: Mapping[str, Group], default: Bus, refusals: list[Refusal]
) -> tuple[Device, ...]:
    """The devices in the order of the source; those that cannot be are refused."""
    buses = _buses(source, refusals)
    bus_of = {name: bus for name, (bus, _) in buses.items()}
    devices = [
        device
        for cursor in source.cursors
        if is_device(cursor) and (device := _device(cursor, bus_of.get(cursor.spelling, default), refusals))
    ]
    devices += _mapped(source, bus_of, default, devices)
    refusals += [
        Refusal(
            device.place, f"device '{device.name}' is of '{device.group}', which is no group", "define it with bfGroup"
        )
        for device in devices
        if device.group not in groups
    ]
    devices = [device for device in devices if device.group in groups]
    unordered, in_memory = (
        {name: cursor for cursor in source.cursors if (name := named_device(cursor, word)) is not None}
        for word in (UNORDERED, IN_MEMORY)
    )
    said = [(f"bus({name}, …)", name, cursor) for name, (_, cursor) in buses.items()]
    said += [(f"unordered({name})", name, cursor) for name, cursor in unordered.items()]
    said += [(f"in_memory({name})", name, cursor) for name, cursor in in_memory.items()]
    names = {device.name for device in devices}
    refusals += [
        Refusal(place(cursor), f"{what}: no device '{name}'", "declare it with make_device or mapped_device")
        for what, name, cursor in said
        if name not in names
    ]
    refusals += _clashes(devices)
    return tuple(replace(d, unordered=d.name in unordered, in_memory=d.name in in_memory) for d in devices)


def _buses(source: Source, refusals: list[Refusal]) -> dict[str, tuple[Bus, Cursor]]:
    found = {}
    for cursor in source.cursors:
        if (name := named_device(cursor, BUS_WIDTH)) is not None:
            bus = Bus(*(constant.enum_value for constant in children(cursor)))
            found[name] = bus, cursor
            if bus.width not in _WIDTHS or bus.narrowest not in _WIDTHS or bus.narrowest > bus.width:
                what = f"a bus of {bus.width} bits with accesses down to {bus.narrowest}"
                hint = "both are 8, 16 or 32, the second not above the first"
                refusals.append(Refusal(place(cursor), what, hint))
    return found


def _device(cursor: Cursor, bus: Bus, refusals: list[Refusal]) -> Device | None:
    here, name, address = place(cursor), str(cursor.spelling), _address(cursor)
    if address is None or not 0 <= address < 1 << 32:
        refusals.append(Refusal(here, f"the address of device '{name}' is no constant of 32 bits", _AT_RUN_TIME))
    elif address % (bus.width // 8):
        what = f"device '{name}' at {address:#x} is not aligned to its bus of {bus.width} bits"
        refusals.append(Refusal(here, what, f"take a multiple of {bus.width // 8}"))
    else:
        return Device(name, str(group_of(cursor.type)), address, here, bus)
    return None


_AT_RUN_TIME = "write a number; where the address is known at run time only, write mapped_device(Group, name)"


def _address(cursor: Cursor) -> int | None:
    """What the pointer is made from, as written: inside the cast to the group, a cast to an integer."""
    inner = cursor
    for _ in range(2):
        casts = [child for child in children(inner) if child.kind is KINDS.CSTYLE_CAST_EXPR]
        if not casts:
            return None
        inner = casts[0]
    return constant(operand(inner))


def _mapped(source: Source, bus_of: Mapping[str, Bus], default: Bus, others: Sequence[Device]) -> list[Device]:
    """The devices whose addresses are known at run time only, each at an address of its own that no other is near."""
    groups = {str(c.spelling): group_of(c.result_type) for c in source.cursors if c.kind is KINDS.FUNCTION_DECL}
    named = ((name, c) for c in source.cursors if (name := named_device(c, MAPPED)) is not None)
    free = (at for at in range(_MAPPED, 1 << 32, _APART) if not any(abs(at - one.address) < _APART for one in others))
    return [
        Device(name, str(groups[f"{name}_at"]), next(free), place(cursor), bus_of.get(name, default), is_mapped=True)
        for name, cursor in named
    ]


_MAPPED, _APART = 0x4000_0000, 1 << 20  # where they begin, and bytes from one to the next: more than any group has


def _clashes(devices: list[Device]) -> Iterator[Refusal]:
    for number, device in enumerate(devices):
        for other in devices[:number]:
            if device.name == other.name:
                yield Refusal(device.place, f"another device '{device.name}' is declared at {other.place}")
            elif device.address == other.address:
                what = f"devices '{other.name}' and '{device.name}' are both at {device.address:#x}"
                yield Refusal(device.place, what, "devices overlap; change one of the addresses")
