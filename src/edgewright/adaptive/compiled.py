"""The result of `adapt --compile`: the library, its trials, and all files of the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version

from .. import text
from ..board.machine import machine_for
from ..board.toolchain import toolchain
from ..emit.deployment import DeploymentLibrary
from ..emit.deployment.switch_packaging import switching_package
from ..emit.deployment.switch_trial import SwitchBoardTrial, SwitchTrial, SwitchTrialResult
from ..emit.firmware.measurement import chosen_emulator
from ..errors import EdgewrightError, Infeasible
from ..platform.target import Architecture
from ..program.switching import SwitchPolicy
from .deploying import SwitchingApplication
from .front import SwitchLayout
from .live_run import without_rules
from .requests import RandomRequests
from .result_check import FrameSource, ResultCheck
from .runtime import Adaptive

OVERLAPPING_FRAMES = 300  # tried with two threads


@dataclass(frozen=True)
class VerifiedSwitching:
    """The trials of a library."""

    here: SwitchTrialResult
    board: SwitchBoardTrial | None
    note: str = ""  # why it did not run on the virtual board


@dataclass(frozen=True)
class CompiledSwitching:
    """The result of `adapt --compile`."""

    switching: SwitchingApplication
    layout: SwitchLayout
    library: DeploymentLibrary
    trial: VerifiedSwitching | None  # None: nothing was run

    @cached_property
    def files(self) -> Mapping[str, str | bytes]:
        """The files of the package by path."""
        application, writer = self.switching.application, self.switching.writer(self.library, self.layout)
        board = application.board.name if application.board else None
        files = switching_package(self.library, writer, version("edgewright"), application.file.name, board)
        return {**files, "report.json": json.dumps(self.to_dict(), indent=1) + "\n"}

    @property
    def ram_bytes(self) -> int:
        """Arena and state."""
        return self.layout.arena_bytes + self.library.state_bytes

    def to_dict(self) -> dict[str, object]:
        layout, trial = self.layout, self.trial
        found: dict[str, object] = {
            "policy": layout.policy.value,
            "scenarios": list(layout.scenarios),
            "arena_bytes": layout.arena_bytes,
            "bound_bytes": layout.bound_bytes,
            "is_least": layout.is_least,
            "state_bytes": self.library.state_bytes,
            "ram_bytes": self.ram_bytes,
            "weights_bytes": self.library.weight_bytes,
            "worst_delay": layout.worst_delay,
            "switches": [{"from": old, "to": new, "worst_delay": delay} for (old, new), delay in layout.delays.items()],
            "verified": trial is not None,
            "tried_frames": trial.here.frames if trial else 0,
            "tried_switches": trial.here.count if trial else 0,
        }
        if trial is not None and trial.note:
            found["note"] = trial.note
        if trial is not None and trial.board is not None:
            board, run = trial.board, trial.board.run
            found["board"] = {
                "frames": board.result.frames,
                "switches": board.result.count,
                "ram_linked": run.ram_linked,
                "arenas_linked": dict(run.arenas_linked),
                "stack_bytes": run.stack_bytes,
                "emulator": run.emulator,
                "compiler": run.compiler,
            }
        return found

    @property
    def sentence(self) -> str:
        """A sentence about the checks that were made."""
        figures = (
            f"{text.size(self.layout.arena_bytes)} of RAM and {self.library.state_bytes} B of state, "
            f"{text.size(self.library.weight_bytes)} of weights"
        )
        if self.trial is None:
            return f"{figures}; nothing was run"
        where = [(self.trial.here, "on this machine")]
        if self.trial.board is not None:
            where.append((self.trial.board.result, f"on the virtual board ({self.trial.board.run.emulator})"))
        said = [
            f"{text.plural(result.frames, 'frame')} {place} with {text.plural(result.count, 'switch')}"
            for result, place in where
        ]
        note = f"; {self.trial.note}" if self.trial.note else ""
        return f"{figures}; {' and '.join(said)}, all right{note}"


def compile_switching(switching: SwitchingApplication, verify: bool = True) -> CompiledSwitching:
    """The library of the chosen layout, tried here and on the virtual board."""
    layout = switching.layout
    library = switching.library(layout)
    application = switching.application
    flash = application.file.limits.flash or (application.board.flash_size if application.board else None)
    if flash is not None and library.weight_bytes > flash:
        raise Infeasible(
            f"does not fit: the weights of all scenarios take {text.size(library.weight_bytes)}, and there are "
            f"{text.size(flash)} of flash; leave a scenario out, or make scenarios slices of one network"
        )
    return CompiledSwitching(switching, layout, library, verify_switching(switching, library) if verify else None)


def verify_switching(switching: SwitchingApplication, library: DeploymentLibrary) -> VerifiedSwitching:
    """The trials of a library; an error if a result is wrong."""
    trial = SwitchTrial(library, switching.writer(library, switching.layout))
    is_overlap = switching.policy is SwitchPolicy.OVERLAP
    here = tried_in_threads(switching) if is_overlap else trial.run()
    board, note = None, ""
    if library.target.architecture in (Architecture.CORTEX_M, Architecture.RV32):
        try:
            machine = machine_for(library.target)
            toolchain(library.target)
            chosen_emulator(machine)
        except EdgewrightError as error:
            note = f"not run on the virtual board: {error}"
        else:
            board = trial.run_on_board()  # `OVERLAP` on one core: frames follow each other
    for result in (here, *([board.result] if board else ())):
        if result.wrong:
            raise EdgewrightError(f"the library fails its check, please report this: {result.wrong[0]}")
    if board is not None:
        check_linked(library, board)
    return VerifiedSwitching(here, board, note)


def check_linked(library: DeploymentLibrary, board: SwitchBoardTrial) -> None:
    """Raises an error if the linked RAM differs from arena and state."""
    planned = {name: library.code.arenas[memory].bytes for memory, name in library.code.sections.items()}
    if board.run.ram_linked != sum(library.arenas.values()) or board.run.arenas_linked != planned:
        raise EdgewrightError(
            f"the library takes {board.run.ram_linked} bytes of RAM as linked, and {sum(library.arenas.values())} were "
            "planned; please report this"
        )


def tried_in_threads(switching: SwitchingApplication, frames: int = OVERLAPPING_FRAMES) -> SwitchTrialResult:
    """Runs frames with random requests in two threads and a requesting one; frames of the cascade are not
    distinguished."""
    source = FrameSource(switching.application)
    check = ResultCheck(source)
    requests, switches = RandomRequests(), 0
    with Adaptive(without_rules(switching), switching.layout) as running, requests.feeding(running):
        before = running.current
        for result in running(source.frames(frames)):
            check.take(result)
            switches += result.scenario != before
            before = result.scenario
        check.end(frames)
    wrong = () if check.is_right else (f"of {check.frames} frames: {check.said}",)
    return SwitchTrialResult(check.frames, (), wrong, switches)
