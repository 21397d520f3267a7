"""A search's decisions about a plan (`PlanChoice`), the plans made from them, and the result of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from ..memory import Techniques
from ..memory import plan as make_plan
from ..memory.planner import alignment_of, explained, pulled_inputs
from ..memory.problems import PlanningProblem
from ..memory.request import PlanRequest
from ..memory.streamed import unfused_problem
from ..network import Network
from ..platform import Board
from ..program import FusionSchedule, Plan
from .timing import TimedPlan, Timing

Item = TypeVar("Item")


@dataclass(frozen=True)
class PlanChoice:
    """How to run a network: the schedules of fused layers, and where RAM is spent for speed."""

    schedules: tuple[FusionSchedule, ...] | None = None  # None: all layers whole
    no_overlap: frozenset[str] = frozenset()  # layers whose output must not overlap their inputs
    scratch_bytes: tuple[tuple[str, int], ...] = ()  # scratch for stages, in bytes

    def with_scratch(self, stage: str, size: int) -> PlanChoice:
        return replace(self, scratch_bytes=tuple(sorted({**dict(self.scratch_bytes), stage: size}.items())))

    def with_no_overlap(self, layers: frozenset[str]) -> PlanChoice:
        return replace(self, no_overlap=self.no_overlap | layers)

    def with_schedule(self, schedule: FusionSchedule) -> PlanChoice:
        """The choice with this schedule, which replaces the one for the same layers."""
        assert self.schedules is not None
        others = self.schedules
        return replace(self, schedules=tuple(schedule if x.layers == schedule.layers else x for x in others))


@dataclass(frozen=True)
class PlannedChoice:
    """A choice with its plan and cost."""

    choice: PlanChoice
    timed: TimedPlan

    @property
    def plan(self) -> Plan:
        return self.timed.plan

    @property
    def peak(self) -> int:
        return self.plan.peak_bytes

    @property
    def cost(self) -> float:
        return self.timed.total


class PlanMaker:
    """Makes plans of choices, with a cache, and estimates their cost."""

    def __init__(
        self,
        network: Network,
        timing: Timing,
        request: PlanRequest,
        board: Board | None = None,
        reserved: tuple[str, int] | None = None,
    ) -> None:
        self.network, self.timing, self.request = network, timing, request
        self._reserved = reserved
        self._board, self._alignment, self._outside = board, request.alignment, frozenset(request.outside)
        pulled = pulled_inputs(network) if request.pull_rows else ()
        self._pulled = tuple(each for each in pulled if each[0] not in self._outside)
        self._known: dict[PlanChoice, PlannedChoice] = {}

    @property
    def techniques(self) -> Techniques:
        return Techniques(pulled=self._pulled, outside=self._outside, reserved=self._reserved)

    @cached_property
    def unfused(self) -> PlanningProblem:
        """The planning problem in which any layer may still join a fusion group, used to price groups."""
        return unfused_problem(self.network, self.techniques, alignment_of(self.network, self._board, self._alignment))

    def make(self, choice: PlanChoice) -> PlannedChoice:
        if choice not in self._known:
            self._known[choice] = PlannedChoice(choice, self.timed(self.plan(choice, self.network)))
        return self._known[choice]

    @property
    def all_made(self) -> tuple[TimedPlan, ...]:
        return tuple(known.timed for known in self._known.values())

    def timed(self, plan: Plan) -> TimedPlan:
        return TimedPlan(plan, self.timing.costs(plan.network))

    def plain(self) -> TimedPlan:
        """The plan with order and layout only: no two tensors share memory."""
        return self.timed(
            make_plan(self.network, plain=True, explain=False, alignment=self._alignment, outside=self._outside)
        )

    def by_rows(self) -> TimedPlan:
        """The plan in which layers run row by row wherever that saves memory."""
        return self.timed(
            make_plan(
                self.network,
                self._board,
                techniques=self.techniques,
                alignment=self._alignment,
                explain=False,
                phases=True,
                outside=self._outside,
                unfused=self.unfused,
            )
        )

    def explained(self, choice: PlanChoice) -> Plan:
        """The plan of a choice of whole layers, with the savings of each technique."""
        return explained(self.make(choice).plan, self.network, self._techniques(choice))

    def _techniques(self, choice: PlanChoice) -> Techniques:
        return replace(self.techniques, no_overlap=choice.no_overlap, scratch_bytes=choice.scratch_bytes)

    def plan(self, choice: PlanChoice, network: Network) -> Plan:
        """A new plan for a network with the same layers."""
        return make_plan(
            network,
            self._board,
            techniques=self._techniques(choice),
            alignment=self._alignment,
            explain=False,
            schedules=choice.schedules,
            outside=self._outside,
        )


@dataclass(frozen=True, slots=True)
class TradeOff:
    """The figures of a plan that the search laid out: RAM, MACs, instructions."""

    peak_bytes: int
    slowdown: float  # extra estimated instructions, as a share of those of whole layers
    macs: int


@dataclass(frozen=True)
class FoundPlan:
    """The plan that a search returns, and the trade-offs of RAM and instructions it found, most RAM first."""

    plan: Plan
    whole: Plan | None = None  # the baseline of slowdowns
    trades: tuple[TradeOff, ...] = ()


def trade_off_of(timed: TimedPlan, whole: float) -> TradeOff:
    """The figures of the plan, relative to those of whole layers (`whole` instructions)."""
    return TradeOff(timed.plan.peak_bytes, timed.total / max(1.0, whole) - 1, timed.plan.macs)


def undominated(items: Iterable[Item], figures: Callable[[Item], tuple[float, float]]) -> tuple[Item, ...]:
    """The items that no other beats in both figures, by descending first figure."""
    kept: list[Item] = []
    for item in sorted(items, key=figures):
        if not kept or figures(item)[1] < figures(kept[-1])[1]:
            kept.append(item)
    return tuple(kept[::-1])


def undominated_trade_offs(trades: Iterable[TradeOff]) -> tuple[TradeOff, ...]:
    """The trade-offs that no other beats in RAM and instructions, by descending RAM."""
    return undominated(trades, lambda trade: (trade.peak_bytes, trade.slowdown))


INTERRUPTED = "interrupted; best so far"


def interrupted(plan: Plan) -> Plan:
    """The plan, marked as the best that was found before the user interrupted the search."""
    return replace(plan, method=f"{INTERRUPTED}; {plan.method}")


def is_interrupted(plan: Plan) -> bool:
    """Whether the user interrupted the search for the plan."""
    return plan.method.startswith(INTERRUPTED)
