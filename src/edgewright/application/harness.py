"""The C harness that exercises an application's library: random runs and preemptions, each recorded as a note.

The same harness runs on this machine and on the virtual board. The library decides what may start; results are judged
elsewhere, from the notes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..emit.firmware.glue import HarnessGlue
from ..emit.names import arena_names
from ..kernels.printing.constants import C_TYPES
from ..kernels.printing.source import CWriter
from ..network import Array, Tensor
from ..program.deployment import FirmwareBuffer, Part
from .app_ends import c_name, given_ends
from .library import AppLibrary

INTERRUPTED = 77  # of 256: the share of points at which somebody tries to start
TIMER = 0xFFFFFF  # ticks that it counts at most
HANDLER_STACK = 16 << 10  # for what an interrupt runs
_NOTE = struct.Struct("<BBBB")  # kind, member, variant or status, depth
BEGIN, END = 0, 1


@dataclass(frozen=True, slots=True)
class TrialScript:
    """How much is tried: the number of interleavings, and of attempts to start a network in each."""

    interleavings: int = 40
    starts: int = 5
    seed: int = 1
    ticks: int = 0  # of the core's clock, on average, between two interrupts of the timer, where there is one

    @property
    def words(self) -> bytes:
        return struct.pack("<4I", self.seed * 2 + 1 & 0xFFFFFFFF, self.interleavings, self.starts, self.ticks)


@dataclass(frozen=True, slots=True)
class TrialNote:
    """One event: a member was asked to start with one of its inputs, or such a call returned."""

    is_begin: bool
    member: int
    value: int  # the number of its inputs, or the status
    depth: int
    outputs: bytes = b""


def trial_inputs(
    library: AppLibrary, script: TrialScript, inputs: Mapping[str, Sequence[Mapping[str, Array]]]
) -> bytes:
    """What the harness reads before it begins: the script, what own buffers hold, inputs of all members."""
    parts = [script.words, *(own_bytes(buffer.bytes) for buffer in kept_buffers(library))]
    for member in library.application.deployment.parts:
        for tensor in given_ends(library.deployment, member)[0]:
            parts += [values[tensor].tobytes() for values in inputs[member.name]]
    return b"".join(parts)


def own_bytes(size: int) -> bytes:
    """A pattern for a buffer of the firmware."""
    return bytes((17 * n + n // 256 + 3) % 251 for n in range(size))


def kept_buffers(library: AppLibrary) -> list[FirmwareBuffer]:
    """The firmware's own buffers that no network may ever touch."""
    return [buffer for buffer in library.deployment.buffers if buffer.parts is None]


def read_notes(library: AppLibrary, data: bytes) -> Iterator[TrialNote]:
    """The notes in the order in which they were made."""
    members, at = library.application.deployment.parts, 0
    while at < len(data):
        kind, member, value, depth = _NOTE.unpack_from(data, at)
        at += _NOTE.size
        size = 0
        if kind == END and value == 0:
            network = members[member].network
            size = sum(network.tensors[name].bytes for name in given_ends(library.deployment, members[member])[1])
        yield TrialNote(kind == BEGIN, member, value, depth, data[at : at + size])
        at += size


def trial_harness(library: AppLibrary, variants: int, timer: str | None = None) -> HarnessGlue:
    """The harness; with `timer`, a member that an interrupt starts as well, as soon as the library lets it."""
    return _HarnessWriter(library, variants, timer).written()


@dataclass(frozen=True)
class _HarnessWriter:
    library: AppLibrary
    variants: int
    timer: str | None

    @property
    def members(self) -> tuple[Part, ...]:
        return self.library.application.deployment.parts

    def written(self) -> HarnessGlue:
        c, size, name = CWriter(), 0, self.library.name
        c.lines += ['#include "board.h"', f'#include "{name}.h"', "#include <string.h>", ""]
        c.lines += [
            "BOARD_MEMORY static uint32_t script[4]; /* seed, interleavings, starts, ticks */",
            "BOARD_MEMORY static uint32_t state, depth;",
            "BOARD_MEMORY static volatile uint32_t due;",
            *(["BOARD_MEMORY static uint32_t left; /* ticks until the timer calls */"] if self.timer else []),
            "BOARD_MEMORY board_stamp board_probes[1];",
            "const uint32_t board_probe_count = 0;",
            "",
        ]
        for number, member in enumerate(self.members):
            for place, tensor in enumerate(self._given(member)[0]):
                size += self._declare(c, f"in_{number}_{place}", tensor, is_input=True, member=member)
            for place, tensor in enumerate(self._given(member)[1]):
                size += self._declare(c, f"out_{number}_{place}", tensor)
        self._write_inputs(c)
        self._write_start(c)
        self._write_interrupts(c)
        with c.block("void board_run(void)"):
            c.line("uint32_t i, j;")
            c.line("board_stack_top = board_stack();")
            with c.block("for (i = 0; i < script[1]; i++)"), c.block("for (j = 0; j < script[2]; j++)"):
                c.line(f"start(draw({len(self.members)}u));")
                if self.timer is not None:
                    c.line("serve();")
            if self.timer is not None:
                c.line("board_tick_every(0);")
        with c.block("void board_outputs(void)"):
            for buffer in kept_buffers(self.library):
                c.line(f"board_write({name}_buffer_{buffer.name.lower()}(), {buffer.bytes}u);")
        return HarnessGlue(c.text(), size + 256 + (HANDLER_STACK if self.timer is not None else 0))

    def _given(self, member: Part) -> tuple[list[Tensor], list[Tensor]]:
        inputs, outputs = given_ends(self.library.deployment, member)
        tensors = member.network.tensors
        return [tensors[name] for name in inputs], [tensors[name] for name in outputs]

    def _is_pulled(self, member: Part, tensor: Tensor) -> bool:
        return self.library.members[member.name].plan.views[tensor.name].window is not None

    def _declare(
        self, c: CWriter, name: str, tensor: Tensor, is_input: bool = False, member: Part | None = None
    ) -> int:
        """An array of the harness, and the function that hands out its rows where an input is pulled; its bytes."""
        count = f"[{self.variants}]" if is_input else ""
        c.line(f"BOARD_MEMORY static uint8_t {name}{count}[{tensor.bytes}];")
        if member is not None and self._is_pulled(member, tensor):
            ctype, row = C_TYPES[tensor.dtype.value], tensor.strides[1]
            with c.block(f"static void pull_{name}(void *context, int32_t row, {ctype} *target)"):
                c.line(f"memcpy(target, (const uint8_t *)context + row * {row}, {row});")
        return tensor.bytes * (self.variants if is_input else 1) + 16

    def _write_inputs(self, c: CWriter) -> None:
        """The arena is filled first: a run that counts on zeroed memory shall fail. The timer has 24 bits."""
        if self.timer is not None:
            with c.block("static void await(uint32_t ticks)"):
                c.line("left = ticks;")
                c.line(f"board_tick_every(left < {TIMER}u ? left : {TIMER}u);")
        with c.block("int32_t board_inputs(void)"):
            c.line("uint32_t i;")
            c.line("if (board_read(script, sizeof script))")
            c.line("    return 1;")
            c.line("#ifndef BOARD_HOSTED")
            with c.block():
                for memory in arena_names(self.library.arenas).values():
                    c.line(f"extern uint32_t __arena_{memory}[], __arena_{memory}_end[];")
                    c.line(f"for (i = 0; __arena_{memory} + i + 1 <= __arena_{memory}_end; i++)")
                    c.line(f"    ((volatile uint32_t *)__arena_{memory})[i] = 0xA5A5A5A5u;")
            c.line("#endif")
            for buffer in kept_buffers(self.library):
                c.line(f"if (board_read({self.library.name}_buffer_{buffer.name.lower()}(), {buffer.bytes}u))")
                c.line("    return 1;")
            for number, member in enumerate(self.members):
                for place, tensor in enumerate(self._given(member)[0]):
                    c.line(f"for (i = 0; i < {self.variants}u; i++)")
                    c.line(f"    if (board_read(in_{number}_{place}[i], {tensor.bytes}u))")
                    c.line("        return 1;")
            c.line("state = script[0];")
            if self.timer is not None:
                c.line("await(script[3]);")
            c.line("return 0;")
        c.line()

    def _write_start(self, c: CWriter) -> None:
        with c.block("static uint32_t draw(uint32_t below)"):
            c.line("state ^= state << 13;")
            c.line("state ^= state >> 17;")
            c.line("state ^= state << 5;")
            c.line("return (state >> 8) % below;")
        with c.block("static void note(uint32_t kind, uint32_t which, uint32_t value)"):
            c.line("uint8_t said[4];")
            for place, value in enumerate(("kind", "which", "value", "depth")):
                c.line(f"said[{place}] = (uint8_t){value};")
            c.line("board_trace(said, 4);")
        with c.block("static int32_t start(uint32_t which)"):
            c.line(f"const uint32_t variant = draw({self.variants}u);")
            c.line("int32_t status = 0;")
            c.line(f"note({BEGIN}, which, variant);")
            c.line("depth++;")
            with c.block("switch (which)"):
                for number, member in enumerate(self.members):
                    own, arguments = (
                        c_name(self.library.application, member),
                        ", ".join(self._arguments(number, member)),
                    )
                    call = f"{self.library.name}_run_{own}({arguments})"
                    c.line(f"case {number}: status = {call}; break;")
            c.line("(void)variant;")
            c.line("BOARD_MASK();")
            c.line("depth--;")
            c.line(f"note({END}, which, (uint32_t)status);")
            with c.block("if (!status)"), c.block("switch (which)"):
                for number, member in enumerate(self.members):
                    c.line(f"case {number}:")
                    for place, tensor in enumerate(self._given(member)[1]):
                        c.line(f"    board_trace(out_{number}_{place}, {tensor.bytes}u);")
                    c.line("    break;")
            c.line("BOARD_UNMASK();")
            c.line("return status;")
        c.line()

    def _arguments(self, number: int, member: Part) -> Iterator[str]:
        inputs, outputs = self._given(member)
        for place, tensor in enumerate(inputs):
            name = f"in_{number}_{place}"
            if self._is_pulled(member, tensor):
                yield from (f"pull_{name}", f"{name}[variant]")
            else:
                yield f"(const void *){name}[variant]"
        yield from (f"(void *)out_{number}_{place}" for place in range(len(outputs)))

    def _write_interrupts(self, c: CWriter) -> None:
        """What starts at a preemption point: any network, or with a timer the one that is due, which its interrupt
        starts as well."""
        if self.timer is not None:
            which = [member.name for member in self.members].index(self.timer)
            with c.block("static void serve(void)"):
                c.line(f"if (due && !start({which}u))")
                c.line("    due = 0;")
            with c.block("void board_tick(void)"):
                with c.block(f"if (left > {TIMER}u)"):
                    c.line(f"await(left - {TIMER}u);")
                    c.line("return;")
                c.line("due = 1;")
                c.line("serve();")
                c.line("await(script[3] / 2 + draw(script[3])); /* after it, or nobody else would get on */")
        with c.block(f"void {self.library.name}_poll(void)"):
            if self.timer is not None:
                c.line("serve();")
            else:
                c.line(f"if (draw(256) < {INTERRUPTED})")
                c.line(f"    (void)start(draw({len(self.members)}u));")
        c.line()
