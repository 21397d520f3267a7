"""One C library for an application: every network in the common arena, kernels and weights stored once.

The networks' own files are those of `emit`, and what is around them is written by `app_source`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..emit.library import Library, LibraryShare, SharedCode, emit
from ..errors import InputError
from ..kernels.select import select
from ..kernels.sites import NetworkFacts
from ..memory.joint.conflicts import BufferUse, JointBuffer
from ..memory.joint.layout import JointLayout, with_buffers
from ..platform.target import Target
from ..program import Buffer, Plan
from ..program.deployment import Deployment
from ..program.deployment_check import checked_deployment
from ..program.options import Options
from .app_ends import c_name, polled_rows, resident_ends
from .app_rings import row_outlet
from .app_source import AppWriter
from .c_names import check_names
from .draft import Application

MOST_MEMBERS = 32  # bits of a word
OTHER = "other: "  # before the name of a buffer that belongs to somebody else


@dataclass(frozen=True)
class AppLibrary:
    """The files of the application's library, and the libraries of its members that are part of it."""

    application: Application
    layout: JointLayout
    deployment: Deployment  # with kernels selected, as it was judged
    target: Target
    members: Mapping[str, Library]
    files: Mapping[str, str | bytes]
    weight_bytes: int
    state_bytes: int  # of RAM beside the arena: who runs, and what waits

    @property
    def name(self) -> str:
        return self.application.file.prefix

    @property
    def arenas(self) -> Mapping[str, int]:
        """Bytes of each memory, as they are linked."""
        first = next(iter(self.layout.arenas))
        return {**self.layout.arenas, first: self.layout.arenas[first] + self.state_bytes}

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for name in self.files if name.endswith((".c", ".S")))


def emit_application(application: Application, layout: JointLayout) -> AppLibrary:
    """The library that carries all plans out in one arena, which are judged before anything is printed."""
    if len(layout.deployment.parts) > MOST_MEMBERS:
        raise InputError(f"{len(layout.deployment.parts)} networks and partitions are too many: at most {MOST_MEMBERS}")
    if (handed := sum(len(fifo.readers) for fifo in layout.deployment.shared)) > MOST_MEMBERS:
        raise InputError(f"{handed} inputs that other networks hand over are too many: at most {MOST_MEMBERS}")
    name = application.file.prefix
    shared = SharedCode.called(name)
    options = Options()
    deployment = checked_deployment(with_selected_plans(layout, application.target))
    libraries: dict[str, Library] = {}
    for number, member in enumerate(application.deployment.parts):
        probe = f"{name}_at({number}, stage)" if deployment.may_be_interrupted(member.name) else ""
        rows = frozenset(polled_rows(deployment, member.name))
        outlet = row_outlet(name, deployment, member.name)
        own, row = c_name(application, member), f"{name}_at_row({number}, stage)"
        share = LibraryShare(shared, probe, resident_ends(deployment, member), row, rows, outlet)
        libraries[member.name] = emit(
            deployment.plans[member.name], application.target, member.network, own, options, share
        )
    writer = AppWriter(application, layout, deployment, libraries)
    files: dict[str, str | bytes] = {f"{name}.h": writer.header(), f"{name}.c": writer.source()}
    if writer.gate.is_polled:
        files[f"{name}_probe.h"] = writer.probe_header()
    for library in libraries.values():
        files |= library.files
    files |= shared.files()
    check_names(writer.pieces(files))
    state = 4 * (sum(writer.gate.words.values()) + writer.rings.words)
    return AppLibrary(
        application, layout, deployment, application.target, libraries, files, shared.constants.bytes, state
    )


def with_selected_plans(layout: JointLayout, target: Target) -> Deployment:
    """The deployment with kernels selected for the target."""
    plans: dict[str, Plan] = {}
    for part in layout.deployment.parts:
        plans[part.name] = with_scratch(layout, part.name, target, plans)
    return layout.deployment.with_plans(plans)


def with_scratch(layout: JointLayout, part: str, target: Target, selected: Mapping[str, Plan]) -> Plan:
    """The part's plan with kernels selected, whose scratch lies where no other part keeps anything at that time.

    `selected` are plans that have theirs; what runs at the same time shares none.
    """
    plan = layout.plans[part]
    others = (*_in_the_way(layout, part, plan), *_scratch_beside(layout.deployment, part, plan, selected))
    chosen = select(with_buffers(plan, (*plan.buffers, *others)), NetworkFacts(plan.network, target, Options()))
    return with_buffers(chosen, tuple(b for b in chosen.buffers if not b.name.startswith(OTHER)))


def _scratch_beside(deployment: Deployment, part: str, plan: Plan, selected: Mapping[str, Plan]) -> Iterator[Buffer]:
    """Scratch of the parts that may run at the same time."""
    last = max(0, len(plan.program.stages) - 1)
    for name, other in selected.items():
        planned = deployment.plans[name].buffer_named
        preemption = deployment.preemption(name, part) or deployment.preemption(part, name)
        is_nested = preemption is not None and preemption.points is None
        for buffer in other.buffers if is_nested or deployment.are_parallel(name, part) else ():
            if buffer.name not in planned:
                yield replace(buffer, name=f"{OTHER}{name} {buffer.name}", first=0, last=last)


def _in_the_way(layout: JointLayout, part: str, plan: Plan) -> Iterator[Buffer]:
    """Buffers of other parts that may be in use during a stage of this plan."""
    for other in layout.buffers:
        if other.fifo is None and any(use.part == part for use in other.uses):
            continue
        for stage in range(len(plan.program.stages)):
            here = JointBuffer("here", 0, (BufferUse(part, "", stage, stage),))
            if any(True for _ in layout.problem.causes(here, other)):
                at, home = layout.at(other.name), layout.home(other.name)
                yield Buffer(f"{OTHER}{other.name} {stage}", other.size, at, stage, stage, home)
