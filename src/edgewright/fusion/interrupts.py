"""Plans of searches that an interrupt ended: the best so far, marked as such."""

from __future__ import annotations

from dataclasses import replace

from ..program import Plan

INTERRUPTED = "interrupted; best so far"


def interrupted(plan: Plan) -> Plan:
    """The plan, marked as the best up to an interrupt."""
    return replace(plan, method=f"{INTERRUPTED}; {plan.method}")


def is_interrupted(plan: Plan) -> bool:
    """Whether the search for the plan was ended by an interrupt."""
    return plan.method.startswith(INTERRUPTED)
