"""An upper bound on a library's stack, from its machine code: the pushes of every function, and the call graph.

Compilers report frames of what they compile, but neither those of assembler nor those of their own helpers, and not
every compiler reports at all. The linked image is complete for every compiler.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from ..platform.target import Architecture
from . import rv32, thumb
from .elf import Elf
from .instruction import ControlFlow, Decoder, Instruction

CODE = (".library", ".runtime")  # sections of the library, without the harness
# Instructions for which a register is assumed to keep its value, where the stack pointer moves by it.
FRESH = 3
_DECODERS: Mapping[Architecture, Decoder] = {Architecture.CORTEX_M: thumb.decode, Architecture.RV32: rv32.decode}


def stack_bound(
    elf: Elf, architecture: Architecture, root: str, callbacks: Iterable[str] = (), given: Iterable[str] = ()
) -> int | None:
    """Bytes below the caller of `root`; None if there is no bound: recursion, or a frame that grows.

    Functions in `callbacks` also call functions of their caller through pointers, whose stack the caller must count,
    unless they are named in `given`. Interrupts come on top.
    """
    if root not in elf.symbols:
        return None
    pulling, outside = ({elf.symbols[n][0] & ~1 for n in names if n in elf.symbols} for names in (callbacks, given))
    program = _Program(elf, _DECODERS[architecture], pulling)
    return _CallChains(program, outside).depth(elf.symbols[root][0] & ~1, ())


@dataclass
class _Function:
    """One function: its own stack depth, and its depth at each call."""

    own: int | None = 0  # None: it grows
    calls: dict[int, int] = field(default_factory=dict)  # callee: the most bytes at a call of it
    by_pointer: int | None = None  # the most bytes at a call by pointer
    jumps: bool = False  # jumps through a pointer with an empty stack: out of the function, or by its own table
    constants: set[int] = field(default_factory=set)  # constants that it builds: among them addresses of functions

    @property
    def has_pointers(self) -> bool:
        return self.jumps or self.by_pointer is not None

    def call(self, callee: int, depth: int) -> None:
        self.calls[callee] = max(depth, self.calls.get(callee, 0))

    def point(self, depth: int) -> None:
        self.by_pointer = max(depth, self.by_pointer or 0)


@dataclass(frozen=True)
class _Program:
    """The functions of a linked image by address."""

    elf: Elf
    decode: Decoder
    callbacks: Collection[int]

    @cached_property
    def ends(self) -> Mapping[int, int]:
        """The end of each function: from its symbol, or the start of the next one."""
        ends = {}
        for section in self.elf.sections:
            if not section.is_code:
                continue
            end = section.address + section.size
            sizes: dict[int, int] = {}
            for start, size, _ in self.elf.functions:
                if section.address <= start < end:
                    sizes[start] = max(size, sizes.get(start, 0))
            for start, following in pairwise((*sorted(sizes), end)):
                ends[start] = start + sizes[start] if sizes[start] else following
        return ends

    @cached_property
    def functions(self) -> Mapping[int, _Function]:
        return {start: self._swept(start, end) for start, end in self.ends.items()}

    @cached_property
    def pointed_at(self) -> tuple[int, ...]:
        """The library's functions whose address is taken: in data, or built by code."""
        sections = [section for section in self.elf.sections if section.name in CODE and section.is_allocated]
        own = {start for start in self.ends for s in sections if s.address <= start < s.address + s.size}
        words = {constant for start in own for constant in self.functions[start].constants}
        for section in self.elf.sections:
            if section.name in (*CODE, ".data") and section.is_allocated:
                data = self.elf.bytes_at(section.address, section.size)
                words.update(word for (word,) in struct.iter_unpack("<I", data[: len(data) & ~3]))
        return tuple(sorted(own & {word & ~1 for word in words}))

    def _swept(self, start: int, end: int) -> _Function:
        """Sweeps a function from its first instruction to its last, until depths no longer change."""
        sweep = _Sweep(start, end)
        for _ in range(4):
            before = dict(sweep.depths)
            sweep.function = _Function()
            self._sweep(sweep)
            if sweep.depths == before:
                return sweep.function
        return _Function(own=None)

    def _sweep(self, sweep: _Sweep) -> None:
        code = self.elf.bytes_at(sweep.start, sweep.end - sweep.start)
        at, depth, skipped = sweep.start, 0, 0
        deepest = 0
        is_reached = True
        while at < sweep.end:
            if (after := self.elf.data_until(at, sweep.start)) is not None:  # constants and tables among the code
                at, is_reached = max(after + after % 2, at + 2), False  # tables of bytes may end between halfwords
                continue
            if not is_reached:
                depth = sweep.depths.get(at, deepest)
            depth = max(depth, sweep.depths.get(at, 0))
            step = sweep.steps.get(at)
            if step is None:
                step = sweep.steps[at] = self.decode(code, at - sweep.start, at)
            may_skip, skipped = skipped > 0, max(skipped - 1, step.conditional)
            push = sweep.push(step)
            if push is None:
                sweep.function.own = None
                return
            deeper = max(depth, depth + push)
            deepest = max(deepest, deeper)
            self._note(sweep, step, depth if step.flow is ControlFlow.RETURN else deeper)
            # Instructions that may be skipped count if they push, and not if they pop.
            depth = deeper if may_skip else max(0, depth + push)
            is_reached = may_skip or step.flow in (ControlFlow.NEXT, ControlFlow.BRANCH, ControlFlow.CALL)
            at += step.size
            if step.flow is ControlFlow.CALL and at >= sweep.end:
                is_reached = False  # it does not return
        if is_reached and sweep.end in self.ends:
            sweep.function.call(sweep.end, depth)  # falls through into the next function
        sweep.function.own = deepest

    def _note(self, sweep: _Sweep, step: Instruction, depth: int) -> None:
        target = sweep.target(step)
        if (
            step.flow in (ControlFlow.BRANCH, ControlFlow.JUMP)
            and target is not None
            and sweep.start <= target < sweep.end
        ):
            sweep.depths[target] = max(depth, sweep.depths.get(target, 0))
        elif step.flow in (ControlFlow.BRANCH, ControlFlow.JUMP, ControlFlow.CALL) and target is not None:
            sweep.function.call(self._function(target), depth)
        elif step.flow is ControlFlow.CALL:
            sweep.function.point(depth)
        elif step.flow is ControlFlow.JUMP and not depth and sweep.may_leave(step):
            sweep.function.jumps = True

    def _function(self, address: int) -> int:
        """The function that contains an address."""
        if address in self.ends:
            return address
        return next((start for start, end in self.ends.items() if start <= address < end), address)


@dataclass
class _Sweep:
    """The state of a sweep through one function."""

    start: int
    end: int
    steps: dict[int, Instruction] = field(default_factory=dict)  # decoded, by address
    depths: dict[int, int] = field(default_factory=dict)  # at targets of branches
    registers: dict[int, tuple[int, int]] = field(default_factory=dict)  # known values, and when they were set
    popped: dict[int, int] = field(default_factory=dict)  # registers, and when they were popped
    count: int = 0
    function: _Function = field(default_factory=_Function)

    def push(self, step: Instruction) -> int | None:
        """Bytes by which the stack pointer falls; None if unknown."""
        self.count += 1
        if step.sets is not None:
            base = self.registers.get(step.adds_to, (0, 0))[0] if step.adds_to is not None else 0
            value = (base + step.value) & 0xFFFFFFFF
            self.registers[step.sets] = value, self.count
            self.function.constants.add(value)
        if step.pops:
            self.popped.update({register: self.count for register in range(16) if step.pops >> register & 1})
        if step.push_by is None:
            return step.push
        value, since = self.registers.get(step.push_by, (0, -FRESH))
        if self.count - since > FRESH:
            return None
        down = -value if step.push_up else value
        return (down + (1 << 31)) % (1 << 32) - (1 << 31)

    def may_leave(self, step: Instruction) -> bool:
        """Whether a jump may leave to another function rather than return to the caller."""
        return step.through is not None and self.count - self.popped.get(step.through, -FRESH) > FRESH

    def target(self, step: Instruction) -> int | None:
        """The target of a branch or a call, from the instruction or from a register that was just set."""
        if step.target is not None or step.adds_to is None or step.sets is not None:
            return step.target
        value, since = self.registers.get(step.adds_to, (0, -1))
        return (value + step.value) & 0xFFFFFFFE if self.count - since == 1 else None


@dataclass
class _CallChains:
    """The longest chain of calls."""

    program: _Program
    given: Collection[int]
    reached: dict[int, set[int]] = field(default_factory=dict)
    known: dict[int, int | None] = field(default_factory=dict)  # of functions without calls by pointer

    def depth(self, address: int, above: tuple[int, ...]) -> int | None:
        """Bytes that a call takes, or None; `above` are the active functions."""
        if address in above:
            return None
        if address not in self.program.functions:
            return None
        if address not in self.known:
            depth = self._depth(address, above)
            if any(self.program.functions[name].has_pointers for name in self._reachable(address)):
                return depth  # depends on the active functions
            self.known[address] = depth
        return self.known[address]

    def _depth(self, address: int, above: tuple[int, ...]) -> int | None:
        function = self.program.functions[address]
        if function.own is None:
            return None
        depths = [function.own]
        onwards = (*above, address)
        for callee, at in function.calls.items():
            below = self.depth(callee, onwards)
            if below is None:
                return None
            depths.append(at + below)
        if function.has_pointers:
            below = self._by_pointer(address, onwards)
            if below is None:
                return None
            depths.append((function.by_pointer or 0) + below)
        return max(depths)

    def _by_pointer(self, address: int, above: tuple[int, ...]) -> int | None:
        """The depth of the deepest function whose address is taken and that reaches no active function."""
        running = set(above)
        candidates = [start for start in self.program.pointed_at if not self._reachable(start) & running]
        if address in self.program.callbacks:
            candidates += self.given
        elif not candidates and self.program.functions[address].by_pointer is not None:
            return None  # the target is unknown
        depths = [self.depth(start, above) for start in candidates]
        return None if None in depths else max((depth for depth in depths if depth is not None), default=0)

    def _reachable(self, address: int) -> set[int]:
        """The function and all that it calls by name."""
        if address not in self.reached:
            reachable, rest = {address}, [address]
            while rest:
                new = {callee for callee in self.program.functions[rest.pop()].calls if callee not in reachable}
                new &= self.program.functions.keys()
                reachable |= new
                rest += new
            self.reached[address] = reachable & self.program.functions.keys()
        return self.reached[address]
