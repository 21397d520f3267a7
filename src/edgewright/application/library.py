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
from ..platform.target import Target
from ..program import Buffer, Plan
from ..program.deployment import Deployment
from ..program.options import Options
from .app_ends import c_name, polled_rows, resident_ends
from .app_rings import row_outlet
from .app_source import AppWriter
from .c_names import check_names
from .conflicts import BufferUse, JointBuffer
from .deploying import deployment_of
from .description import PreemptionPoints
from .joint import JointLayout, with_buffers
from .members import AppMember

MOST_MEMBERS = 32  # bits of a word
OTHER = "other: "  # before the name of a buffer that belongs to somebody else


@dataclass(frozen=True)
class AppLibrary:
    """The files of the application's library, and the libraries of its members that are part of it."""

    layout: JointLayout
    deployment: Deployment  # as it was judged
    target: Target
    members: Mapping[str, Library]
    files: Mapping[str, str | bytes]
    weight_bytes: int
    state_bytes: int  # of RAM beside the arena: who runs, and what waits

    @property
    def name(self) -> str:
        return self.layout.application.file.prefix

    @property
    def arenas(self) -> Mapping[str, int]:
        """Bytes of each memory, as they are linked."""
        first = next(iter(self.layout.arenas))
        return {**self.layout.arenas, first: self.layout.arenas[first] + self.state_bytes}

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for name in self.files if name.endswith((".c", ".S")))


def emit_application(layout: JointLayout) -> AppLibrary:
    """The library that carries all plans out in one arena, which are judged before anything is printed."""
    application = layout.application
    if len(application.members) > MOST_MEMBERS:
        raise InputError(f"{len(application.members)} networks and partitions are too many: at most {MOST_MEMBERS}")
    if (handed := sum(len(fifo.readers) for fifo in application.shared)) > MOST_MEMBERS:
        raise InputError(f"{handed} inputs that other networks hand over are too many: at most {MOST_MEMBERS}")
    name = application.file.prefix
    shared = SharedCode.of_networks(name, [member.network for member in application.members])
    options = Options()
    plans = selected_plans(layout)
    selected, deployment = replace(layout, plans=plans), deployment_of(layout, plans)
    libraries: dict[str, Library] = {}
    for number, member in enumerate(application.members):
        probe = f"{name}_at({number}, stage)" if layout.problem.relations.may_be_interrupted(member.name) else ""
        rows = frozenset(polled_rows(layout, member.name))
        outlet = row_outlet(name, layout, member.name)
        row = f"{name}_at_row({number}, stage)"
        share = LibraryShare(shared, probe, resident_ends(layout, member), row, rows, outlet)
        libraries[member.name] = emit(
            plans[member.name], application.target, member.network, c_name(member), options, share
        )
    writer = AppWriter(selected, libraries)
    files: dict[str, str | bytes] = {f"{name}.h": writer.header(), f"{name}.c": writer.source()}
    if writer.gate.is_polled:
        files[f"{name}_probe.h"] = writer.probe_header()
    for library in libraries.values():
        files |= library.files
    files |= shared.files()
    check_names(writer.pieces(files))
    state = 4 * (sum(writer.gate.words.values()) + writer.rings.words)
    return AppLibrary(selected, deployment, application.target, libraries, files, shared.constants.bytes, state)


def selected_plans(layout: JointLayout) -> Mapping[str, Plan]:
    """The plans of all members with kernels selected."""
    plans: dict[str, Plan] = {}
    for member in layout.application.members:
        plans[member.name] = with_scratch(layout, member, Options(), plans)
    return plans


def with_scratch(layout: JointLayout, member: AppMember, options: Options, selected: Mapping[str, Plan]) -> Plan:
    """The member's plan with kernels selected, whose scratch lies where no other network keeps anything at that time.

    `selected` are plans that have theirs; what runs at the same time shares none.
    """
    plan = layout.plans[member.name]
    others = (*_in_the_way(layout, member.name, plan), *_scratch_beside(layout, member.name, plan, selected))
    facts = NetworkFacts(plan.network, layout.application.target, options)
    chosen = select(with_buffers(plan, (*plan.buffers, *others)), facts)
    return with_buffers(chosen, tuple(b for b in chosen.buffers if not b.name.startswith(OTHER)))


def _scratch_beside(layout: JointLayout, member: str, plan: Plan, selected: Mapping[str, Plan]) -> Iterator[Buffer]:
    """Scratch of the networks that may run at the same time as the member."""
    last, relations = max(0, len(plan.program.stages) - 1), layout.problem.relations
    for name, other in selected.items():
        planned = {buffer.name for buffer in layout.plans[name].buffers}
        preemptions = (relations.preemptions.get(pair) for pair in ((name, member), (member, name)))
        is_nested = any(one is not None and one.points is PreemptionPoints.ANYWHERE for one in preemptions)
        for buffer in other.buffers if is_nested or relations.are_parallel(name, member) else ():
            if buffer.name not in planned:
                yield replace(buffer, name=f"{OTHER}{name} {buffer.name}", first=0, last=last)


def _in_the_way(layout: JointLayout, member: str, plan: Plan) -> Iterator[Buffer]:
    """Buffers of other networks that may be in use during a stage of this plan."""
    for other in layout.buffers:
        if other.fifo is None and any(use.member == member for use in other.uses):
            continue
        for stage in range(len(plan.program.stages)):
            here = JointBuffer("here", 0, (BufferUse(member, "", stage, stage),))
            if any(True for _ in layout.problem.causes(here, other)):
                at, home = layout.at(other.name), layout.home(other.name)
                yield Buffer(f"{OTHER}{other.name} {stage}", other.size, at, stage, stage, home)
