"""Explains in one sentence with numbers why a plan does not fit and what to try."""

from __future__ import annotations

from collections.abc import Sequence

from .. import text
from ..memory import Fit
from ..memory.fit import dominating
from ..platform import boards_with
from ..program import Plan


def refusal(plan: Plan, verdict: Fit, critical: Sequence[str]) -> str:
    name = plan.network.name
    if verdict.ram is not None and verdict.ram_needed > verdict.ram:
        over = f"{text.count(verdict.ram_needed - verdict.ram)} B more than the {text.count(verdict.ram)} B there are"
        parts = ram_parts(verdict)
        if verdict.arenas <= verdict.ram:
            return (
                f"does not fit: {name} needs {text.count(verdict.ram_needed)} B of RAM, {parts}: with the stack "
                f"{over}. Try {_way_out(plan)}."
            )
        names = ", ".join(f"'{name}'" for name in critical[:4])
        more = f" and {len(critical) - 4} more" if len(critical) > 4 else ""
        return (
            f"does not fit: {name} needs {text.count(verdict.ram_needed)} B of RAM ({_proof(plan)}"
            f"{f'; {parts}' if parts else ''}), {over}; {dominating(plan)}; in the way: {names}{more}. "
            f"Try {_way_out(plan)}."
        )
    assert verdict.flash is not None
    missing = verdict.flash_needed - verdict.flash
    return (
        f"does not fit: {name} needs {text.count(verdict.flash_needed)} B of flash ({flash_parts(plan)}), "
        f"{text.count(missing)} B more than the {text.count(verdict.flash)} B there are. "
        f"Try {_smaller_weights(plan)} or {_boards(plan, 'flash')}."
    )


def ram_parts(verdict: Fit) -> str:
    """The components of the RAM, if the stack is counted too."""
    if verdict.stack is None:
        return ""
    return f"{text.count(verdict.arenas)} B of arenas and {text.count(verdict.stack)} B of stack"


def flash_parts(plan: Plan) -> str:
    """The components of the flash, as far as they are counted."""
    linked = plan.linked
    if linked is None:
        return "weights alone"
    code = linked.code_bytes + linked.runtime_bytes
    return f"{text.count(linked.weights_bytes)} B of weights and {text.count(code)} B of code"


def _proof(plan: Plan) -> str:
    if not plan.optimal:
        return "the least found"
    return "no plan needs less" if plan.is_in_parts else "no plan of whole layers needs less"


def _way_out(plan: Plan) -> str:
    """Suggestions, the easiest first."""
    floats = any(plan.network.tensors[name].dtype.is_float for name in plan.views)
    parts = "" if plan.is_in_parts else "layers in parts (`--minimise ram`, or `--max-overhead 5%` until it fits), "
    return f"{parts}{_boards(plan, 'RAM')}, a smaller input" + (", or an int8 version of the model" if floats else "")


def _smaller_weights(plan: Plan) -> str:
    """Suggests quantisation if most bytes are floats; otherwise a smaller model."""
    sizes = {name: tensor.bytes for name, tensor in plan.network.tensors.items() if name in plan.network.constants}
    floats = sum(size for name, size in sizes.items() if plan.network.tensors[name].dtype.is_float)
    return "int8 weights" if 2 * floats > sum(sizes.values()) else "a smaller model"


def _boards(plan: Plan, what: str) -> str:
    """Boards with enough memory, the smallest first."""
    boards = boards_with(plan.peak_bytes + (plan.stack_bytes or 0), plan.flash_bytes)
    return f"a board with more {what}" + (f" ({', '.join(boards)})" if boards else "")
