"""Judges finished plans: checks every requirement from the plan alone.

It shares no code with the planners, and runs on every plan before the plan is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..errors import Damaged
from .form import flaws
from .lower import calls, lower
from .ownership import is_too_large, misuses
from .plan import FaultKind, Plan, PlanFault, judged
from .selection import packed_bytes


def faults(plan: Plan, pushed: Collection[str] = ()) -> Iterator[PlanFault]:
    """What is wrong with the plan, the gravest first; nothing for a plan that does what its network says.

    Each kind is judged only if the ones before hold: what is not well formed cannot be carried out. Plans of more
    than 128 MiB of float32 are not carried out here (`is_too_large`): every cell of their memory would be remembered.
    Rows of outputs in `pushed` leave as soon as they are made.
    """
    is_sound = True
    for fault in judged(plan, _JUDGES):
        is_sound = False
        yield fault
    if is_sound:
        yield from _scratch_in_the_way(plan)
        if not is_too_large(plan):
            yield from misuses(plan, pushed)


def checked(plan: Plan, pushed: Collection[str] = ()) -> Plan:
    """The plan itself, when nothing is wrong with it."""
    if fault := next(faults(plan, pushed), None):
        raise Damaged(fault.message)
    return plan


def _flaws_of_selections(plan: Plan) -> Iterator[str]:
    """Selections that do not match the plan's calls: missing or superfluous kernels, scratch of another stage."""
    if not plan.selections:
        return
    stages = plan.program.stages
    wanted = {call.key(index) for index, stage in enumerate(stages) for call, _ in calls(lower(plan, stage))}
    for key in [key for key in plan.selections if key not in wanted][:1]:
        yield f"a kernel is selected to {key.kind.value} '{key.layer}' in stage {key.stage}, which does not do that"
        return
    for key in [key for key in wanted if key not in plan.selections][:1]:
        yield f"no kernel is selected to {key.kind.value} '{key.layer}' in stage '{stages[key.stage].name}'"
        return
    for key, selection in plan.selections.items():
        home = plan.buffer_named.get(selection.scratch) if selection.scratch is not None else None
        is_there = home is not None and home.first <= key.stage <= home.last
        if selection.scratch is not None and (not is_there or home is None or home.part < selection.offer.scratch):
            yield f"the scratch of layer '{key.layer}' is no buffer of its size and stage"
        elif home is not None and home.lanes != stages[key.stage].schedule.lanes:
            yield f"the scratch of layer '{key.layer}' is not divided among the lanes of its stage"


def _scratch_in_the_way(plan: Plan) -> Iterator[PlanFault]:
    """Scratch that overlaps a live buffer: never allowed, since a kernel may write its scratch in any order."""
    names = [dict[str, None]() for _ in plan.program.stages]
    for key, selection in plan.selections.items():
        if selection.scratch is not None:
            names[key.stage][selection.scratch] = None
    for index, own in enumerate(names):
        for name in sorted(own):
            home = plan.buffer_named[name]
            for other in plan.live(index):
                is_met = other.memory == home.memory and other.offset < home.end and home.offset < other.end
                if is_met and other.name not in own:
                    yield PlanFault(FaultKind.MEMORY, f"'{name}' lies over '{other.name}', which is in use by then")


def _broken_promises(plan: Plan) -> Iterator[str]:
    """Predictions (peak RAM, MACs, flash, stack) that differ from what the plan's own buffers and steps add up to."""
    network = plan.network
    if any(saving.peak_bytes < 0 for saving in plan.savings):
        yield "a technique states a negative peak of RAM"
    if (placed := sum(plan.arenas.values())) != plan.peak_bytes:
        yield f"its buffers take {placed} bytes, but it states {plan.peak_bytes}"
    if plan.bound_bytes > plan.peak_bytes:
        yield f"its bound is {plan.bound_bytes} bytes, but it needs only {plan.peak_bytes}"
    if plan.weights_bytes != network.weight_bytes:
        yield f"its weights take {network.weight_bytes} bytes, but it states {plan.weights_bytes}"
    if plan.macs_plain != network.total_macs:
        yield f"its layers take {network.total_macs} MACs, but it states {plan.macs_plain}"
    yield from _broken_code(plan)


def _broken_code(plan: Plan) -> Iterator[str]:
    """Predicted code figures that differ from what the selected kernels add up to."""
    is_complete = plan.target is not None and plan.options is not None
    if plan.program.stages and bool(plan.selections) != is_complete:
        yield "selected kernels need a target and options, and one of them is missing"
    if plan.program.stages and plan.packed and not plan.selections:
        yield "weights are packed, but no kernels are selected"
    linked = plan.linked
    if any(each.bytes < 0 or each.alignment < 1 for each in plan.packed):
        yield "packed weights have no size or no alignment"
        return
    if linked is None:
        return
    if min(linked.code_bytes, linked.runtime_bytes, linked.stack_bytes or 0) < 0:
        yield "code, what it calls or the stack has a negative size"
    if (packed := packed_bytes(plan.packed)) != linked.weights_bytes:
        yield f"its packed weights take {packed} bytes, but it states {linked.weights_bytes} as linked"
    least = max((selection.stack for selection in plan.selections.values()), default=0)
    if linked.stack_bytes is not None and linked.stack_bytes < least:
        yield f"its kernels keep {least} bytes of scratch on the stack, but it states a stack of {linked.stack_bytes}"


_JUDGES = (
    (FaultKind.FORM, flaws),
    (FaultKind.PROMISE, _broken_promises),
    (FaultKind.FORM, _flaws_of_selections),
)
