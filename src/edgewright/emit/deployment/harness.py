"""The C harness that exercises a deployment's library: random runs and preemptions, each recorded as a note.

The same harness runs on this machine and on the virtual board. The library decides what may start; results are judged
elsewhere, from the notes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...kernels.printing.constants import C_TYPES
from ...network import Array
from ...program.deployment import FirmwareBuffer, Part
from ..firmware.glue import HarnessGlue
from ..names import arena_names
from .library import DeploymentLibrary

INTERRUPTED = 77  # of 256: the share of points at which somebody tries to start
TIMER = 0xFFFFFF  # ticks that it counts at most: it has 24 bits
HANDLER_STACK = 16 << 10  # for what an interrupt runs
_NOTE = struct.Struct("<BBBB")  # kind, part, variant or status, depth
BEGIN, END = 0, 1


@dataclass(frozen=True, slots=True)
class TrialScript:
    """How much is tried: the number of interleavings, and of attempts to start a part in each."""

    interleavings: int = 40
    starts: int = 5
    seed: int = 1
    ticks: int = 0  # of the core's clock, on average, between two interrupts of the timer, where there is one

    @property
    def words(self) -> bytes:
        return struct.pack("<4I", self.seed * 2 + 1 & 0xFFFFFFFF, self.interleavings, self.starts, self.ticks)


@dataclass(frozen=True, slots=True)
class TrialNote:
    """One event: a part was asked to start with one of its inputs, or such a call returned."""

    is_begin: bool
    part: int
    value: int  # the number of its inputs, or the status
    depth: int
    outputs: bytes = b""


def trial_inputs(
    library: DeploymentLibrary, script: TrialScript, inputs: Mapping[str, Sequence[Mapping[str, Array]]]
) -> bytes:
    """What the harness reads before it begins: the script, what own buffers hold, inputs of all parts."""
    data = [script.words, *(own_bytes(buffer.bytes) for buffer in kept_buffers(library))]
    for part in library.deployment.parts:
        for tensor in library.code.given(part)[0]:
            data += [values[tensor].tobytes() for values in inputs[part.name]]
    return b"".join(data)


def own_bytes(size: int) -> bytes:
    """A pattern for a buffer of the firmware."""
    return bytes((17 * n + n // 256 + 3) % 251 for n in range(size))


def kept_buffers(library: DeploymentLibrary) -> list[FirmwareBuffer]:
    """The firmware's own buffers that no part may ever touch."""
    return [buffer for buffer in library.deployment.buffers if buffer.parts is None]


def read_notes(library: DeploymentLibrary, data: bytes) -> Iterator[TrialNote]:
    """The notes in the order in which they were made."""
    parts, at = library.deployment.parts, 0
    while at < len(data):
        kind, number, value, depth = _NOTE.unpack_from(data, at)
        at += _NOTE.size
        size = 0
        if kind == END and value == 0:
            tensors = parts[number].network.tensors
            size = sum(tensors[name].bytes for name in library.code.given(parts[number])[1])
        yield TrialNote(kind == BEGIN, number, value, depth, data[at : at + size])
        at += size


@dataclass(frozen=True, slots=True)
class _TrialArray:
    """An array of the harness for an input or output."""

    name: str
    bytes: int
    ctype: str
    row: int  # bytes of a row where an input is pulled; else 0

    @property
    def room(self) -> int:
        """Bytes from one to the next, each 16-byte aligned."""
        return -(-self.bytes // 16) * 16

    @property
    def argument(self) -> str:
        return f"pull_{self.name}, {self.name}[variant]" if self.row else f"(const void *){self.name}[variant]"


def trial_harness(library: DeploymentLibrary, variants: int, timer: str | None = None) -> HarnessGlue:
    """The harness; with `timer`, a part that an interrupt starts as well, as soon as the library lets it."""
    code, calls, size = library.code, [], 0
    for number, part in enumerate(code.parts):
        ends = zip(("in", "out"), code.given(part), strict=True)
        inputs, outputs = (
            [_array(library, f"{way}_{number}_{n}", part, x) for n, x in enumerate(xs)] for way, xs in ends
        )
        arguments = [array.argument for array in inputs] + [f"(void *){array.name}" for array in outputs]
        text = f"{code.function(part)}({', '.join(arguments)})"
        calls.append({"text": text, "inputs": tuple(inputs), "outputs": tuple(outputs)})
        size += 16 + sum(array.room * variants for array in inputs) + sum(array.room for array in outputs)
    text = code.render(
        "harness.c",
        calls=calls,
        variants=variants,
        timer=None if timer is None else code.index[timer],
        most_ticks=TIMER,
        interrupted=INTERRUPTED,
        begin=BEGIN,
        end=END,
        memories=list(arena_names(library.arenas).values()),
        buffers=[{"function": code.buffer_function(own), "bytes": own.bytes} for own in kept_buffers(library)],
    )
    return HarnessGlue(text, size + 256 + (HANDLER_STACK if timer is not None else 0))


def _array(library: DeploymentLibrary, name: str, part: Part, tensor: str) -> _TrialArray:
    kind, is_pulled = part.network.tensors[tensor], tensor in library.parts[part.name].plan.pulled
    return _TrialArray(name, kind.bytes, C_TYPES[kind.dtype.value], kind.strides[1] if is_pulled else 0)
