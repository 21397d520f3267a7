"""Runs firmware under QEMU, from its input file to its record."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ..errors import EdgewrightError
from .machine import EmulatedMachine

TRACE = "trace.bin"  # file that the firmware writes beside its record
_PACKAGES = {"qemu-system-arm": "qemu-system-arm", "qemu-system-riscv32": "qemu-system-misc"}


def has_qemu(machine: EmulatedMachine) -> bool:
    return shutil.which(machine.emulator) is not None


def require_qemu(machine: EmulatedMachine) -> None:
    if not has_qemu(machine):
        raise EdgewrightError(
            f"{machine.emulator} is not installed (Debian: apt install {_PACKAGES[machine.emulator]}); "
            "or pip install 'edgewright[board]' and choose the emulator unicorn"
        )


def run_qemu(firmware: Path, machine: EmulatedMachine, inputs: bytes, timeout_s: float) -> bytes:
    """The record of a run. Emulated time depends on the instructions alone, so that every run is the same."""
    folder = firmware.parent
    record = folder / "record.bin"
    for made in (record, folder / TRACE):
        made.unlink(missing_ok=True)
    (folder / "input.bin").write_bytes(inputs)
    command = [
        *(machine.emulator, "-machine", machine.name, *machine.options),
        *("-icount", f"shift={machine.shift}", "-semihosting-config", "enable=on,target=native"),
        *("-display", "none", "-monitor", "none", "-serial", "none", "-nic", "none"),
        *("-kernel", firmware.name),
    ]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise EdgewrightError(f"the firmware on {machine.name} did not end within {timeout_s:g} s") from None
    if done.returncode or not record.exists():
        raise EdgewrightError(f"{machine.emulator} ended with {done.returncode}: {done.stderr.strip()[-800:]}")
    return record.read_bytes()
