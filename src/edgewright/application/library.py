"""The C library of an application: its plans with kernels selected, printed as the resulting deployment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from ..emit.deployment import DeploymentLibrary, LibraryNames, emit_deployment
from ..emit.names import safe_prefix
from ..kernels.select import select
from ..kernels.sites import NetworkFacts
from ..memory.joint.conflicts import BufferUse, JointBuffer
from ..memory.joint.layout import JointLayout, with_buffers
from ..platform.target import Target
from ..program import Buffer, Plan
from ..program.deployment import Deployment
from ..program.deployment_check import checked_deployment
from ..program.options import Options
from .draft import Application

OTHER = "other: "  # prefix of buffers that belong to other parts


@dataclass(frozen=True)
class AppLibrary(DeploymentLibrary):
    """The library of an application, with its layout."""

    application: Application
    layout: JointLayout


def emit_application(application: Application, layout: JointLayout) -> AppLibrary:
    """The library for all plans in one arena, which are checked before anything is printed."""
    deployment = checked_deployment(with_selected_plans(layout, application.target))
    library = emit_deployment(deployment, application.target, _library_names(application))
    own = {field.name: getattr(library, field.name) for field in fields(library)}
    return AppLibrary(**own, application=application, layout=layout)


def _library_names(application: Application) -> LibraryNames:
    """The parts' names in C; partitions are numbered."""
    file = application.file
    index = {entry.name: n for n, entry in enumerate(file.networks)}
    prefixes, keys = {}, {buffer.name: f"buffer[{n}].name" for n, buffer in enumerate(file.buffers)}
    for part in application.deployment.parts:
        own = file.networks[index[part.owner]].prefix or part.owner
        prefixes[part.name] = safe_prefix(own + part.name.removeprefix(part.owner).replace(".", "_"))
        keys[part.name] = f"network[{index[part.owner]}].prefix"
    return LibraryNames(file.prefix, prefixes, {"": "name", **keys})


def with_selected_plans(layout: JointLayout, target: Target) -> Deployment:
    """The deployment with kernels selected for the target."""
    plans: dict[str, Plan] = {}
    for part in layout.deployment.parts:
        plans[part.name] = with_scratch(layout, part.name, target, plans)
    return layout.deployment.with_plans(plans)


def with_scratch(layout: JointLayout, part: str, target: Target, selected: Mapping[str, Plan]) -> Plan:
    """The part's plan with kernels selected; their scratch avoids bytes that other parts use at the same time.

    `selected` are plans that already have scratch; parts that run at the same time share none.
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
