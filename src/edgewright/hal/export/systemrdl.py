"""A design as SystemRDL 2.0: an address map for each kind of device, and one with all devices at their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..design import Design
from ..language.description import Mode
from .table import MAPPED, Entry, Table, TableBlock, TableField, TableRegister, about_field, about_register, tables

_RESERVED = """
abstract accesstype addressingtype addrmap alias all bit boolean bothedge component componentwidth compact constraint
default encode enum external false field fullalign hw inside internal level longint mem na negedge nonsticky number
onreadtype onwritetype posedge property r rclr ref reg regalign regfile rset ruser rw rw1 signal string struct sw this
true type unsigned w w1 wclr woclr woset wot wr wset wuser wzc wzs wzt precedencetype activehigh activelow arbiter async
bridge counter desc dontcompare donttest errextbus halt haltenable haltmask hdl_path intr littlendian bigendian lsb0
msb0 mask name next onread onwrite precedence priority reset resetsignal rsvdset shared sharedextbus singlepulse
stickybit sticky swacc swmod swwe swwel sync underflow overflow we wel width
"""
KEYWORDS = frozenset(_RESERVED.split())


def system_rdl(design: Design, name: str) -> str:
    """The text of a .rdl file; its top is `<name>_map`."""
    description = design.analysis.description
    found = tables(design)
    lines = [f"// Registers of {name}, as edgewright laid them out.", ""]
    if any(field.protection for group in description.groups.values() for field in group.fields):
        lines += ["property protection { component = reg; type = string; };", ""]
    for table in found:
        lines += [*_map(table), ""]
    lines.append(f"addrmap {top_name(design, name)} {{")
    lines.append(f'    name = "{_quoted(name)}";')
    for device in description.devices:
        note = f" // {MAPPED}" if device.is_mapped else ""
        lines.append(f"    {_word(device.group)} {_word(device.name)} @ 0x{device.address:X};{note}")
    return "\n".join([*lines, "};", ""])


def top_name(design: Design, name: str) -> str:
    """The name of the map with all devices: one that no group has."""
    word = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
    top = f"{word}_map" if word[:1].isalpha() else f"map_{word}"
    while top in design.analysis.description.groups:
        top += "_"
    return top


def _map(table: Table) -> Iterator[str]:
    yield f"addrmap {_word(table.group)} {{"
    yield f'    name = "{_quoted(table.group)}";'
    if table.about:
        yield f'    desc = "{_quoted(table.about)}";'
    rows = [entry for entry in table.entries if isinstance(entry, TableRegister)]
    for entry in sorted(table.entries, key=_is_alias):
        yield ""
        yield from (f"    {line}" for line in _entry(entry, rows))
    yield "};"


def _is_alias(entry: Entry) -> bool:
    """Whether it is to be written after the others, which it may refer to."""
    return isinstance(entry, TableRegister) and entry.is_view


def _entry(entry: Entry, beside: Sequence[TableRegister]) -> Iterator[str]:
    if isinstance(entry, TableRegister):
        yield from _register(entry, beside)
        return
    yield "regfile {"
    for register in sorted(entry.registers, key=_is_alias):
        yield from (f"    {line}" for line in _register(register, entry.registers))
    yield f"}} {_word(entry.name)}{_where(entry)};"


def _register(register: TableRegister, beside: Sequence[TableRegister]) -> Iterator[str]:
    """A register, or the alias of one of those beside it, whose fields have the same names there."""
    shown = next((other for other in beside if other.is_shown_by(register)), None)
    names = {at.path: at.name for at in shown.fields} if shown else {}
    kind = f"{register.name}_type"
    yield f"reg {_word(kind)} {{" if shown else "reg {"
    yield f'    desc = "{_quoted(about_register(register))}";'
    yield f"    regwidth = {register.width};"
    yield f"    accesswidth = {register.width};"
    if register.protection is not None:
        yield f'    protection = "{register.protection.value}";'
    for at in register.fields:
        name = _word(names[at.path] if shown else at.name)
        yield f"    field {{ {' '.join(_properties(at))} }} {name}[{at.bit + at.size - 1}:{at.bit}];"
    if shown:
        yield "};"
        yield f"alias {_word(shown.name)} {_word(kind)} {_word(register.name)}{_where(register)};"
    else:
        yield f"}} {_word(register.name)}{_where(register)};"


def _where(entry: TableRegister | TableBlock) -> str:
    if entry.count == 1:
        return f" @ 0x{entry.offset:X}"
    return f"[{entry.count}] @ 0x{entry.offset:X} += 0x{entry.stride:X}"


def _properties(at: TableField) -> Iterator[str]:
    field, nature = at.field, at.nature
    yield f"sw = {'r' if field.mode is Mode.RO else 'w' if field.mode is Mode.WO else 'rw'};"
    yield f"hw = {'w' if field.mode is Mode.RO else 'rw' if at.is_changed else 'r'};"
    is_stored = nature.writable or field.clear_on_read
    if at.is_changed and is_stored:
        yield "we;"  # the peripheral says when its value counts, so that it does not undo every write of software
    if field.clear_on_read:
        yield "onread = rclr;"
    if field.w1c or field.w1s:
        yield f"onwrite = {'woclr' if field.w1c else 'woset'};"
    if nature.reading_acts and not field.clear_on_read:
        yield "swacc;"
    if nature.writing_acts:
        yield "swmod;"
    if is_stored:
        yield f"reset = {at.size}'h{at.reset:X};"
    if about := about_field(at):
        yield f'desc = "{_quoted(about)}";'


def _word(name: str) -> str:
    return f"\\{name}" if name in KEYWORDS else name


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
