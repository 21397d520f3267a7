"""Firmware around an emitted library: compiled, and linked for an emulated machine."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Protocol

from ...board.elf import Elf, read_elf
from ...board.layout import GUARD, HARNESS_STACK, LinkLayout, lay_out, linker_script
from ...board.machine import EmulatedMachine
from ...board.toolchain import FLAGS, Toolchain
from ...errors import EdgewrightError, Infeasible
from ...platform import Board, format_size
from ...platform.target import Architecture, Target
from ..lanes import has_threads
from ..library import Library
from ..names import arena_names
from .glue import HarnessGlue, Probes, glue

STACK = 16 << 10  # bytes that a run may take
FLASH_SECTIONS = (".weights", ".library", ".runtime")
_NAMED = re.compile(rb'(?:#\s*include|\.incbin)[\s\\]*["<]([^">\\]+)')  # a file that becomes part of another
MOST_OBJECTS = 80  # that are kept: those of the harness for several targets and compilers, and a library or two
_compiled: OrderedDict[str, bytes] = OrderedDict()  # object files by what they were made of


class Linkable(Protocol):
    """Emitted code as it is compiled and linked: the library of a network, or of an application."""

    @property
    def name(self) -> str: ...
    @property
    def target(self) -> Target: ...
    @property
    def files(self) -> Mapping[str, str | bytes]: ...
    @property
    def sources(self) -> tuple[str, ...]: ...
    @property
    def arenas(self) -> Mapping[str, int]: ...
    @property
    def weight_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Firmware:
    path: Path
    elf: Elf
    layout: LinkLayout

    @property
    def ram_linked(self) -> int:
        """Bytes of .data and .bss, which are the library's alone: its arenas, and what else it remembers."""
        return self.elf.size(".data", ".bss") + sum(self.arenas_linked.values())

    @property
    def arenas_linked(self) -> Mapping[str, int]:
        """Bytes of the arena of each memory, by its C name."""
        return {name: self.elf.size(f".arena.{name}") for name in self.layout.arenas}


def build_firmware(
    library: Library,
    machine: EmulatedMachine,
    tools: Toolchain,
    folder: Path,
    *,
    optimise: str = "-Os",
    probes: Probes = Probes.NONE,
    stack: int = STACK,
    board: Board | None = None,
) -> Firmware:
    """The library with the harness that runs it once, on two cores where the machine has them."""
    own, brings_lanes = library_flags(library, optimise, probes), machine.cores > 1
    own += [f"-D{library.name.upper()}_CALLER_BRINGS_LANES"] if brings_lanes else []
    return build_image(library, glue(library, probes, brings_lanes), machine, tools, folder, own, stack, board)


def build_image(
    library: Linkable,
    connection: HarnessGlue,
    machine: EmulatedMachine,
    tools: Toolchain,
    folder: Path,
    own: Sequence[str],
    stack: int = STACK,
    board: Board | None = None,
) -> Firmware:
    """The linked image in `folder`, its own code compiled by these flags; the linker refuses what does not fit."""
    start = ["arm.c" if library.target.architecture is Architecture.CORTEX_M else "riscv.c"]
    start += ["cores.c"] if machine.cores > 1 else []
    runtime = ("runtime.c", "math.c") if _needs_mathematics(library) else ("runtime.c",)
    write_sources(folder, library, ("main.c", *start, *runtime, "include/string.h", "include/math.h"), connection.text)
    room = -(-(connection.buffer_bytes + HARNESS_STACK + 4096) // 64) * 64
    layout = lay_out(machine, library.arenas, arena_names(library.arenas), library.weight_bytes, stack, room, board)
    (folder / "firmware.ld").write_text(linker_script(layout))
    # A Cortex-M0+ faults where the Cortex-M3 that stands in for it need not.
    trap = int(library.target.cpu == "cortex-m0plus")
    boot = [
        "-Os",
        f"-DBOARD_FPGAIO={machine.fpgaio:#x}u",
        f"-DBOARD_TRAP_UNALIGNED={trap}",
        f"-DBOARD_GUARD={GUARD}u",
        f"-DBOARD_CORES={machine.cores}",
        f"-DBOARD_SYSTEM_CONTROL={machine.system_control:#x}u",
    ]
    headers = ["-isystem", "include"]
    objects = [
        *compile_library(library, tools, folder, [*headers, *own]),
        *_compile(tools, folder, "harness", ("main.c", "glue.c", *start), [*headers, *boot]),
        *_compile(tools, folder, "runtime", runtime, [*headers, *own]),
    ]
    _link(tools, objects, layout, folder, board)
    elf = read_elf(folder / "firmware.elf")
    _check_flash(elf, board)
    return Firmware(folder / "firmware.elf", elf, layout)


def _check_flash(elf: Elf, board: Board | None) -> None:
    """Where weights are emulated in a memory of their own, no region of the linker sees the sum."""
    used = elf.size(*FLASH_SECTIONS)
    if board is not None and board.flash_size is not None and used > board.flash_size:
        raise Infeasible(
            f"the firmware does not fit board '{board.name}': its flash has {board.flash_size} bytes "
            f"({format_size(board.flash_size)}), and {used - board.flash_size} bytes more are needed"
        )


def write_sources(folder: Path, library: Linkable, names: Sequence[str], connection: str) -> None:
    """The library's files, those of the harness, and what connects them."""
    (folder / "include").mkdir(parents=True, exist_ok=True)
    for name, content in library.files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    files = resources.files(__package__) / "c"
    for name in ("board.h", *names):
        (folder / name).write_text((files / name).read_text())
    (folder / "glue.c").write_text(connection)


def _needs_mathematics(library: Linkable) -> bool:
    return any("<math.h>" in content for content in library.files.values() if isinstance(content, str))


def library_flags(library: Linkable, optimise: str, probes: Probes = Probes.NONE) -> list[str]:
    guard = library.name.upper()
    section = '__attribute__((section(".bss.arena." #memory)))'
    profile = [] if probes is Probes.NONE else [f"-D{guard}_PROFILE"]
    return [optimise, f"-D{guard}_SECTION(memory)={section}", *profile]


def compile_library(library: Linkable, tools: Toolchain, folder: Path, flags: Sequence[str]) -> list[str]:
    """The object files in groups: the library, its weights, and its threads, which count as part of the system."""
    threads = [f"{library.name}_lanes.c"] if has_threads(library.target) else []
    groups: dict[str, list[str]] = {"library": [], "weights": [], "threads": []}
    for name in library.sources:
        groups["weights" if "_weights." in name else "threads" if name in threads else "library"].append(name)
    return [made for group, names in groups.items() for made in _compile(tools, folder, group, names, flags)]


def _compile(tools: Toolchain, folder: Path, group: str, sources: Sequence[str], flags: Sequence[str]) -> list[str]:
    """One object per source, named after its group: by these names the linker script tells them apart.

    What was compiled before is not compiled again: a library is linked once for its size, and once to be run.
    """
    objects = [f"{group}__{source}.o" for source in sources]
    for source, name in zip(sources, objects, strict=True):
        command = [*FLAGS, "-I.", *flags, "-c", source, "-o", name]
        key = _key(tools, command, folder, source)
        if key not in _compiled:
            tools.run(command, folder)
            _compiled[key] = (folder / name).read_bytes()
            while len(_compiled) > MOST_OBJECTS:
                _compiled.popitem(last=False)
        else:
            (folder / name).write_bytes(_compiled[key])
        _compiled.move_to_end(key)
    return objects


def _key(tools: Toolchain, command: Sequence[str], folder: Path, source: str) -> str:
    """The compiler, what it is told, and every file that it reads."""
    seen = sha256(repr((tools.name, tools.program, tools.flags, command)).encode())
    for name, content in sorted(_read_by(folder, source).items()):
        seen.update(f"{name}:{len(content)}\n".encode() + content)
    return seen.hexdigest()


def _read_by(folder: Path, source: str) -> Mapping[str, bytes]:
    """The source, and what it names as a part of it, as far as that lies in the folder."""
    found: dict[str, bytes] = {}
    left = [source]
    while left:
        name = left.pop()
        for path in (folder / name, folder / "include" / name):
            key = str(path.relative_to(folder))
            if key not in found and path.is_file():
                found[key] = path.read_bytes()
                left += [part.decode() for part in _NAMED.findall(found[key])] if path.suffix != ".bin" else []
    return found


def _link(tools: Toolchain, objects: list[str], layout: LinkLayout, folder: Path, board: Board | None) -> None:
    flags = ["-static", "-Wl,--gc-sections", "-Wl,-T,firmware.ld", "-o", "firmware.elf"]
    try:
        tools.run([*FLAGS, *flags, *objects, *tools.helpers], folder)
    except EdgewrightError as error:
        refusal = _overflow(str(error), layout, board)
        if refusal is None:
            raise
        raise Infeasible(refusal) from error


def _overflow(message: str, layout: LinkLayout, board: Board | None) -> str | None:
    """The linker's refusal in our words, if that is what it was."""
    found = [
        (region, int(size))
        for name, size in re.findall(r"region [`'](\w+)'[^\n]*?overflowed by (\d+) bytes", message)
        for region in layout.regions
        if region.name == name
    ]
    if not found:
        return None
    region, over = max(found, key=lambda pair: pair[1])
    where = f"board '{board.name}'" if board else "the emulated machine"
    return (
        f"the firmware does not fit {where}: its {region.what} has {region.length} bytes "
        f"({format_size(region.length)}), and {over} bytes more are needed"
    )
