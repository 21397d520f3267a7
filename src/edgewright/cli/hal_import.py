"""`edgewright hal --from-svd` (and -rdl, -header): writes register groups and a lock file with the whole map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import text
from ..files import FolderMode, output_folder, write_together
from ..hal.importing import import_files, imported
from ..hal.importing.fixed_map import FixedMap, registers_in
from .common import console, print_json, shown


def run_import(path: Path, kind: str, peripherals: Sequence[str], output: Path, as_json: bool) -> None:
    """Imports the map; existing files are replaced."""
    maps = imported(path, kind, peripherals)
    stem = maps[0].name.lower()
    texts = import_files(maps, path.name, stem)
    files: Mapping[Path, str] = {output / name: content for name, content in texts.items()}
    with output_folder(output, FolderMode.UNDO):
        write_together(files)
    if as_json:
        print_json(
            {"peripherals": [_record(peripheral) for peripheral in maps], "files": [str(file) for file in files]}
        )
        return
    for peripheral in maps:
        registers = list(registers_in(peripheral.items))
        fields = sum(len(register.fields) for register in registers)
        counted = f"{text.plural(len(registers), 'register')} with {text.plural(fields, 'field')}"
        console.print(f"{shown(peripheral.name)}: {counted}, {peripheral.size:,} B")
        for note in peripheral.left_out:
            console.print(f"left out: {shown(note)}", style="yellow")
    named = ", ".join(map(str, files))
    console.print(f"wrote {text.plural(len(files), 'file')}: {shown(named)}", style="dim", soft_wrap=True)


def _record(peripheral: FixedMap) -> dict[str, object]:
    return {
        "name": peripheral.name,
        "devices": [{"name": name, "address": address} for name, address in peripheral.devices],
        "bytes": peripheral.size,
        "registers": len(list(registers_in(peripheral.items))),
        "left_out": list(peripheral.left_out),
    }
