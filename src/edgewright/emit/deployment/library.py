"""One C library for a deployment: every part in the common arenas, kernels and weights stored once.

The parts' own files are those of `emit`, and what is around them is written by `source`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...kernels.closed_plan import ClosedPlan
from ...platform.target import Target
from ...program.deployment import Deployment, Part
from ..library import Library, LibraryDraft, LibraryShare, SharedCode, drafted, with_patterns
from .c_deployment import CDeployment, checked_for_c
from .calls import PartCall
from .names import LibraryNames, check_names
from .source import DeploymentWriter


@dataclass(frozen=True)
class DeploymentLibrary:
    """The files of a deployment's library, and the libraries of its parts that are among them."""

    code: CDeployment
    target: Target
    parts: Mapping[str, Library]
    files: Mapping[str, str | bytes]
    weight_bytes: int
    state_bytes: int  # of RAM beside the arenas: who runs, and what waits

    @property
    def name(self) -> str:
        return self.code.name

    @property
    def deployment(self) -> Deployment:
        return self.code.deployment

    @property
    def arenas(self) -> Mapping[str, int]:
        """Bytes of each memory, as they are linked."""
        sizes = {memory: layout.bytes for memory, layout in self.code.arenas.items()}
        first = next(iter(sizes))
        return {**sizes, first: sizes[first] + self.state_bytes}

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for name in self.files if name.endswith((".c", ".S")))


def emit_deployment(deployment: Deployment, target: Target, names: LibraryNames) -> DeploymentLibrary:
    """The library that carries out a deployment which was judged, and whose plans have kernels selected."""
    code = checked_for_c(CDeployment(deployment, names))
    shared = SharedCode.of_networks(code.name, [part.network for part in code.parts])
    emitted, patterns = with_patterns([_drafted(code, part, target, shared) for part in code.parts], shared)
    libraries = {part.name: library for part, library in zip(code.parts, emitted, strict=True)}
    writer = DeploymentWriter(code)
    files: dict[str, str | bytes] = {f"{code.name}.h": writer.header(), f"{code.name}.c": writer.source()}
    if code.is_polled:
        files[f"{code.name}_probe.h"] = writer.probe_header()
    for library in libraries.values():
        files |= library.files
    common = shared.files() | patterns.files()
    files |= common
    check_names(writer.pieces(libraries, common))
    return DeploymentLibrary(code, target, libraries, files, shared.constants.bytes, 4 * writer.state_words)


def _drafted(code: CDeployment, part: Part, target: Target, shared: SharedCode) -> LibraryDraft:
    number = code.index[part.name]
    share = LibraryShare(
        shared,
        probe=f"{code.name}_at({number}, stage)" if code.deployment.may_be_interrupted(part.name) else "",
        resident=code.resident(part),
        row_probe=f"{code.name}_at_row({number}, stage)",
        rows=frozenset(code.turns(part.name)),
        outlet=PartCall(code, part).outlet,
        number=number,
        step_probe=f"{code.name}_at(own, stage)" if code.is_polled else "",
    )
    closed = ClosedPlan.of(code.deployment.plans[part.name], target, part.network, nesting=shared.nesting)
    return drafted(closed, code.prefix(part), share)
