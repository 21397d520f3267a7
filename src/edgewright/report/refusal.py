"""Why a plan does not fit, and what would help, in one sentence with numbers."""

from __future__ import annotations

from collections.abc import Sequence

from .. import words
from ..memory import Fit
from ..memory.fullest import dominating
from ..platform import boards_with
from ..program import Plan


def refusal(plan: Plan, verdict: Fit, critical: Sequence[str]) -> str:
    if verdict.ram is not None and verdict.ram_needed > verdict.ram:
        over = verdict.ram_needed - verdict.ram
        names = ", ".join(f"'{name}'" for name in critical[:4])
        more = f" and {len(critical) - 4} more" if len(critical) > 4 else ""
        return (
            f"does not fit: {plan.network.name} needs {words.count(verdict.ram_needed)} B of RAM ({_proof(plan)}), "
            f"{words.count(over)} B more than the {words.count(verdict.ram)} B there are; {dominating(plan)}; "
            f"in the way: {names}{more}. Try {_way_out(plan)}."
        )
    assert verdict.flash is not None
    return (
        f"does not fit: {plan.network.name} has {words.count(plan.flash_bytes)} B of weights, "
        f"{words.count(plan.flash_bytes - verdict.flash)} B more than the {words.count(verdict.flash)} B of flash. "
        f"Try int8 weights or {_boards(plan, 'flash')}."
    )


def is_in_parts(plan: Plan) -> bool:
    """Whether some layers run in rows or tiles."""
    return any(not stage.schedule.is_whole for stage in plan.program.stages)


def _proof(plan: Plan) -> str:
    if not plan.optimal:
        return "the least found"
    return "no plan needs less" if is_in_parts(plan) else "no plan of whole layers needs less"


def _way_out(plan: Plan) -> str:
    """What may help, the easiest first."""
    floats = any(plan.network.tensors[name].dtype.is_float for name in plan.views)
    parts = (
        "" if is_in_parts(plan) else "layers in parts (`--minimise ram`, or `--max-overhead 5%` until it fits), "
    )
    return f"{parts}{_boards(plan, 'RAM')}, a smaller input" + (
        ", or an int8 version of the model" if floats else ""
    )


def _boards(plan: Plan, what: str) -> str:
    """Boards that would do, the smallest first."""
    found = boards_with(plan.peak_bytes, plan.flash_bytes)
    return f"a board with more {what}" + (f" ({', '.join(found)})" if found else "")
