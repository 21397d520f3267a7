"""The application's library at work, on this machine and on the virtual board, compared with each network run alone.

The harness tries random runs and preemptions, and leaves to the library which of them may start. What the library
refuses is counted; what it allows must give the right result.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ..board.machine import machine_for
from ..board.qemu import TRACE
from ..board.toolchain import Toolchain, toolchain
from ..emit.firmware.host_program import build_program, run_program
from ..emit.firmware.image import STACK, build_image, library_flags
from ..emit.firmware.measurement import Emulator, chosen_emulator, run_firmware
from ..emit.names import arena_names
from ..errors import EdgewrightError
from ..network import Array, random_inputs
from ..network.kernels import execute
from ..platform.target import TARGETS, Architecture
from ..program.deployment import OUTSIDE, Fifo, Part
from ..program.options import Options
from .app_ends import given_ends
from .harness import TrialNote, TrialScript, kept_buffers, own_bytes, read_notes, trial_harness, trial_inputs
from .library import AppLibrary

VARIANTS = 3  # different inputs of each network
ON_BOARD = TrialScript(interleavings=4)  # of a library that is handed over


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How a trial went."""

    runs: int
    nested: int  # of the runs: inside another one
    refused: int
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoardTrial:
    """How it went on the virtual board, and what the firmware takes there."""

    result: TrialResult
    ram_linked: int  # .data and .bss of the library: the arenas, and what it remembers
    arenas_linked: Mapping[str, int]  # of each memory, by its name in C
    stack_bytes: int  # that runs inside of runs took, at most
    instructions: int
    emulator: str
    compiler: str


@dataclass(frozen=True)
class AppTrial:
    """The library with its harness, and what every network should give."""

    library: AppLibrary

    @cached_property
    def inputs(self) -> Mapping[str, tuple[Mapping[str, Array], ...]]:
        members = self.library.application.deployment.parts
        return {m.name: tuple(random_inputs(m.network, seed=n) for n in range(VARIANTS)) for m in members}

    def run(self, script: TrialScript | None = None, tools: Toolchain | None = None) -> TrialResult:
        """On this machine, built with its compiler or with `tools`."""
        chosen = script or TrialScript()
        with tempfile.TemporaryDirectory(prefix="edgewright-") as name:
            folder, here = Path(name).resolve(), replace(self.library, target=TARGETS["host"])
            program = build_program(here, trial_harness(here, VARIANTS), tools or toolchain(here.target), folder, "-O2")
            record = run_program(here, program, trial_inputs(here, chosen, self.inputs), 3600.0)
            return self._judged((folder / TRACE).read_bytes(), record)

    def run_on_board(
        self,
        script: TrialScript | None = None,
        *,
        timer: str | None = None,
        emulator: Emulator | None = None,
        zig: bool | None = None,
        timeout_s: float = 600.0,
    ) -> BoardTrial:
        """On the emulated machine of the target; with `timer`, a member that an interrupt starts too."""
        library, chosen = self.library, script or ON_BOARD
        machine, tools = machine_for(library.target), toolchain(library.target, zig)
        emulated = chosen_emulator(machine, Emulator.QEMU if timer is not None else emulator)
        flag = Options().optimise_flag(library.target)
        with tempfile.TemporaryDirectory(prefix="edgewright-") as name:
            folder = Path(name).resolve()
            own = library_flags(library, flag)
            harness = trial_harness(library, VARIANTS, timer)
            firmware = build_image(library, harness, machine, tools, folder, own, 2 * STACK)
            data = trial_inputs(library, chosen, self.inputs)
            record = run_firmware(library, firmware, machine, emulated, data, timeout_s)
            return BoardTrial(
                self._judged((folder / TRACE).read_bytes(), record.outputs),
                firmware.ram_linked,
                firmware.arenas_linked,
                record.stack,
                record.instructions,
                f"{emulated.value} {machine.name}",
                f"{tools.name} {flag}",
            )

    def _judged(self, notes: bytes, own: bytes) -> TrialResult:
        judge = _NoteJudge(self)
        for note in read_notes(self.library, notes):
            judge.take(note)
        wrong = [*judge.wrong, *self._spoiled(own)]
        return TrialResult(judge.runs, judge.nested, judge.refused, tuple(wrong))

    def _spoiled(self, own: bytes) -> Iterator[str]:
        at = 0
        for buffer in kept_buffers(self.library):
            if own[at : at + buffer.bytes] != own_bytes(buffer.bytes):
                yield f"buffer '{buffer.name}' was overwritten"
            at += buffer.bytes


@dataclass
class _OpenCall:
    """A call of a run function that has not come back."""

    member: Part
    inputs: Mapping[str, Array]
    is_legal: bool | None  # None: not known
    is_started: bool = False  # it has been allowed


class _NoteJudge:
    """Goes through the notes of a trial, and knows what the library should remember."""

    def __init__(self, trial: AppTrial) -> None:
        self.trial, self.deployment = trial, trial.library.deployment
        self.members = trial.library.application.deployment.parts
        self.runs = self.nested = self.refused = 0
        self.wrong: list[str] = []
        self._open: list[_OpenCall] = []  # calls that have not come back
        self._unread: dict[Fifo, set[str]] = {fifo: set() for fifo in self.deployment.shared}
        self._values: dict[Fifo, Array] = {}  # what networks hand over
        self._frames: dict[tuple[str, int], Mapping[str, Array]] = {}  # what partitions made of each frame
        self._done = dict.fromkeys(self.deployment.part_named, 0)
        self._known: dict[tuple[str, bytes], Mapping[str, Array]] = {}

    def take(self, note: TrialNote) -> None:
        member = self.members[note.member]
        if note.is_begin:
            for call in self._open:  # a run inside of theirs says that these were allowed
                self._start(call)
            given = given_ends(self.deployment, member)[0]
            own = self.trial.inputs[member.name][note.value]
            inputs = {x: own[x] if x in given else self._handed(member, x, own[x]) for x in member.network.inputs}
            self._open.append(_OpenCall(member, inputs, self._is_legal(member)))
            return
        call = self._open.pop()
        if call.is_legal is not None and call.is_legal == bool(note.value):
            said = "refuses network" if call.is_legal else "starts network"
            order = "in a legal order" if call.is_legal else "though what it reads is not there"
            self.wrong.append(f"after {self.runs} runs the library {said} '{member.name}' {order}")
        if note.value:
            self.refused += 1
            return
        self._start(call)
        self.runs += 1
        self.nested += note.depth > 0
        expected = self._expected(member, call.inputs)
        at = 0
        for name in given_ends(self.deployment, member)[1]:
            tensor = member.network.tensors[name]
            found = np.frombuffer(note.outputs, tensor.dtype.numpy, tensor.size, at).reshape(tensor.shape)
            if not _is_same(found, expected[name]):
                self.wrong.append(f"run {self.runs}: network '{member.name}' computes a wrong '{name}'")
            at += tensor.bytes
        self._finish(member, expected)

    def _finish(self, member: Part, expected: Mapping[str, Array]) -> None:
        for fifo in self.deployment.shared:
            if fifo.source == member.name:
                self._values[fifo], self._unread[fifo] = expected[member.own(fifo)], set(fifo.reading)
        self._frames[member.name, self._done[member.name]] = expected
        self._done[member.name] += 1

    def _start(self, call: _OpenCall) -> None:
        """Notes what a run reads as it begins, what it overwrites and what it brings for others."""
        if call.is_started:
            return
        call.is_started, name = True, call.member.name
        for fifo in self.deployment.shared:
            self._unread[fifo].discard(name)
            if fifo.writer == name:
                self._unread[fifo] = set(fifo.reading) - {name} if fifo.source == OUTSIDE else set()
                if fifo.source == OUTSIDE:
                    self._values[fifo] = call.inputs[call.member.own(fifo)]

    def _is_legal(self, member: Part) -> bool | None:
        """Whether a call may start that nothing runs beside; None where others do, or pipelines count frames."""
        if self._open or self.deployment.queues:
            return None
        deployment = self.deployment
        read = [fifo for fifo in deployment.shared if member.name in fifo.reading and fifo.writer != member.name]
        return all(
            member.name in self._unread[fifo] and not deployment.read_before(fifo, member.name) & self._unread[fifo]
            for fifo in read
        )

    def _handed(self, member: Part, tensor: str, default: Array) -> Array:
        """What another member has made; `default` where none has, since the library will refuse the run."""
        for fifo in self.deployment.queues:
            if member.name in fifo.reading and member.own(fifo) == tensor:
                made = self._frames.get((fifo.source, self._done[member.name]))
                return default if made is None else made[self.deployment.part_named[fifo.source].own(fifo)]
        shared = (x for x in self.deployment.shared if member.name in x.reading and member.own(x) == tensor)
        return self._values.get(next(shared), default)

    def _expected(self, member: Part, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        key = (member.name, b"".join(inputs[name].tobytes() for name in sorted(inputs)))
        if key not in self._known:
            self._known[key] = execute(member.network, inputs)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a library was put through before it is handed over."""

    here: TrialResult
    board: BoardTrial | None
    note: str = ""  # why it did not run on the virtual board


def verify_application(library: AppLibrary, script: TrialScript | None = None) -> Verified:
    """The trials of a library, made before it is handed over; an error where a result is wrong."""
    trial = AppTrial(library)
    here, board, note = trial.run(script), None, ""
    if library.target.architecture in (Architecture.CORTEX_M, Architecture.RV32):
        try:
            machine = machine_for(library.target)
            toolchain(library.target)
            chosen_emulator(machine)
        except EdgewrightError as error:
            note = f"not run on the virtual board: {error}"
        else:
            board = trial.run_on_board()
    for result in (here, *([board.result] if board else ())):
        if result.wrong:
            raise EdgewrightError(f"the application's code fails its check, please report this: {result.wrong[0]}")
    planned = {name: library.layout.arenas[memory] for memory, name in arena_names(library.arenas).items()}
    if board is not None and (board.ram_linked != sum(library.arenas.values()) or board.arenas_linked != planned):
        raise EdgewrightError(
            f"the application takes {board.ram_linked} bytes of RAM as linked, and {sum(library.arenas.values())} were "
            "planned; please report this"
        )
    return Verified(here, board, note)


def _is_same(found: Array, expected: Array) -> bool:
    """Bit by bit for integers; real numbers may be summed up in another order."""
    if found.dtype.kind != "f":
        return found.tobytes() == expected.tobytes()
    scale = float(np.abs(expected).max(initial=0.0)) or 1.0
    return bool(np.allclose(found, expected, rtol=1e-4, atol=1e-5 * scale))
