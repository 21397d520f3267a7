"""Compilers and emulators that tests use: what is installed, what comes from PyPI in its place, else a visible skip."""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import cache
from importlib.util import find_spec

import pytest

from edgewright.board.machine import machine_for
from edgewright.board.toolchain import Toolchain, toolchain
from edgewright.emit import TARGETS
from edgewright.emit.firmware import Emulator, chosen_emulator
from edgewright.errors import EdgewrightError
from edgewright.platform.target import Target

ZIG = (sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined")
STAND_INS = ("clang", "g++", "c++")  # Zig is a clang, and takes C++ as well


def command(name: str) -> list[str]:
    """How to call the compiler of that name, Zig where it can stand in; skips where there is neither."""
    if shutil.which(name):
        return [name]
    if name in STAND_INS and find_spec("ziglang"):
        return list(ZIG)
    pytest.skip(f"{name} is not installed{', nor is ziglang' if name in STAND_INS else ''}")


def checking(name: str) -> list[str]:
    """The same for a look at a source file alone; Zig must have something to write."""
    found = command(name)
    return [*found, "-fsyntax-only"] if found == [name] else [*found, "-c", "-o", f"{_folder().name}/checked.o"]


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="edgewright-")


def compiler(name: str) -> Toolchain:
    """The same as the builders of emitted code take it."""
    return Toolchain(name, tuple(command(name)), (), is_gcc=False)


def needs(*names: str) -> None:
    """Skips where a program is missing."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def needs_board(target: str | Target, emulator: Emulator | None = None, zig: bool | None = None) -> None:
    """Skips where code for the target cannot be built, by the one compiler if `zig` says so, or run."""
    reason = obstacle(target, emulator, zig)
    if reason:
        pytest.skip(reason)


def obstacle(target: str | Target, emulator: Emulator | None = None, zig: bool | None = None) -> str:
    """Why code for the target cannot be built or run here; empty where it can."""
    chosen = TARGETS[target] if isinstance(target, str) else target
    try:
        toolchain(chosen, zig)
        chosen_emulator(machine_for(chosen), emulator)
    except EdgewrightError as error:
        return str(error)
    return ""


on_board = pytest.mark.skipif(bool(obstacle("cortex-m4")), reason=obstacle("cortex-m4") or "can be run")
