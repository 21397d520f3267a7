"""The virtual prototype: a processor under Unicorn, with its memory, the bus, and functions called one by one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...board.unicorn import instructions_in, new_engine, require_unicorn
from ...platform.target import Architecture
from .abi import Type, pass_arguments
from .build import DATA, STACK, WINDOW, Built
from .verification import Fault, StopReason

LIMIT = 20_000  # instructions of one call
PAGE = 4096


class Registers(Protocol):
    """What the machine needs of a bus."""

    def read(self, address: int, bits: int) -> int: ...

    def write(self, address: int, bits: int, value: int) -> None: ...


@dataclass(frozen=True, slots=True)
class _Core:
    uc: Any
    arguments: tuple[int, ...]
    sp: int
    lr: int
    thumb: int


class Machine:
    """A built driver in memory. `watch` is called with a function's name when one of `watched` is entered."""

    def __init__(
        self,
        built: Built,
        pages: frozenset[int],
        watched: Mapping[str, Callable[[], None]],
        half: Callable[[], object] | None = None,
    ) -> None:
        require_unicorn()
        import unicorn

        self.built = built
        self.bus: Registers | None = None
        self.instructions = 0
        self._fault: Fault | None = None
        self._core = _core(built)
        self._uc = self._core.uc
        self._limit = LIMIT
        self._half = half  # told when half of the instructions that a call may take are over
        self._lengths: dict[tuple[int, int], int] = {}
        self._watched = {start: watched[name] for start, _, name in built.elf.functions if name in watched}
        self._uc.mem_map(built.base, WINDOW)
        self._map_registers(pages)
        self._uc.hook_add(unicorn.UC_HOOK_BLOCK, self._block)
        self.reset()

    def reset(self) -> None:
        """Memory as it is before the first call."""
        self._uc.mem_write(self.built.base + DATA, bytes(self._data_size()))
        for segment in self.built.elf.segments:
            self._uc.mem_write(segment.address, segment.data)

    def watch(self, name: str, touched: Callable[[bool, int], None]) -> None:
        """Calls `touched` for every access to a variable: whether it is a write, and the value."""
        import unicorn

        address, size = self.built.elf.symbols.get(name, (0, 0))
        if size:
            kinds = unicorn.UC_HOOK_MEM_WRITE | unicorn.UC_HOOK_MEM_READ

            def hook(_: Any, kind: int, __: int, ___: int, value: int, ____: object) -> None:
                touched(kind == unicorn.UC_MEM_WRITE, value)

            self._uc.hook_add(kinds, hook, begin=address, end=address + size - 1)

    def call(self, name: str, types: Sequence[Type], values: Sequence[int], limit: int = LIMIT) -> int:
        """What the function leaves in its result registers: 64 bits."""
        import unicorn

        core, start = self._core, self.built.elf.symbols[name][0]
        self._place_arguments(types, values)
        self._fault, self.instructions, self._limit = None, 0, limit
        end = self.built.base + STACK
        self._uc.reg_write(core.lr, end | core.thumb)
        try:
            self._uc.emu_start(start | core.thumb, end)
        except unicorn.UcError as error:
            self._fault = self._fault or Fault(StopReason.UNDEFINED, f"access outside all memory ({error})")
        if self._fault:
            raise self._fault
        low, high = (self._uc.reg_read(register) & 0xFFFF_FFFF for register in core.arguments[:2])
        return int(high << 32 | low)

    def argument(self, place: int) -> int:
        """A word of the arguments of the function that was just entered."""
        if place < len(self._core.arguments):
            return int(self._uc.reg_read(self._core.arguments[place])) & 0xFFFF_FFFF
        at = self._uc.reg_read(self._core.sp) + 4 * (place - len(self._core.arguments))
        return int(struct.unpack("<I", self._uc.mem_read(at, 4))[0])

    def answer(self, value: int) -> None:
        """Puts a result where the stub that was just entered leaves it."""
        for part, register in enumerate(self._core.arguments[:2]):
            self._uc.reg_write(register, value >> 32 * part & 0xFFFF_FFFF)

    def load(self, address: int, size: int) -> bytes:
        return bytes(self._uc.mem_read(address, size))

    def store(self, address: int, data: bytes) -> None:
        self._uc.mem_write(address, data)

    def _data_size(self) -> int:
        start = self.built.base + DATA
        ends = [s.address + s.size for s in self.built.elf.sections if s.is_allocated and s.address >= start]
        return max(ends, default=start) - start

    def _place_arguments(self, types: Sequence[Type], values: Sequence[int]) -> None:
        words = pass_arguments(self.built.target.architecture, types, values)
        sp = self.built.base + STACK - 4 * (len(words.stack) + 3 & ~3)
        self._uc.mem_write(sp, struct.pack(f"<{len(words.stack)}I", *words.stack))
        self._uc.reg_write(self._core.sp, sp)
        for register, word in zip(self._core.arguments, words.registers, strict=False):
            self._uc.reg_write(register, word)

    def _map_registers(self, pages: frozenset[int]) -> None:
        for page in sorted(pages):

            def read(_: Any, offset: int, size: int, __: object, page: int = page) -> int:
                return self._access(lambda bus: bus.read(page + offset, 8 * size))

            def write(_: Any, offset: int, size: int, value: int, __: object, page: int = page) -> None:
                self._access(lambda bus: bus.write(page + offset, 8 * size, value))

            self._uc.mmio_map(page, PAGE, read, None, write, None)

    def _access(self, act: Callable[[Registers], int | None]) -> int:
        """An exception must not pass through the emulator: it is kept, and the run ends."""
        assert self.bus is not None
        if self._fault is None:
            try:
                return act(self.bus) or 0
            except Fault as fault:
                self._stop(fault)
        return 0

    def _stop(self, fault: Fault) -> None:
        self._fault = self._fault or fault
        self._uc.emu_stop()

    def _block(self, uc: Any, address: int, size: int, _: object) -> None:
        """Counts by blocks, each decoded once."""
        watch = self._watched.get(address)
        if watch is not None and self._fault is None:
            try:
                watch()
            except Fault as fault:
                self._stop(fault)
        found = self._lengths.get((address, size))
        if found is None:
            found = self._lengths[address, size] = instructions_in(
                bytes(uc.mem_read(address, size)), bool(self._core.thumb)
            )
        if self._half is not None and self.instructions <= self._limit // 2 < self.instructions + found:
            self._half()
        self.instructions += found
        if self.instructions > self._limit:
            self._stop(Fault(StopReason.ENDLESS, f"no end within {self._limit} instructions"))


def _core(built: Built) -> _Core:
    from unicorn import arm_const as arm
    from unicorn import riscv_const as riscv

    uc = new_engine(built.target)
    if built.target.architecture is Architecture.RV32:
        arguments = tuple(getattr(riscv, f"UC_RISCV_REG_A{number}") for number in range(8))
        return _Core(uc, arguments, riscv.UC_RISCV_REG_SP, riscv.UC_RISCV_REG_RA, 0)
    # The M7 runs the code of all smaller cores; counts of instructions are the same.
    big = built.target.cpu in ("cortex-m33", "cortex-m55")
    uc.ctl_set_cpu_model(arm.UC_CPU_ARM_CORTEX_M33 if big else arm.UC_CPU_ARM_CORTEX_M7)
    return _Core(
        uc, tuple(getattr(arm, f"UC_ARM_REG_R{number}") for number in range(4)), arm.UC_ARM_REG_SP, arm.UC_ARM_REG_LR, 1
    )
