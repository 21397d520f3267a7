"""A deployment's library at work, on this machine and on the virtual board, compared with each part run alone.

The harness tries random runs and preemptions, and leaves to the library which of them may start. What the library
refuses is counted; what it allows must give the right result.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ...board.machine import EmulatedMachine, machine_for
from ...board.qemu import TRACE
from ...board.toolchain import Toolchain, toolchain
from ...errors import EdgewrightError
from ...network import Array, random_inputs
from ...network.kernels import execute
from ...platform.target import TARGETS, Architecture
from ...program.deployment import OUTSIDE, Fifo, Part
from ...program.options import Options
from ..firmware.glue import HarnessGlue
from ..firmware.host_program import build_program, run_program
from ..firmware.image import STACK, build_image, library_flags
from ..firmware.measurement import Emulator, chosen_emulator, run_firmware, stamping
from .harness import TrialNote, TrialScript, kept_buffers, own_bytes, read_notes, trial_harness, trial_inputs
from .library import DeploymentLibrary

VARIANTS = 3  # different inputs of each part
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


@dataclass(frozen=True, slots=True)
class BoardRun:
    """What a harness noted on the virtual board, and what the firmware takes there."""

    notes: bytes
    outputs: bytes
    ram_linked: int
    arenas_linked: Mapping[str, int]
    stack_bytes: int
    instructions: int
    emulator: str
    compiler: str
    machine: EmulatedMachine  # that knows how to read stamps
    code_bytes: int  # of the library and of what it calls, with tables
    weight_bytes: int

    @property
    def figures(self) -> tuple[int, Mapping[str, int], int, int, str, str]:
        return (
            self.ram_linked,
            self.arenas_linked,
            self.stack_bytes,
            self.instructions,
            self.emulator,
            self.compiler,
        )


def run_here(
    library: DeploymentLibrary, harness: HarnessGlue, data: bytes, tools: Toolchain | None = None
) -> tuple[bytes, bytes]:
    """The notes and outputs of a harness on this machine, built with its compiler or with `tools`."""
    with tempfile.TemporaryDirectory(prefix="edgewright-") as name:
        folder, here = Path(name).resolve(), replace(library, target=TARGETS["host"])
        program = build_program(here, harness, tools or toolchain(here.target), folder, "-O2")
        record = run_program(here, program, data, 3600.0)
        return (folder / TRACE).read_bytes(), record


def run_on_board(
    library: DeploymentLibrary,
    harness: HarnessGlue,
    data: bytes,
    emulator: Emulator | None = None,
    zig: bool | None = None,
    timeout_s: float = 600.0,
) -> BoardRun:
    """The same on the emulated machine of the target."""
    machine, tools = machine_for(library.target), toolchain(library.target, zig)
    emulated = chosen_emulator(machine, emulator)
    flag = Options().optimise_flag(library.target)
    with tempfile.TemporaryDirectory(prefix="edgewright-") as name:
        folder = Path(name).resolve()
        firmware = build_image(library, harness, machine, tools, folder, library_flags(library, flag), 2 * STACK)
        record = run_firmware(library, firmware, machine, emulated, data, timeout_s)
        return BoardRun(
            (folder / TRACE).read_bytes(),
            record.outputs,
            firmware.ram_linked,
            firmware.arenas_linked,
            record.stack,
            record.instructions,
            f"{emulated.value} {machine.name}",
            f"{tools.name} {flag}",
            stamping(machine, emulated),
            firmware.elf.size(".library", ".runtime"),
            firmware.elf.size(".weights"),
        )


@dataclass(frozen=True)
class LibraryTrial:
    """The library with its harness, and what every part should give."""

    library: DeploymentLibrary

    @cached_property
    def inputs(self) -> Mapping[str, tuple[Mapping[str, Array], ...]]:
        references = self.library.code.references.items()
        return {name: tuple(random_inputs(network, seed=n) for n in range(VARIANTS)) for name, network in references}

    def run(self, script: TrialScript | None = None, tools: Toolchain | None = None) -> TrialResult:
        """On this machine, built with its compiler or with `tools`."""
        data = trial_inputs(self.library, script or TrialScript(), self.inputs)
        return self._judged(*run_here(self.library, trial_harness(self.library, VARIANTS), data, tools))

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
        data = trial_inputs(self.library, script or ON_BOARD, self.inputs)
        harness = trial_harness(self.library, VARIANTS, timer)
        chosen = Emulator.QEMU if timer is not None else emulator
        run = run_on_board(self.library, harness, data, chosen, zig, timeout_s)
        return BoardTrial(self._judged(run.notes, run.outputs), *run.figures)

    def _judged(self, notes: bytes, own: bytes) -> TrialResult:
        judge, at = _NoteJudge(self), 0
        for note in read_notes(self.library, notes):
            judge.take(note)
        for buffer in kept_buffers(self.library):
            if own[at : at + buffer.bytes] != own_bytes(buffer.bytes):
                judge.wrong.append(f"buffer '{buffer.name}' was overwritten")
            at += buffer.bytes
        return TrialResult(judge.runs, judge.nested, judge.refused, tuple(judge.wrong))


@dataclass
class _OpenCall:
    """A call of a run function that has not come back."""

    part: Part
    inputs: Mapping[str, Array]
    is_legal: bool | None  # None: not known
    is_started: bool = False  # it has been allowed


class _NoteJudge:
    """Goes through the notes of a trial, and knows what the library should remember."""

    def __init__(self, trial: LibraryTrial) -> None:
        self.trial, self.code = trial, trial.library.code
        self.deployment = self.code.deployment
        self.runs = self.nested = self.refused = 0
        self.wrong: list[str] = []
        self._open: list[_OpenCall] = []  # calls that have not come back
        self._unread: dict[Fifo, set[str]] = {fifo: set() for fifo in self.code.deployment.shared}
        self._values: dict[Fifo, Array] = {}  # the latest frame of each of them
        self._made: dict[tuple[str, int], Mapping[str, Array]] = {}  # what parts made of each frame
        self._done = dict.fromkeys(self.code.index, 0)
        self._known: dict[tuple[str, bytes], Mapping[str, Array]] = {}

    def take(self, note: TrialNote) -> None:
        part = self.code.parts[note.part]
        if note.is_begin:
            for call in self._open:  # a run inside of theirs says that these were allowed
                self._start(call)
            inputs = dict(self.trial.inputs[part.name][note.value])
            for name in inputs.keys() - set(self.code.given(part)[0]):
                inputs[name] = self._handed(part, name, inputs[name])
            self._open.append(_OpenCall(part, inputs, self._is_legal(part)))
            return
        call = self._open.pop()
        if call.is_legal is not None and call.is_legal == bool(note.value):
            said = "refuses network" if call.is_legal else "starts network"
            order = "in a legal order" if call.is_legal else "though what it reads is not there"
            self.wrong.append(f"after {self.runs} runs the library {said} '{part.name}' {order}")
        if note.value:
            self.refused += 1
            return
        self._start(call)
        self.runs += 1
        self.nested += note.depth > 0
        expected, at = self._expected(part, call.inputs), 0
        for name in self.code.given(part)[1]:
            tensor = part.network.tensors[name]
            values = np.frombuffer(note.outputs, tensor.dtype.numpy, tensor.size, at).reshape(tensor.shape)
            if not is_same(values, expected[name]):
                self.wrong.append(f"run {self.runs}: network '{part.name}' computes a wrong '{name}'")
            at += tensor.bytes
        for fifo in self.code.deployment.shared:
            if fifo.source == part.name:
                self._values[fifo], self._unread[fifo] = expected[part.own(fifo)], set(fifo.reading)
        self._made[part.name, self._done[part.name]] = expected
        self._done[part.name] += 1

    def _start(self, call: _OpenCall) -> None:
        """Notes what a run reads as it begins, what it overwrites and what it brings for others."""
        if call.is_started:
            return
        call.is_started, name = True, call.part.name
        for fifo in self.code.deployment.shared:
            self._unread[fifo].discard(name)
            if fifo.writer == name:
                self._unread[fifo] = set(fifo.reading) - {name} if fifo.source == OUTSIDE else set()
                if fifo.source == OUTSIDE:
                    self._values[fifo] = call.inputs[call.part.own(fifo)]

    def _is_legal(self, part: Part) -> bool | None:
        """Whether a call may start that nothing runs beside; None where others do, or queues count frames."""
        if self._open or self.code.deployment.queues:
            return None
        read = [fifo for fifo in self.code.deployment.shared if part.name in fifo.reading and fifo.writer != part.name]
        return all(
            part.name in self._unread[fifo] and not self.deployment.read_before(fifo, part.name) & self._unread[fifo]
            for fifo in read
        )

    def _handed(self, part: Part, tensor: str, default: Array) -> Array:
        """What another part has made; `default` where none has, since the library will refuse the run."""
        fifo = self.deployment.reads[part.name][tensor]
        if fifo.keeps_latest:
            return self._values.get(fifo, default)
        made = self._made.get((fifo.source, self._done[part.name]))
        return default if made is None else made[self.deployment.part_named[fifo.source].own(fifo)]

    def _expected(self, part: Part, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        key = (part.name, b"".join(inputs[name].tobytes() for name in sorted(inputs)))
        if key not in self._known:
            self._known[key] = execute(self.code.references[part.name], inputs)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a library was put through before it is handed over."""

    here: TrialResult
    board: BoardTrial | None
    note: str = ""  # why it did not run on the virtual board


def verify_library(library: DeploymentLibrary, script: TrialScript | None = None) -> Verified:
    """The trials of a library, made before it is handed over; an error where a result is wrong."""
    trial = LibraryTrial(library)
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
            raise EdgewrightError(f"the library fails its check, please report this: {result.wrong[0]}")
    planned = {name: library.code.arenas[memory].bytes for memory, name in library.code.sections.items()}
    if board is not None and (board.ram_linked != sum(library.arenas.values()) or board.arenas_linked != planned):
        raise EdgewrightError(
            f"the library takes {board.ram_linked} bytes of RAM as linked, and {sum(library.arenas.values())} were "
            "planned; please report this"
        )
    return Verified(here, board, note)


def is_same(found: Array, expected: Array) -> bool:
    """Bit by bit for integers; real numbers may be summed up in another order."""
    if found.dtype.kind != "f":
        return found.tobytes() == expected.tobytes()
    scale = float(np.abs(expected).max(initial=0.0)) or 1.0
    return bool(np.allclose(found, expected, rtol=1e-4, atol=1e-5 * scale))
