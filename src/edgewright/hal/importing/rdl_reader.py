"""Register maps read from SystemRDL and IP-XACT files, with the compiler and the importer that an extra brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..language.description import Mode, Protection
from .fixed_map import (
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

_MODES = {"r": Mode.RO, "w": Mode.WO, "w1": Mode.WO, "rw": Mode.RW, "rw1": Mode.RW}
_WRITES = {"woclr": WriteEffect.ONE_CLEARS, "woset": WriteEffect.ONE_SETS}


def read_rdl(path: Path, wanted: Sequence[str] = ()) -> list[FixedMap]:
    """The maps of the address maps named in `wanted`, or of all: those in the top one, or that itself."""
    top = _compiled(path)
    inside = [node for node in top.children() if _kind(node) == "AddrmapNode"]
    devices = inside or [top]
    names = [node.inst_name for node in devices]
    if unknown := [name for name in wanted if name not in names]:
        raise InputError(f"'{path}' has no address map '{unknown[0]}'. It has {', '.join(names[:12])}.")
    _check_order(path, top)
    kinds: dict[object, FixedMap] = {}
    for node in devices:
        if wanted and node.inst_name not in wanted:
            continue
        for name, address in _instances(node):
            key = node.inst_name if _is_xml(path) else node.type_name or node.inst_name
            if key in kinds:
                kinds[key] = replace(kinds[key], devices=(*kinds[key].devices, (name, address)))
            else:
                notes: list[str] = []
                items = tuple(_items(node, notes))
                kinds[key] = FixedMap(str(key), items, ((name, address),), _about(node), tuple(notes))
    return [settled(found) for found in kinds.values()]


def _check_order(path: Path, top: Any) -> None:
    """Raises for byte and bit orders that generated code does not have."""
    for node in (top, *top.descendants(unroll=False)):
        where = node.get_path()
        if _kind(node) == "AddrmapNode" and node.get_property("bigendian"):
            raise InputError(f"'{path}': {where} is bigendian; only littleendian address maps are read")
        if _kind(node) == "FieldNode" and node.msb < node.lsb:
            raise InputError(f"'{path}': the bits of {where} are in msb0 order; only lsb0 is read")


def _compiled(path: Path) -> Any:
    try:
        compiler = import_module("systemrdl").RDLCompiler(message_printer=_FirstError())
        importer = import_module("peakrdl_ipxact").IPXACTImporter(compiler) if _is_xml(path) else None
    except ImportError as error:
        raise InputError("--from-rdl needs systemrdl and PeakRDL: pip install 'edgewright[rdl]'") from error
    printer = compiler.env.msg.printer
    read_input(path)  # what the compiler says of files that it cannot read is no sentence
    try:
        importer.import_file(str(path)) if importer else compiler.compile_file(str(path))
        return compiler.elaborate().top
    except Exception as error:  # on damaged files the compiler also stumbles over itself
        kind, told = "IP-XACT" if importer else "SystemRDL", printer.told or " ".join(str(error).split())
        raise InputError(f"{kind} file '{path}' does not compile: {told}") from error


def _is_xml(path: Path) -> bool:
    return path.suffix.lower() == ".xml"


class _FirstError:
    """Keeps the first complaint of the compiler, with its line."""

    def __init__(self) -> None:
        self.told = ""

    def print_message(self, severity: Any, text: str, src_ref: Any) -> None:
        if severity.name in ("ERROR", "FATAL") and not self.told:
            line = getattr(src_ref, "line", None)
            self.told = f"line {line}: {text}" if line else text


def _kind(node: Any) -> str:
    return type(node).__name__


def _instances(node: Any) -> Iterator[tuple[str, int]]:
    if not node.is_array:
        yield node.inst_name, node.absolute_address
        return
    for n, element in enumerate(node.unrolled()):
        yield f"{node.inst_name}{n}", element.absolute_address


def _items(parent: Any, notes: list[str]) -> Iterator[FixedItem]:
    for node in parent.children():
        item: FixedItem
        match _kind(node):
            case "RegNode":
                item = _register(node)
            case "RegfileNode" | "AddrmapNode":
                inside = tuple(_items(node, notes))
                item = FixedCluster(node.inst_name, node.raw_address_offset, inside, _about(node))
            case kind:
                notes.append(f"{node.inst_name}, which is a {kind.removesuffix('Node').lower()}")
                continue
        if node.is_array and len(node.array_dimensions) > 1:
            notes.append(f"{node.inst_name}, which has {len(node.array_dimensions)} dimensions")
            continue
        if node.is_array:
            item = replace(item, count=node.array_dimensions[0], stride=node.array_stride)
        yield item


def _register(node: Any) -> FixedRegister:
    fields = tuple(_field(field) for field in node.fields())
    width = node.get_property("regwidth")
    is_whole = len(fields) == 1 and fields[0].size == width and fields[0].name == node.inst_name
    said = node.get_property("protection") if "protection" in node.list_properties() else None  # as our files have it
    return FixedRegister(
        node.inst_name,
        node.raw_address_offset,
        width,
        fields,
        _about(node),
        is_whole,
        protection=next((one for one in Protection if one.value == said), None),
    )


def _field(node: Any) -> FixedField:
    mode = _MODES.get(node.get_property("sw").name, Mode.RO)
    is_written_by_hardware = node.get_property("hw").name in ("w", "w1", "rw", "rw1")
    return FixedField(
        node.inst_name,
        node.low,
        node.width,
        mode,
        _on_write(node, mode),
        _on_read(node, mode),
        is_written_by_hardware and mode is Mode.RW and node.get_property("onwrite") is None,
        _reset(node),
        _about(node),
        tuple(_values(node)),
    )


def _on_write(node: Any, mode: Mode) -> WriteEffect:
    if mode is Mode.RO:
        return WriteEffect.NONE
    if (said := node.get_property("onwrite")) is not None:
        return _WRITES.get(said.name, WriteEffect.OTHER)
    acts = node.get_property("swmod") or node.get_property("singlepulse")
    return WriteEffect.OTHER if acts else WriteEffect.NONE


def _on_read(node: Any, mode: Mode) -> ReadEffect:
    if mode is Mode.WO:
        return ReadEffect.NONE
    if (said := node.get_property("onread")) is not None:
        return ReadEffect.CLEARS if said.name == "rclr" else ReadEffect.TOUCHES
    return ReadEffect.TOUCHES if node.get_property("swacc") else ReadEffect.NONE


def _reset(node: Any) -> int:
    value = node.get_property("reset")
    return value if isinstance(value, int) else 0


def _values(node: Any) -> Iterator[NamedValue]:
    encoding = node.get_property("encode")
    for member in encoding or ():
        yield NamedValue(member.name, int(member.value), " ".join((member.rdl_desc or "").split()))


def _about(node: Any) -> str:
    text = node.get_property("desc") or ""
    return " ".join(str(text).split())
