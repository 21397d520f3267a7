"""The manners of execution of a board, what a network costs in each, and the application keys that ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import text
from ..complete_plan import find_complete
from ..errors import Infeasible
from ..memory import fit
from ..platform import Board
from ..program import Plan, plan_text
from ..search.pricing import CandidatePricer, Manner, Price

ENDS = {"quantised_input": True, "quantised_output": True}  # keys of an application's network, as it is priced

# The keys that ask for a manner in an application's file.
ENTRIES: Mapping[Manner, Mapping[str, Any]] = {
    Manner.WHOLE: {},
    Manner.STREAMED: {"phases": True},
    Manner.TILED: {"minimise": "ram"},
    Manner.PULLED: {"phases": True, "pull_input": True},
}


@dataclass(frozen=True)
class MannerPrice:
    """What a network costs in one manner, and its plan; a mapping to several cores has no plan."""

    price: Price
    plan: Plan | None

    @property
    def plan_text(self) -> str:
        return plan_text(self.plan) if self.plan else ""


def manners_of(board: Board, is_application: bool) -> tuple[Manner, ...]:
    """The manners that a board can run; for an application those that its networks can have side by side.

    Scenarios that switch take frames in one way, whole or row by row: by default, none of them pulls its input.
    """
    if is_application:
        return tuple(manner for manner in ENTRIES if manner is not Manner.PULLED)
    return (*ENTRIES, *((Manner.LANES, Manner.PIPELINED) if CandidatePricer(board).is_linux else ()))


def price_manner(model: bytes, board: Board, manner: Manner) -> MannerPrice:
    """What an int8 model costs, code included; raises Infeasible if it does not fit the board."""
    pricer = CandidatePricer(board, manner)
    network = pricer.network(model)
    if pricer.is_mapped:
        return MannerPrice(pricer.compiled_price(network), None)
    plan = find_complete(network, pricer.request, board, pricer.target).plan
    verdict = fit(plan, board)
    if not verdict.fits:
        raise Infeasible(f"needs {text.size(verdict.ram_needed)} of RAM and {text.size(verdict.flash_needed)} of flash")
    return MannerPrice(pricer.price_of(plan), plan)
