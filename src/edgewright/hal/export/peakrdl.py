"""What PeakRDL makes of a SystemRDL file: HTML, IP-XACT, RTL, a C header. An extra brings it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...errors import InputError


def _html(top: Any, out: Path) -> None:
    import_module("peakrdl_html").HTMLExporter().export(top, str(out))


def _ipxact(top: Any, out: Path) -> None:
    out.mkdir()
    import_module("peakrdl_ipxact").IPXACTExporter().export(top, str(out / f"{top.inst_name}.xml"))


def _regblock(top: Any, out: Path) -> None:
    """RTL of each kind of device: the map of all devices is wiring, which is the system's."""
    bus = import_module("peakrdl_regblock.cpuif.apb4").APB4_Cpuif_flattened
    for device in _kinds(top):
        exporter = import_module("peakrdl_regblock").RegblockExporter()
        exporter.export(device, str(out), cpuif_cls=bus, module_name=device.type_name)


def _cheader(top: Any, out: Path) -> None:
    out.mkdir()
    exporter = import_module("peakrdl_cheader.exporter").CHeaderExporter()
    exporter.export(top, str(out / f"{top.inst_name}.h"), generate_bitfields=False)


EXPORTERS: Mapping[str, Callable[[Any, Path], None]] = {
    "html": _html,
    "ipxact": _ipxact,
    "regblock": _regblock,
    "cheader": _cheader,
}


def from_peakrdl(text: str, kinds: Sequence[str], name: str) -> dict[str, bytes]:
    """The files of every kind in EXPORTERS that is asked for, by their path: html/index.html, …"""
    if not kinds:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        top = compiled(text, Path(folder) / f"{name}.rdl")
        for kind in kinds:
            _export(kind, top, Path(folder) / kind)
        found = sorted(path for kind in kinds for path in (Path(folder) / kind).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def compiled(text: str, path: Path) -> Any:
    """The last address map of a SystemRDL text, elaborated; `path` is where the compiler reads it from."""
    path.write_text(text)
    compiler = _imported("systemrdl").RDLCompiler(message_printer=_Complaints())
    if find_spec("peakrdl_regblock"):
        for extension in import_module("peakrdl_regblock.udps").ALL_UDPS:
            compiler.register_udp(extension)
    compiler.compile_file(str(path))
    return compiler.elaborate().top


def _export(kind: str, top: Any, out: Path) -> None:
    _imported(f"peakrdl_{kind}")
    complaints = top.env.msg.printer
    try:
        EXPORTERS[kind](top, out)
    except Exception as error:
        if type(error).__name__ != "RDLCompileError":
            raise
        told = complaints.errors[0] if complaints.errors else str(error)
        raise InputError(f"--rdl {kind}: PeakRDL does not take this layout: {told}") from error


class _Complaints:
    """Keeps what the compiler would print."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def print_message(self, severity: Any, text: str, _: Any) -> None:
        if severity.name == "ERROR":
            self.errors.append(text)


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"--rdl needs {module}, which is not installed: pip install 'edgewright[rdl]'") from error


def _kinds(top: Any) -> list[Any]:
    """One device of each kind."""
    return list({node.type_name: node for node in reversed(list(top.children()))}.values())
