"""A compiled application: its library, its figures, and all files of the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from .. import text
from ..emit.deployment.packaging import deployment_package
from ..emit.deployment.trial import Verified, verify_library
from ..errors import Infeasible
from .library import AppLibrary, emit_application
from .outcome import AppOutcome, too_much_flash


@dataclass(frozen=True)
class CompiledApplication:
    """The result of `app --compile`."""

    outcome: AppOutcome
    library: AppLibrary
    trial: Verified | None  # None: nothing was run

    @property
    def files(self) -> Mapping[str, str | bytes]:
        """The files of the package by path."""
        report = json.dumps({**self.outcome.to_dict(), **self.to_dict()}, indent=1) + "\n"
        return {**application_package(self.library, version("edgewright")), "report.json": report}

    @property
    def stack_bytes(self) -> int | None:
        """The most stack used by nested runs on the virtual board; None if none was run."""
        return self.trial.board.stack_bytes if self.trial is not None and self.trial.board is not None else None

    @property
    def ram_bytes(self) -> int:
        """Arena, state, and the stack if it was measured."""
        return self.outcome.peak_bytes + self.library.state_bytes + (self.stack_bytes or 0)

    def to_dict(self) -> dict[str, object]:
        trial, board = self.trial, self.trial.board if self.trial else None
        record: dict[str, object] = {
            "packed_bytes": self.library.weight_bytes,
            "state_bytes": self.library.state_bytes,
            "stack_bytes": self.stack_bytes,
            "ram_bytes": self.ram_bytes,
            "verified": trial is not None,
            "runs": trial.here.runs if trial else 0,
            "nested_runs": trial.here.nested if trial else 0,
        }
        if board is not None:
            record["board"] = {
                "runs": board.result.runs,
                "nested_runs": board.result.nested,
                "ram_linked": board.ram_linked,
                "arenas_linked": dict(board.arenas_linked),
                "stack_bytes": board.stack_bytes,
                "emulator": board.emulator,
                "compiler": board.compiler,
            }
        return record

    @property
    def sentence(self) -> str:
        """A sentence about the checks that were made."""
        figures = (
            f"{text.size(self.outcome.peak_bytes)} of RAM and {self.library.state_bytes} B of state, "
            f"{text.size(self.library.weight_bytes)} of weights"
        )
        if self.trial is None:
            return f"{figures}; nothing was run"
        where = [(self.trial.here, "on this machine")]
        if self.trial.board is not None:
            where.append((self.trial.board.result, f"on the virtual board ({self.trial.board.emulator})"))
        runs = [
            f"{text.plural(result.runs, 'run')} {place}"
            + (f", {result.nested} of them inside another" if result.nested else "")
            for result, place in where
        ]
        note = f"; {self.trial.note}" if self.trial.note else ""
        return f"{figures}; {' and '.join(runs)}, all right{note}"


def application_package(library: AppLibrary, edgewright: str) -> dict[str, str | bytes]:
    """The files of the application's package except the report, by path."""
    application = library.application
    return deployment_package(
        library, edgewright, application.file.name, application.board.name if application.board else None
    )


def compile_outcome(outcome: AppOutcome, verify: bool = True) -> CompiledApplication:
    """The library of a joint plan, tried here and on the virtual board; an error if its weights do not fit."""
    assert outcome.joint is not None, "only joint plans are compiled"
    application = outcome.application
    library = emit_application(application, outcome.joint.layout)
    flash = application.file.limits.flash or (application.board.flash_size if application.board else None)
    if flash is not None and library.weight_bytes > flash:
        raise Infeasible(f"does not fit: {too_much_flash(application, flash)}")
    return CompiledApplication(outcome, library, verify_library(library) if verify else None)
