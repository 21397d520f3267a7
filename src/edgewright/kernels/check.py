"""The judge of selected kernels: each must exist, suit the target, and make the plan's offer at its site.

It asks the kernels themselves. Whether scratch overlaps live buffers is judged by `program.check`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Damaged
from ..program import FaultKind, Plan, PlanFault
from ..program.lower import KernelCall, calls, lower
from ..program.selection import Selection
from .catalogue import BY_NAME
from .kernel import Kernel
from .sites import Loops, NetworkFacts, Sites

SCRATCH_ALIGNMENT = 8  # kernels may keep anything in it


def faults(plan: Plan, facts: NetworkFacts) -> Iterator[PlanFault]:
    """What is wrong with the kernels of a plan that is sound otherwise; none where every selection is a valid offer."""
    sites = Sites(plan, facts)
    linked_kernels = frozenset(selection.kernel for stage in plan.selections for selection in stage)
    for stage, chosen in zip(plan.program.stages, plan.selections, strict=True):
        for (call, loops), selection in zip(calls(lower(plan, stage)), chosen, strict=True):
            if fault := _fault(sites, call, loops, selection, linked_kernels):
                yield PlanFault(FaultKind.KERNEL, f"layer '{call.layer}': {fault}")


def checked_kernels(plan: Plan, facts: NetworkFacts) -> None:
    """Refuses a plan with kernels that do not compute what it says."""
    if fault := next(faults(plan, facts), None):
        raise Damaged(fault.message)


def _fault(
    sites: Sites, call: KernelCall, loops: Loops, selection: Selection, linked_kernels: frozenset[str]
) -> str | None:
    kernel = BY_NAME.get(selection.kernel)
    if kernel is None:
        return f"there is no kernel '{selection.kernel}'"
    site = sites.site(call, loops, linked_kernels)
    if type(site.op) not in kernel.operators or kernel.kind is not call.kind:
        return f"kernel '{kernel.name}' does not {call.kind.value} {type(site.op).__name__}"
    if site.target.family not in kernel.families:
        return f"kernel '{kernel.name}' is not for {site.target.name}"
    if selection.offer not in kernel.offered(site):
        return f"kernel '{kernel.name}' does not offer this here"
    return _misplaced(sites, kernel, selection)


def _misplaced(sites: Sites, kernel: Kernel, selection: Selection) -> str | None:
    """What is wrong with the place of the scratch; None where nothing is."""
    if selection.scratch is None:
        if selection.stack > kernel.stack:
            return f"kernel '{kernel.name}' keeps no {selection.stack} bytes of scratch on the stack"
        return None
    home = sites.plan.buffer_named[selection.scratch]
    if home.offset % SCRATCH_ALIGNMENT:
        return f"its scratch lies at {home.offset}, which is no multiple of {SCRATCH_ALIGNMENT}"
    return None
