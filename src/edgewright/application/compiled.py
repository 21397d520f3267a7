"""A compiled application: its library, its figures, and every file that is handed over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from .. import text
from ..errors import Infeasible
from .library import AppLibrary, emit_application
from .outcome import AppOutcome, too_much_flash
from .trial import TrialResult, verify_application

MAKEFILE = """\
# Builds lib{name}.a with any C99 compiler: make CC=arm-none-eabi-gcc CFLAGS="-mcpu=cortex-m4 -mthumb -Os"
CFLAGS ?= -O2
SOURCES = {sources}

lib{name}.a: $(patsubst %,build/%.o,$(SOURCES))
\t$(AR) rcs $@ $^

build/%.o: src/% $(wildcard src/*.h)
\t@mkdir -p build
\t$(CC) -std=c99 $(CFLAGS) -ffp-contract=off -fno-strict-aliasing -Isrc -c $< -o $@

clean:
\trm -rf build lib{name}.a

.PHONY: clean
"""


@dataclass(frozen=True)
class CompiledApplication:
    """What `app --compile` hands over."""

    outcome: AppOutcome
    library: AppLibrary
    trial: TrialResult | None  # None: nothing was run

    @property
    def files(self) -> Mapping[str, str | bytes]:
        """By path."""
        report = json.dumps({**self.outcome.to_dict(), **self.to_dict()}, indent=1) + "\n"
        makefile = MAKEFILE.format(name=self.library.name, sources=" ".join(self.library.sources))
        sources = {f"src/{name}": content for name, content in self.library.files.items()}
        return {**sources, "Makefile": makefile, "report.json": report}

    def to_dict(self) -> dict[str, object]:
        trial = self.trial
        return {
            "packed_bytes": self.library.weight_bytes,
            "verified": trial is not None,
            "runs": trial.runs if trial else 0,
            "nested_runs": trial.nested if trial else 0,
        }

    @property
    def sentence(self) -> str:
        """How far it was checked, for people."""
        figures = f"{text.size(self.outcome.peak_bytes)} of RAM, {text.size(self.library.weight_bytes)} of weights"
        if self.trial is None:
            return f"{figures}; nothing was run"
        inside = f", {self.trial.nested} of them inside another" if self.trial.nested else ""
        return f"{figures}; {text.plural(self.trial.runs, 'run')} on this machine{inside}, all right"


def compile_outcome(outcome: AppOutcome, verify: bool = True) -> CompiledApplication:
    """The library of a joint plan, tried on this machine; an error where its weights do not fit the board."""
    assert outcome.joint is not None, "only joint plans are compiled"
    library = emit_application(outcome.joint.layout)
    application = library.layout.application
    flash = application.file.limits.flash or (application.board.flash_size if application.board else None)
    if flash is not None and library.weight_bytes > flash:
        raise Infeasible(f"does not fit: {too_much_flash(application, flash)}")
    return CompiledApplication(outcome, library, verify_application(library) if verify else None)
