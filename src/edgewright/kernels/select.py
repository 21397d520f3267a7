"""Kernel selection: each call of a plan gets the first offer whose scratch is free while the call runs.

Scratch is placed after the layout, in memory that is free, so it never raises the peak. Some kernels pay only where
their code is linked anyway, so a second pass takes into account what the first has selected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import Unsupported
from ..network import Network
from ..platform.target import Target
from ..program import Buffer, BufferKind, Deployment, Plan
from ..program.lower import calls, lower
from ..program.options import Options
from ..program.selection import CallKey, CallKind, Selection
from .catalogue import kernels_for
from .closed_plan import ClosedPlan, facts_of
from .kernel import Kernel, Offer
from .site import Site
from .sites import NetworkFacts, Sites
from .window import round_up

APART = 64  # the scratch of a lane is a multiple of a cache line, 64 bytes


def select(plan: Plan, facts: NetworkFacts, preferred: Mapping[str, str] | None = None) -> Plan:
    """The plan with a kernel for every call, and memory for its scratch.

    `preferred` has kernels by layer that are taken where they can be, as those which read weights that are stored.
    """
    plan, preferred = _unselected(plan), preferred or {}
    sites, linked_kernels = Sites(plan, facts), frozenset[str]()
    for _ in range(2):
        chosen = [_stage(sites, index, linked_kernels, preferred) for index in range(len(plan.program.stages))]
        linked_kernels = frozenset(selection.kernel for stage in chosen for selection in stage.selections.values())
    kept = [buffer for buffer in plan.buffers if buffer.kind is not BufferKind.ROOM]
    scratch = [stage.scratch for stage in chosen if stage.scratch is not None]
    found = replace(
        plan,
        buffers=(*kept, *scratch),
        selections={key: selection for stage in chosen for key, selection in stage.selections.items()},
        target=facts.target,
        options=facts.options.of_selection,
        packed=(),
        linked=None,
    )
    return replace(found, peak_bytes=sum(found.arenas.values()))


def close_plan(
    plan: Plan, target: Target, network: Network | None = None, options: Options | None = None
) -> ClosedPlan:
    """The plan with a kernel for every call; `network` brings the weights when the plan came from a file.

    Kernels that were selected for this target by these options are kept; otherwise all are selected again.
    """
    if plan.is_selected_for(target, options or Options()):
        return ClosedPlan.of(plan, target, network, options)
    facts = facts_of(plan, target, network, options)
    return ClosedPlan(select(plan, facts), facts)


def close_deployment(deployment: Deployment, target: Target) -> Deployment:
    """The deployment with a kernel for every call of its plans."""
    parts = (
        replace(part, plan=close_plan(part.plan, target, part.network).plan) if part.plan else part
        for part in deployment.parts
    )
    return replace(deployment, parts=tuple(parts))


def _unselected(plan: Plan) -> Plan:
    """The plan before any kernel was selected: without the scratch of those that were."""
    kept = tuple(buffer for buffer in plan.buffers if buffer.kind is not BufferKind.KERNELS)
    return replace(plan, buffers=kept, selections={}) if plan.selections else plan


@dataclass(frozen=True)
class _Chosen:
    """The kernels of a stage, and the memory that is scratch for all of them, one after the other."""

    selections: Mapping[CallKey, Selection]
    scratch: Buffer | None


def _stage(sites: Sites, index: int, linked_kernels: frozenset[str], preferred: Mapping[str, str]) -> _Chosen:
    plan, stage = sites.plan, sites.plan.program.stages[index]
    lanes = stage.schedule.lanes
    memory, offset, gap = plan.largest_gap(index)
    room = gap // lanes // APART * APART if lanes > 1 else gap
    kind = BufferKind.KERNELS
    name, most = kind.name_for(stage.name), 0
    chosen: dict[CallKey, Selection] = {}
    for call, loops in calls(lower(plan, stage)):
        kernel, offer = first_offer(
            sites.site(call, loops, linked_kernels), call.kind, room, preferred.get(call.layer, "")
        )
        in_arena = 0 < offer.scratch <= room
        most = max(most, offer.scratch if in_arena else 0)
        chosen[call.key(index)] = Selection(kernel.name, offer, name if in_arena else None)
    size = lanes * round_up(most, APART) if lanes > 1 else most
    scratch = Buffer(name, size, offset, index, index, memory, lanes, kind, stage.name) if most else None
    return _Chosen(chosen, scratch)


def first_offer(site: Site, kind: CallKind, room: int, preferred: str = "") -> tuple[Kernel, Offer]:
    """The preferred kernel or else the fastest whose scratch fits into `room` bytes of an arena, or onto the stack."""
    for kernel in sorted(kernels_for(type(site.op), kind), key=lambda kernel: kernel.name != preferred):
        for offer in kernel.offered(site):
            if offer.scratch <= max(room, kernel.stack):
                return kernel, offer
    kinds = ", ".join(place.tensor.dtype.value for place in site.inputs)
    raise Unsupported(
        f"layer '{site.layer.name}': no C for {type(site.op).__name__} of {kinds} -> {site.result.dtype.value}"
    )
