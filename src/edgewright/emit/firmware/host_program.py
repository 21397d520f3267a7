"""A library under an operating system: this machine's, or that of an application processor which QEMU emulates."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ...board.elf import read_elf
from ...board.toolchain import FLAGS, ON_ARM, Toolchain
from ...errors import EdgewrightError
from ...platform.target import Architecture, Target
from .glue import HarnessGlue
from .image import Linkable, compile_library, write_sources

_EMULATED = ("cortex-a53", "cortex-a57", "cortex-a72", "cortex-a76")


def build_program(
    library: Linkable, connection: HarnessGlue, tools: Toolchain, folder: Path, optimise: str, lanes: int = 1
) -> Path:
    """A program that reads input.bin and writes record.bin; the library's object files stay beside it."""
    write_sources(folder, library, ("hosted.c",), connection.text)
    objects = compile_library(library, tools, folder, [optimise])
    static = [] if library.target.architecture is Architecture.HOST else ["-static"]
    sources = ["-DBOARD_HOSTED", "hosted.c", "glue.c"]
    threads = ["-pthread"] if lanes > 1 else []
    tools.run([*FLAGS, "-I.", *static, *threads, *sources, *objects, "-o", "program", "-lm"], folder)
    return folder / "program"


def run_program(library: Linkable, program: Path, inputs: bytes, timeout_s: float) -> bytes:
    """The outputs, one after the other."""
    folder = program.parent
    (folder / "input.bin").write_bytes(inputs)
    record = folder / "record.bin"
    record.unlink(missing_ok=True)
    command = [*emulator(library), f"./{program.name}"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise EdgewrightError(f"the program for {library.target.name} did not end within {timeout_s:g} s") from None
    if done.returncode or not record.exists():
        raise EdgewrightError(
            f"the program for {library.target.name} ended with {done.returncode}: {done.stderr[-800:]}"
        )
    return record.read_bytes()


def emulator(library: Linkable) -> list[str]:
    """What the program needs in front of it on this machine: nothing, or QEMU's user mode."""
    target = library.target
    if target.architecture is Architecture.HOST or _is_able(target):
        return []
    for name in ("qemu-aarch64", "qemu-aarch64-static"):
        if shutil.which(name):
            # The core itself where QEMU knows it, so that an instruction it does not have is found out.
            return [name, *(("-cpu", target.cpu) if target.cpu in _EMULATED else ())]
    this = "this machine has no dot products" if ON_ARM else "this is no aarch64"
    raise EdgewrightError(f"qemu-aarch64 is not installed (Debian: apt install qemu-user), and {this}")


def _is_able(target: Target) -> bool:
    """Whether this machine runs the target's instructions by itself."""
    if not ON_ARM:
        return False
    features = Path("/proc/cpuinfo")
    return not target.has_dot or not features.exists() or "asimddp" in features.read_text().split()


def object_sizes(folder: Path, group: str) -> tuple[int, int]:
    """Bytes of flash and of RAM in the object files of a group."""
    flash = ram = 0
    for path in sorted(folder.glob(f"{group}__*.o")):
        for section in read_elf(path).sections:
            if section.is_allocated and section.name.startswith((".text", ".rodata", ".data.rel.ro")):
                flash += section.size
            elif section.is_allocated and section.name.startswith((".data", ".bss")):
                ram += section.size
    return flash, ram
