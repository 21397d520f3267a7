"""How long a plan is estimated to take on a board: its estimated instructions, and the cycles that each takes there."""

from __future__ import annotations

from dataclasses import dataclass

from ...platform import Board
from ...platform.chip_time import ERROR, board_instruction_time
from ...program import Plan
from .estimate import Estimate


@dataclass(frozen=True, slots=True)
class RunTime:
    """Seconds of a run at the board's highest clock, within `ERROR` beside the error of the instructions."""

    board: str
    stages: tuple[float, ...]

    @property
    def seconds(self) -> float:
        return sum(self.stages)

    @property
    def words(self) -> str:
        return f"on {self.board} at its highest clock, ± {ERROR:.0%}: instructions and their cycles are estimated"


def run_time(plan: Plan, found: Estimate | None, board: Board | None) -> RunTime | None:
    """The time of each stage; None where instructions or cycles are not known."""
    time = board_instruction_time(board, plan.network.is_real)
    if found is None or time is None or board is None:
        return None
    return RunTime(board.name, tuple(count * time for count in found.stages))
