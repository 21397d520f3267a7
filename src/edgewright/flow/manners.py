"""Manners of execution of one network on a board, as the search prices them, with what fits and how it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import text
from ..complete_plan import find_complete
from ..errors import Infeasible
from ..memory import fit
from ..network import Network
from ..platform import Board
from ..program import Plan, plan_text
from ..search.pricing import Manner, Price, Pricer

ENDS = {"quantised_input": True, "quantised_output": True}  # as the search prices networks

# The keys that ask for a manner in an application's file.
ENTRIES: Mapping[Manner, Mapping[str, Any]] = {
    Manner.WHOLE: {},
    Manner.STREAMED: {"minimise": "ram"},
    Manner.ROWS: {"phases": True},
    Manner.PULLED: {"minimise": "ram", "pull_input": True},
}


@dataclass(frozen=True)
class MannerPrice:
    """What a network costs in one manner, and its plan; none where several cores execute it."""

    price: Price
    plan: Plan | None

    @property
    def plan_text(self) -> str:
        return plan_text(self.plan) if self.plan else ""


def manners_of(board: Board, is_application: bool) -> tuple[Manner, ...]:
    """The manners that a board can run; for an application those that its networks can have."""
    mapped = () if is_application or not Pricer(board).is_linux else (Manner.LANES, Manner.PIPELINED)
    return (*ENTRIES, *mapped)


def price_manner(network: Network, board: Board, manner: Manner) -> MannerPrice:
    """What the network costs, code included; an error where it does not fit the board."""
    pricer = Pricer(board, manner)
    if is_mapped(pricer):
        return MannerPrice(pricer.compiled_price(network), None)
    plan = find_complete(network, pricer.request, board, pricer.target).plan
    verdict = fit(plan, board)
    if not verdict.fits:
        raise Infeasible(f"needs {text.size(verdict.ram_needed)} of RAM and {text.size(verdict.flash_needed)} of flash")
    return MannerPrice(pricer.price_of(plan), plan)


def is_mapped(pricer: Pricer) -> bool:
    """Whether the network runs as a mapping onto cores with Linux, and has no plan of its own."""
    return pricer.is_linux and (pricer.manner.is_mapped or pricer.manner is Manner.WHOLE)
