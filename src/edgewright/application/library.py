"""The C library of an application: its plans with kernels selected, printed as the deployment that they come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from ..emit.deployment import DeploymentLibrary, LibraryNames, emit_deployment
from ..emit.names import safe_prefix
from ..kernels.select import select
from ..kernels.sites import NetworkFacts
from ..program import Buffer, Plan
from ..program.options import Options
from .conflicts import BufferUse, JointBuffer
from .deploying import deployment_of
from .description import PreemptionPoints
from .joint import JointLayout, with_buffers
from .members import Application, AppMember

OTHER = "other: "  # before the name of a buffer that belongs to somebody else


@dataclass(frozen=True)
class AppLibrary(DeploymentLibrary):
    """The library of an application, with the layout that it was printed from."""

    layout: JointLayout


def emit_application(layout: JointLayout) -> AppLibrary:
    """The library that carries all plans out in one arena, which are judged before anything is printed."""
    plans = selected_plans(layout)
    application = layout.application
    library = emit_deployment(deployment_of(layout, plans), application.target, _library_names(application))
    own = {field.name: getattr(library, field.name) for field in fields(library)}
    return AppLibrary(**own, layout=replace(layout, plans=plans))


def _library_names(application: Application) -> LibraryNames:
    """What the C calls its parts; partitions are numbered."""
    file = application.file
    index = {entry.name: n for n, entry in enumerate(file.networks)}
    keys = {member.name: f"network[{index[member.owner]}].prefix" for member in application.members}
    keys |= {buffer.name: f"buffer[{n}].name" for n, buffer in enumerate(file.buffers)}
    parts = {
        member.name: safe_prefix(
            (member.entry.prefix or member.owner) + member.name.removeprefix(member.owner).replace(".", "_")
        )
        for member in application.members
    }
    return LibraryNames(file.prefix, parts, {"": "name", **keys})


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
