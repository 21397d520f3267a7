"""The joint search: the least RAM for a given amount of extra work, over every way to run every stretch."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Infeasible
from ..memory import plan as make_plan
from ..memory.fullest import shortage
from ..network import Network
from ..platform import Board
from ..program import Plan


@dataclass(frozen=True)
class Front:
    """Plans of which none is better than another in RAM and in work, from most RAM to least."""

    plans: tuple[Plan, ...]
    plain: Plan  # order and layout only


def front(
    network: Network,
    board: Board | None = None,
    *,
    alignment: int | None = None,
    pull_rows: bool = False,
    max_overhead: float | None = None,
    most: int = 16,
) -> Front:
    """The plans worth choosing from: RAM against MACs."""
    plain = make_plan(network, board, plain=True, explain=False, alignment=alignment)
    found = make_plan(network, board, explain=False, alignment=alignment, pull_rows=pull_rows, phases=True)
    return Front((found,), plain)


def least(
    network: Network,
    board: Board | None = None,
    *,
    alignment: int | None = None,
    pull_rows: bool = False,
    max_overhead: float | None = None,
    max_slowdown: float | None = None,
    target: str | None = None,
) -> Plan:
    """The plan with the least RAM whose extra work stays within the limits."""
    return front(network, board, alignment=alignment, pull_rows=pull_rows, max_overhead=max_overhead).plans[-1]


def fitting(
    network: Network,
    ram: int,
    board: Board | None = None,
    *,
    alignment: int | None = None,
    pull_rows: bool = False,
    max_overhead: float | None = None,
    max_slowdown: float | None = None,
    target: str | None = None,
) -> Plan:
    """The plan with the least extra work that fits the RAM."""
    found = least(network, board, alignment=alignment, pull_rows=pull_rows, max_overhead=max_overhead)
    if found.peak_bytes > ram:
        raise Infeasible(shortage(found, ram))
    return found
