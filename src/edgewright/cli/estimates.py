"""How long a plan is thought to take, where there is a cost model."""

from __future__ import annotations

from .. import text
from ..kernels.cost.estimate import Estimate, estimate, modelled
from ..platform import Board
from ..platform.target import target_of
from ..program import Plan


def core_of(board: Board | None, target: str | None) -> str | None:
    """The target that was named, or else the board's."""
    return target or (target_of(board).name if board else None)


def estimated(plan: Plan, core: str | None) -> Estimate | None:
    """The estimate, or nothing where no core is known or none of its instructions were ever counted."""
    return estimate(plan, core) if core in modelled() else None


def estimate_words(found: Estimate, core: str, whole: Estimate | None) -> str:
    """What the number means, beside that of whole layers where it is known."""
    more = f", {found.instructions / whole.instructions - 1:+.1%} against whole layers" if whole else ""
    guessed = f"; {text.plural(len(found.guessed), 'layer')} of a kind never counted" if found.guessed else ""
    return f"estimated for {core}{more}; whole networks were within {found.error.total:.0%}{guessed}"
