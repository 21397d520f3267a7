"""The memory layout of the firmware, and the linker script for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import Infeasible
from ..platform import Board
from .machine import KIB, Bank, EmulatedMachine

BOOT = 16 * KIB  # vectors and harness, separate from the flash that is checked against the board
HARNESS_STACK = 4 * KIB
GUARD = 64 * KIB  # below the stack, access forbidden: a power of two, as protection units require
CODE_ROOM = 256 * KIB  # for code beside the weights


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    name: str  # in the linker script
    what: str  # for people
    origin: int
    length: int


@dataclass(frozen=True, slots=True)
class LinkLayout:
    boot: MemoryRegion
    flash: MemoryRegion
    weights: MemoryRegion  # the flash itself, if they fit
    arenas: Mapping[str, MemoryRegion]  # by the memory's C name
    stack: MemoryRegion
    harness: MemoryRegion
    second_stack: MemoryRegion | None = None  # of a second core

    @property
    def regions(self) -> tuple[MemoryRegion, ...]:
        stacks = (self.stack, *((self.second_stack,) if self.second_stack else ()))
        every = (self.boot, self.flash, self.weights, *self.arenas.values(), *stacks, self.harness)
        return tuple({region.name: region for region in every}.values())


class _BumpAllocator:
    """Allocates a bank of memory from its start."""

    def __init__(self, bank: Bank) -> None:
        self.at, self.end = bank.origin, bank.origin + bank.size

    @property
    def left(self) -> int:
        return self.end - self.at

    def take(self, name: str, what: str, size: int) -> MemoryRegion:
        region = MemoryRegion(name, what, self.at, size)
        self.at = -(-(self.at + size) // 64) * 64
        return region


def lay_out(
    machine: EmulatedMachine,
    arenas: Mapping[str, int],
    sections: Mapping[str, str],
    weights: int,
    stack: int,
    harness: int,
    board: Board | None,
) -> LinkLayout:
    """Memories of the machine, limited to the sizes of `board`, or of the plan without a board.

    Arenas are placed in the memory that they are planned in, with the names of their sections.
    """
    code, ram, spare = _BumpAllocator(machine.code), _BumpAllocator(machine.ram), _BumpAllocator(machine.spare)
    ram.take("GUARD", "guard", GUARD)
    stack_region = ram.take("STACK", "stack", stack)
    second = ram.take("SECOND_STACK", "second core's stack", stack) if machine.cores > 1 else None
    harness_region = spare.take("HARNESS", "test harness", harness)
    boot = code.take("BOOT", "test harness", BOOT)
    limit = None if board is None else board.flash_size
    fits = weights + CODE_ROOM <= code.left
    flash = code.take("FLASH", "flash", min(code.left, limit or code.left))
    if fits:
        weight_region = flash
    else:
        if weights > spare.left:
            raise Infeasible(_too_large(machine, "weights", weights, spare.left))
        weight_region = spare.take("WEIGHTS", "flash", min(limit or -(-weights // 64) * 64, spare.left))
    placed = {}
    for memory, size in arenas.items():
        room = ram if size <= ram.left else spare
        if size > room.left:
            raise Infeasible(_too_large(machine, f"arena '{memory}'", size, room.left))
        usable = _usable(board, memory, size)
        name = sections[memory]
        placed[name] = room.take(f"ARENA_{name.upper()}", f"memory '{memory}'", min(usable, room.left))
    return LinkLayout(boot, flash, weight_region, placed, stack_region, harness_region, second)


def _usable(board: Board | None, memory: str, planned: int) -> int:
    """Bytes of the board's memory of that name; of its largest, for a plan made without a board."""
    if board is None:
        return planned
    return next((m.usable for m in board.ram if m.name == memory), max(m.usable for m in board.ram))


def _too_large(machine: EmulatedMachine, what: str, size: int, left: int) -> str:
    return f"the {what} of {size} bytes cannot be emulated on {machine.name}, which has {left} bytes left for it"


def linker_script(layout: LinkLayout) -> str:
    """A linker script with one section per source file, so that the library's sizes are section sizes."""
    regions = "\n".join(f"    {r.name} (rwx) : ORIGIN = {r.origin:#010x}, LENGTH = {r.length}" for r in layout.regions)
    first = next(iter(layout.arenas.values()), layout.harness).name
    arenas = "\n".join(
        f"    .arena.{name} (NOLOAD) : ALIGN(16) {{ __arena_{name} = .; *(.bss.arena.{name}) "
        f"__arena_{name}_end = .; }} > {region.name}"
        for name, region in layout.arenas.items()
    )
    second = ""
    if layout.second_stack:
        second = """
    __second_stack_bottom = ORIGIN(SECOND_STACK);
    __second_stack_top = ORIGIN(SECOND_STACK) + LENGTH(SECOND_STACK);"""
    return f"""ENTRY(board_reset)
MEMORY
{{
{regions}
}}
SECTIONS
{{
    .vectors : {{ KEEP(*(.vectors)) }} > BOOT
    .harness : {{ *harness__*(.text* .rodata* .srodata*) }} > BOOT
    .weights : {{ KEEP(*weights__*(.rodata* .srodata*)) }} > {layout.weights.name}
    .library : {{ *library__*(.text* .rodata* .srodata*) }} > FLASH
    .runtime : {{ *(.text* .rodata* .srodata*) }} > FLASH
    .harness_bss (NOLOAD) : {{ *(.bss.harness) }} > HARNESS
{arenas}
    .data : {{ *(.data* .sdata*) }} > {first}
    .bss (NOLOAD) : {{ *(.bss* .sbss* COMMON) }} > {first}
    /DISCARD/ : {{ *(.ARM.exidx*) *(.ARM.extab*) *(.eh_frame*) *(.note*) *(.comment) }}
    __global_pointer$ = ORIGIN({first});
    __stack_bottom = ORIGIN(STACK);
    __stack_top = ORIGIN(STACK) + LENGTH(STACK);
    __harness_stack_top = ORIGIN(HARNESS) + LENGTH(HARNESS);{second}
}}
"""
