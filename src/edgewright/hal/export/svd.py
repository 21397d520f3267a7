"""A design as a CMSIS-SVD 1.3 file, which debuggers show registers from."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from ..design import Design
from ..language.description import Device, Mode
from .table import MAPPED, Entry, Table, TableBlock, TableField, TableRegister, about_field, about_register, tables

ACCESS = {Mode.RW: "read-write", Mode.RO: "read-only", Mode.WO: "write-only"}


def svd(design: Design, name: str) -> str:
    """The text of an .svd file with a peripheral for each device."""
    description = design.analysis.description
    about = {table.group: table for table in tables(design)}
    root = Element("device", {"schemaVersion": "1.3"})
    _texts(root, name=name, version="1.0", description=f"Registers of {name}, as edgewright laid them out")
    widest = max((device.bus.width for device in description.devices), default=32)
    _texts(root, addressUnitBits="8", width=str(widest), size=str(widest), resetMask="0x0")
    peripherals = SubElement(root, "peripherals")
    first: dict[str, str] = {}  # device of each group that was written out
    for device in description.devices:
        _peripheral(peripherals, device, about[device.group], first.get(device.group))
        first.setdefault(device.group, device.name)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _peripheral(parent: Element, device: Device, table: Table, alike: str | None) -> None:
    element = SubElement(parent, "peripheral", {"derivedFrom": alike} if alike else {})
    _texts(element, name=device.name)
    if alike is None or device.is_mapped:
        _texts(
            element, description=(table.about or f"{table.group} devices") + (f", {MAPPED}" if device.is_mapped else "")
        )
    _texts(element, baseAddress=f"0x{device.address:X}")
    if alike is None:
        block = SubElement(element, "addressBlock")
        _texts(block, offset="0x0", size=f"0x{table.size:X}", usage="registers")
        registers = SubElement(element, "registers")
        for entry in table.entries:
            _entry(registers, entry)


def _entry(parent: Element, entry: Entry) -> None:
    if isinstance(entry, TableRegister):
        _register(parent, entry)
        return
    element = SubElement(parent, "cluster")
    _dimensions(element, entry)
    _texts(element, description=f"{entry.name}, {entry.count} times", addressOffset=f"0x{entry.offset:X}")
    for register in entry.registers:
        _register(element, register)


def _register(parent: Element, register: TableRegister) -> None:
    element = SubElement(parent, "register")
    _dimensions(element, register)
    fields = register.fields
    known = sum(((1 << at.size) - 1) << at.bit for at in fields)
    reset = sum(at.reset << at.bit for at in fields)
    _texts(element, description=about_register(register), addressOffset=f"0x{register.offset:X}")
    _texts(element, size=str(register.width))
    if register.protection is not None:
        _texts(element, protection=register.protection.value[0])
    _texts(element, resetValue=f"0x{reset:X}", resetMask=f"0x{known:X}")
    inside = SubElement(element, "fields")
    for at in fields:
        _field(inside, at, "write-only" if register.is_view else ACCESS[at.field.mode])


def _dimensions(element: Element, entry: TableRegister | TableBlock) -> None:
    """The name, and where there are several how many and how far apart."""
    if entry.count == 1:
        _texts(element, name=entry.name)
    else:
        _texts(element, dim=str(entry.count), dimIncrement=f"0x{entry.stride:X}", name=f"{entry.name}[%s]")


def _field(parent: Element, at: TableField, access: str) -> None:
    element = SubElement(parent, "field")
    about = about_field(at) or "keeps what software writes"
    _texts(element, name=at.name, description=about, bitOffset=str(at.bit), bitWidth=str(at.size))
    _texts(element, access=access)
    if written := _written(at):
        _texts(element, modifiedWriteValues=written)
    if access != "write-only" and (read := _read(at)):
        _texts(element, readAction=read)


def _written(at: TableField) -> str | None:
    """What a written value does, where it is not simply kept."""
    if at.field.w1c or at.field.w1s:
        return "oneToClear" if at.field.w1c else "oneToSet"
    return "modify" if at.nature.writing_acts else None


def _read(at: TableField) -> str | None:
    """What reading does to the field, or (modifyExternal) to others."""
    if at.field.clear_on_read:
        return "clear"
    if at.field.fifo:
        return "modify"
    return "modifyExternal" if at.nature.reading_acts else None


def _texts(parent: Element, **texts: str) -> None:
    for tag, text in texts.items():
        SubElement(parent, tag).text = text
