"""Scenarios that switch at work, on this machine and on the virtual board, compared with each network run alone.

The harness computes frames and requests scenarios at random switch points; the judge knows which scenario may have
computed each result, and what it should be.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...board.machine import EmulatedMachine
from ...board.toolchain import Toolchain
from ...kernels.printing.constants import C_TYPES
from ...network import Array, Tensor, random_inputs
from ...network.kernels import execute
from ...program.switching import SwitchPolicy
from ..firmware.glue import HarnessGlue
from ..firmware.measurement import Emulator
from ..names import arena_names
from .library import DeploymentLibrary
from .switching import SwitchWriter
from .trial import VARIANTS, BoardRun, is_same, run_here, run_on_board

_NOTE = struct.Struct("<5i10I")


@dataclass(frozen=True, slots=True)
class SwitchScript:
    """How much is tried."""

    frames: int = 200  # after one of each scenario
    share: int = 6  # of 256 switch points: those at which a scenario is requested
    seed: int = 1

    @property
    def words(self) -> bytes:
        return struct.pack("<3I", self.seed * 2 + 1 & 0xFFFFFFFF, self.frames, self.share)


ON_BOARD = SwitchScript(frames=40, share=24)  # of a library that is handed over


@dataclass(frozen=True, slots=True)
class Moment:
    """A stamp of the virtual board, and how long the harness itself has run until then."""

    stamp: tuple[int, int] = (0, 0)
    harness: int = 0  # steps of the stamp's low word

    def instructions(self, later: Moment, machine: EmulatedMachine) -> int:
        """Of the library alone, until a later moment."""
        return machine.instructions(self.stamp, later.stamp) - machine.instructions(
            (0, self.harness), (0, later.harness)
        )


@dataclass(frozen=True, slots=True)
class TriedSwitch:
    """A request during a frame, just after a switch point, and the new scenario's first result."""

    old: str
    new: str
    variant: int  # of the input
    requested: Moment
    ended: Moment


@dataclass(frozen=True, slots=True)
class TriedFrame:
    """A frame of one scenario without a request, and its longest wait for a switch point, in steps of stamps."""

    scenario: str
    variant: int  # of the input
    begun: Moment
    ended: Moment
    longest_wait: int


@dataclass(frozen=True, slots=True)
class SwitchTrialResult:
    """How a trial went."""

    frames: int
    switches: tuple[TriedSwitch, ...]  # that were timed
    wrong: tuple[str, ...]
    count: int  # of switches
    quiet: tuple[TriedFrame, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchBoardTrial:
    """How it went on the virtual board, and what the firmware takes there."""

    result: SwitchTrialResult
    run: BoardRun


@dataclass(frozen=True)
class SwitchTrial:
    """The library, and what every scenario should give."""

    library: DeploymentLibrary
    writer: SwitchWriter

    @cached_property
    def inputs(self) -> tuple[tuple[Array, ...], ...]:
        """Of each variant, the inputs in the order of the parameters; the same for all scenarios."""
        first = self.library.code.references[self.library.code.parts[0].name]
        return tuple(tuple(random_inputs(first, seed=n).values()) for n in range(VARIANTS))

    @cached_property
    def expected(self) -> Mapping[tuple[str, int], tuple[Array, ...]]:
        """By scenario and variant."""
        found = {}
        for name, network in self.library.code.references.items():
            for n, values in enumerate(self.inputs):
                results = execute(network, dict(zip(network.inputs, values, strict=True)))
                found[name, n] = tuple(results[x] for x in dict.fromkeys(network.outputs))
        return found

    def data(self, script: SwitchScript) -> bytes:
        """What the harness reads before it begins."""
        count = len(self.inputs[0])
        return script.words + b"".join(values[at].tobytes() for at in range(count) for values in self.inputs)

    def harness(self) -> HarnessGlue:
        part, code = self.library.code.parts[0], self.library.code
        pulled = code.deployment.plans[part.name].pulled
        inputs = [_port(part.network.tensors[name], name in pulled) for name in part.network.inputs]
        outputs = [_port(part.network.tensors[name], False) for name in dict.fromkeys(part.network.outputs)]
        arguments = [
            f"pull_{n}, in_{n}[variant]" if port.row else f"(const void *)in_{n}[variant]"
            for n, port in enumerate(inputs)
        ]
        arguments += [f"(void *)out_{n}[depth]" for n in range(len(outputs))]
        text = code.render(
            "switch_harness.c",
            inputs=inputs,
            outputs=outputs,
            variants=VARIANTS,
            arguments=", ".join(arguments),
            memories=list(arena_names(self.library.arenas).values()),
            policy=self.writer.policy.value,
            has_points=self.writer.has_points,
            start=code.index[self.writer.rules.start],
            count=len(code.parts),
            dwell=self.writer.dwell,
        )
        sizes = [port.room * VARIANTS + 16 for port in inputs] + [2 * port.bytes + 16 for port in outputs]
        return HarnessGlue(text, sum(sizes) + 256)

    def run(self, script: SwitchScript | None = None, tools: Toolchain | None = None) -> SwitchTrialResult:
        """On this machine, built with its compiler or with `tools`. One thread alone: `OVERLAP` then never overlaps."""
        notes, _ = run_here(self.library, self.harness(), self.data(script or SwitchScript()), tools)
        return self.judged(notes)

    def run_on_board(
        self, script: SwitchScript | None = None, emulator: Emulator | None = None, zig: bool | None = None
    ) -> SwitchBoardTrial:
        """On the emulated machine of the target."""
        run = run_on_board(self.library, self.harness(), self.data(script or ON_BOARD), emulator, zig)
        return SwitchBoardTrial(self.judged(run.notes), run)

    def judged(self, notes: bytes) -> SwitchTrialResult:
        names = [part.name for part in self.library.code.parts]
        switches: list[TriedSwitch] = []
        quiet: list[TriedFrame] = []
        wrong: list[str] = []
        frames = at = count = 0
        used = self.writer.rules.start  # before the request of a frame; asked for between frames under `FINISH`
        while at < len(notes):
            depth, variant, wanted, asked, which, *times, wait = _NOTE.unpack_from(notes, at)
            begun, requested, ended = (Moment((times[n], times[n + 1]), times[n + 2]) for n in (0, 3, 6))
            at += _NOTE.size
            frames += 1
            if which < 0:
                wrong.append(f"frame {frames} ended with {which}")
                continue
            is_asked = asked >= 0 and (self.writer.policy is SwitchPolicy.ABORT or depth > 0)
            before = () if depth else (wanted,)
            allowed = {self._final(names[one], variant) for one in (*before, *([asked] if is_asked else ()))}
            if names[which] not in allowed:
                wrong.append(f"frame {frames} is computed by '{names[which]}', and {sorted(allowed)} were wanted")
            for expected in self.expected[names[which], variant]:
                found = np.frombuffer(notes, expected.dtype, expected.size, at).reshape(expected.shape)
                at += expected.nbytes
                if not is_same(found, expected):
                    wrong.append(f"frame {frames}: '{names[which]}' computes something wrong")
            if not self.writer.has_points:
                count += names[wanted] != used
                used = names[wanted]
            if is_asked and asked == which != wanted:
                switches.append(TriedSwitch(names[wanted], names[asked], variant, requested, ended))
            if asked < 0 and which == wanted:
                quiet.append(TriedFrame(names[which], variant, begun, ended, wait))
        return SwitchTrialResult(frames, tuple(switches), tuple(wrong), count + len(switches), tuple(quiet))

    def _final(self, scenario: str, variant: int) -> str:
        """The scenario whose result stands, after cascades."""
        for rule in self.writer.rules.cascades:
            if rule.scenario == scenario and not self._margin(scenario, variant) >= rule.margin_below:
                return self._final(rule.request, variant)
        return scenario

    def _margin(self, scenario: str, variant: int) -> float:
        network = self.library.deployment.part_named[scenario].network
        quant, scores = network.tensors[network.outputs[0]].quant, self.expected[scenario, variant][0].ravel()
        if quant is not None:
            scores = scores.astype(np.int64)
        second, best = np.sort(scores)[-2:]
        return float(best - second) * (1.0 if quant is None else quant.scale[0])


@dataclass(frozen=True, slots=True)
class _FramePort:
    """An input or output in the harness."""

    bytes: int
    ctype: str
    row: int  # bytes of a row where an input is pulled; else 0

    @property
    def room(self) -> int:
        """Bytes from one to the next, each 16-byte aligned."""
        return -(-self.bytes // 16) * 16


def _port(tensor: Tensor, is_pulled: bool) -> _FramePort:
    return _FramePort(tensor.bytes, C_TYPES[tensor.dtype.value], tensor.strides[1] if is_pulled else 0)
