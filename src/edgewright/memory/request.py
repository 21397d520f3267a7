"""What a caller asks of a plan: limits, which layers run in parts, where inputs and outputs lie."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypedDict

from ..errors import InputError
from ..network import Network
from ..program import FusionSchedule, Plan

MOST_LANES = 64
USUAL_SLOWDOWN = 0.10  # extra instructions, relative to whole layers, that are accepted by default


class Method(Enum):
    """Which search chooses the schedules."""

    JOINT = "joint"  # all groups of layers and all ways to run them at once
    PAPER = "paper"  # buffer by buffer, tiles only (S 4.3.3)


class LayoutKeywords(TypedDict, total=False):
    """The fields of a `PlanRequest` that say by hand how layers run and where buffers lie, as keywords."""

    alignment: int | None
    pull_rows: bool
    phases: bool | Collection[str]
    schedules: Sequence[FusionSchedule] | None
    outside: Collection[str]


@dataclass(frozen=True)
class PlanRequest:
    """What a plan should be like. By default: whole layers in the least RAM.

    A limit on extra work, `minimise_ram` or a `method` asks for a search. It returns the plan with the least extra work
    that fits `ram` or the board; with `minimise_ram`, or without a limit on RAM, the plan with the least RAM. Limits on
    extra work are shares: 0.05 for 5 % more.
    """

    ram: int | None = None  # bytes
    plain: bool = False  # order and layout only: no two tensors share memory (S 4.3.1, 4.3.2)
    alignment: int | None = None  # bytes; by default the board's
    pull_rows: bool = False  # images arrive row by row and are never held whole
    phases: bool | Collection[str] = False  # run layers row by row (M 4): where it saves RAM, or these layers
    schedules: Sequence[FusionSchedule] | None = None  # run exactly these layers in parts, as they say
    minimise_ram: bool = False
    max_overhead: float | None = None  # extra MACs
    max_slowdown: float | None = None  # extra instructions, as estimated
    method: Method | None = None
    lanes: int = 1  # cores that share the work of a stage, where it pays
    outside: Collection[str] = ()  # inputs and outputs in the caller's memory

    def __post_init__(self) -> None:
        if not 1 <= self.lanes <= MOST_LANES:
            raise InputError(f"{self.lanes} lanes cannot share the work: give a number from 1 to {MOST_LANES}")
        if sum(map(bool, (self.plain, self.phases, self.schedules, self.is_search))) > 1:
            raise InputError(
                "a plan is plain, by rows (phases), in tiles by hand (schedules) or searched for: one of these"
            )
        if any(limit is not None and not 0 <= limit < float("inf") for limit in (self.max_overhead, self.max_slowdown)):
            raise InputError("a limit on extra work is a share from 0, such as 0.05 for 5 %")
        if self.method is Method.PAPER and self.is_limited:
            raise InputError("the paper's method knows no limit on extra work: leave the limit out, or search jointly")
        if self.method is Method.PAPER and self.outside:
            raise InputError("the paper's method has all buffers in its own memory: leave `outside` out")

    @property
    def is_limited(self) -> bool:
        """Whether extra work is limited."""
        return self.max_overhead is not None or self.max_slowdown is not None

    @property
    def is_by_hand(self) -> bool:
        """Whether the request itself says how layers run."""
        return bool(self.plain or self.phases or self.schedules)

    @property
    def is_search(self) -> bool:
        return self.minimise_ram or self.method is not None or self.is_limited

    @property
    def may_be_fitted(self) -> bool:
        """Whether less RAM leads to another plan, because the request leaves open how layers run."""
        return not self.is_by_hand and not self.minimise_ram and self.method is not Method.PAPER

    @property
    def with_usual_limits(self) -> PlanRequest:
        """The request with the limits of a search for the least RAM, where it sets none of its own.

        These are no extra MACs and about the time of whole layers. A request that allows extra MACs also allows the
        instructions that they take.
        """
        if self.max_slowdown is not None:
            return self
        overhead = self.max_overhead or 0.0
        return replace(self, max_overhead=overhead, max_slowdown=max(USUAL_SLOWDOWN, overhead))

    def extra_macs(self, network: Network) -> int | None:
        """The extra MACs that the request allows; None without a limit."""
        return None if self.max_overhead is None else int(network.total_macs * self.max_overhead)

    def allows_macs(self, plan: Plan) -> bool:
        return self.max_overhead is None or plan.macs <= plan.macs_plain * (1 + self.max_overhead)
