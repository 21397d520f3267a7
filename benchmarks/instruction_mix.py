"""How often emitted code executes each class of instructions, for times of microcontrollers (platform/chip_time.py).

    python benchmarks/instruction_mix.py MODEL ... [--target cortex-m4]

Firmware runs in Unicorn, which tells the blocks that are executed; `objdump` of GCC's tools tells what is in them.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

import edgewright
from edgewright.board import unicorn as emulator
from edgewright.board.machine import machine_for
from edgewright.board.toolchain import toolchain
from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import measure
from edgewright.emit.firmware.image import build_firmware
from edgewright.emit.firmware.measurement import Emulator
from edgewright.network import random_inputs

LINE, LINES = 16, 8  # bytes of a line, and lines of the cache for data in front of the flash of an STM32F4
OBJDUMP = {True: "riscv64-unknown-elf-objdump", False: "arm-none-eabi-objdump"}


class Watch:
    """Counts blocks, branches taken and lines of flash during a run."""

    def __init__(self) -> None:
        self.blocks: Counter[tuple[int, int]] = Counter()
        self.taken = self.missed = 0
        self._last, self._lines = (0, 0), OrderedDict[int, None]()

    def counter(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any) -> Callable[..., None]:
            count = inner(*arguments)

            def counted(uc: Any, address: int, size: int, data: object) -> None:
                self.blocks[address, size] += 1
                self.taken += sum(self._last) != address
                self._last = (address, size)
                count(uc, address, size, data)

            return counted

        return made

    def mapping(self, inner: Callable[..., None]) -> Callable[..., None]:
        def made(uc: Any, elf: Any, layout: Any, machine: Any) -> None:
            import unicorn

            inner(uc, elf, layout, machine)
            for region in {layout.flash, layout.weights}:
                end = region.origin + region.length - 1
                uc.hook_add(unicorn.UC_HOOK_MEM_READ, self._read, begin=region.origin, end=end)

        return made

    def _read(self, *values: Any) -> None:
        line = values[2] // LINE  # of the address
        if line not in self._lines:
            self.missed += 1
            if len(self._lines) == LINES:
                self._lines.popitem(last=False)
        self._lines[line] = None
        self._lines.move_to_end(line)


def mix(path: Path, core: str) -> dict[str, float]:
    """Of each executed instruction the share that is one of a class."""
    network, watch = edgewright.read_model(path), Watch()
    library = emit(edgewright.plan(network, explain=False), TARGETS[core], name="model")
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(emulator, "_counter", watch.counter(emulator._counter)),
        patch.object(emulator, "_map_memory", watch.mapping(emulator._map_memory)),
    ):
        measure(library, random_inputs(network, 1), emulator=Emulator.UNICORN, zig=False)
        machine, tools = machine_for(library.target, library.plan.lanes), toolchain(library.target, False)
        build_firmware(library, machine, tools, Path(folder))
        code = disassembled(next(Path(folder).glob("*.elf")), core)
    addresses, counts = sorted(code), Counter[str]()
    for (begin, size), times in watch.blocks.items():
        follows_load = False
        for address in addresses[bisect_left(addresses, begin) : bisect_left(addresses, begin + size)]:
            operation, arguments = code[address]
            counts["instructions"] += times
            for kind, amount in classes(operation, arguments):
                is_hidden = kind == "loads" and amount == 1 and follows_load and core != "cortex-m0plus"
                counts[kind] += 0 if is_hidden else times * amount
            follows_load = operation.startswith(("ldr", "vldr"))
    counts["branches"], counts["lines"] = watch.taken, watch.missed
    whole = counts.pop("instructions")
    return {kind: count / whole for kind, count in sorted(counts.items())}


def disassembled(elf: Path, core: str) -> dict[int, tuple[str, str]]:
    """By address the operation, without what follows a point, and its arguments."""
    tool = OBJDUMP[core.startswith("rv")]
    text = subprocess.run([tool, "-d", "--no-show-raw-insn", elf], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^\s*([0-9a-f]+):\s+(\S+)[ \t]*(.*)$", text, re.MULTILINE)
    return {int(address, 16): (operation.split(".")[0], rest) for address, operation, rest in lines}


def classes(operation: str, arguments: str) -> Iterator[tuple[str, int]]:
    """What an instruction counts as, and how often: words, for loads and stores."""
    if operation.startswith(("ldm", "pop", "vldm", "vpop")):
        yield "loads", registers(arguments)
    elif operation.startswith(("stm", "push", "vstm", "vpush")):
        yield "stores", registers(arguments) - 1
    elif operation.startswith(("ldr", "vldr", "lw", "lb", "lh", "flw")):
        yield "loads", 2 if operation.startswith("ldrd") else 1
    elif operation.startswith("strd"):
        yield "stores", 1
    elif operation.startswith(("vmla", "vfma", "vmls", "vfms", "vnml", "vfnm", "fmadd")):
        yield "multiply_adds", 1
    elif operation.startswith(("sdiv", "udiv", "vdiv", "vsqrt", "div", "rem", "fdiv")):
        yield "divisions", 1


def registers(arguments: str) -> int:
    """How many a list such as {r4-r7, lr} names."""
    count = 0
    for part in arguments[arguments.index("{") + 1 : arguments.index("}")].split(","):
        first, _, last = part.strip().partition("-")
        count += int(last[1:]) - int(first[1:]) + 1 if last else 1
    return count


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--target", default="cortex-m4", show_default=True)
def main(models: tuple[Path, ...], target: str) -> None:
    for path in models:
        print(path.stem, ", ".join(f"{kind} {share:.3f}" for kind, share in mix(path, target).items()), flush=True)


if __name__ == "__main__":
    main()
