"""What a search hands out: a plan, and what else there is to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..program import Plan
from .timing import TimedPlan


@dataclass(frozen=True, slots=True)
class Trade:
    """A plan that was laid out on the way: what it needs and what it takes."""

    peak_bytes: int
    slowdown: float  # estimated instructions beyond those of whole layers, as a share of these
    macs: int


@dataclass(frozen=True)
class Found:
    """A plan, and what else there is to choose: RAM against instructions, from most RAM to least."""

    plan: Plan
    whole: Plan | None = None  # layers whole: what slowdowns are relative to
    trades: tuple[Trade, ...] = ()


def trade_of(timed: TimedPlan, whole: float) -> Trade:
    """The plan beside whole layers, which take so many instructions."""
    return Trade(timed.plan.peak_bytes, timed.total / max(1.0, whole) - 1, timed.plan.macs)


def undominated_trades(trades: Sequence[Trade]) -> tuple[Trade, ...]:
    """Those that no other beats in RAM and instructions, from most RAM to least."""
    found: list[Trade] = []
    for trade in sorted(trades, key=lambda t: (t.peak_bytes, t.slowdown)):
        if not found or trade.slowdown < found[-1].slowdown:
            found.append(trade)
    return tuple(found[::-1])
