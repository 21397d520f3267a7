"""What a search decides about a plan (`PlanChoice`), the plans made from that, and what a search returns."""

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
    """How a network is run: the schedules of fused layers, and where RAM is spent to make the code faster."""

    schedules: tuple[FusionSchedule, ...] | None = None  # None: all layers whole
    no_overlap: frozenset[str] = frozenset()  # layers whose output keeps off the memory of their inputs
    scratch_bytes: tuple[tuple[str, int], ...] = ()  # scratch of stages, in bytes

    def with_scratch(self, stage: str, size: int) -> PlanChoice:
        return replace(self, scratch_bytes=tuple(sorted({**dict(self.scratch_bytes), stage: size}.items())))

    def with_no_overlap(self, layers: frozenset[str]) -> PlanChoice:
        return replace(self, no_overlap=self.no_overlap | layers)

    def with_schedule(self, schedule: FusionSchedule) -> PlanChoice:
        """The choice with this schedule in place of the one for the same layers."""
        assert self.schedules is not None
        others = self.schedules
        return replace(self, schedules=tuple(schedule if x.layers == schedule.layers else x for x in others))


@dataclass(frozen=True)
class PlannedChoice:
    """A choice with its plan."""

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
    """Makes the plan of a choice, each once, and tells what it costs."""

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
        """The planning problem in which any layer may still join a fusion group, as those who price groups need it."""
        return unfused_problem(self.network, self.techniques, alignment_of(self.network, self._board, self._alignment))

    def make(self, choice: PlanChoice) -> PlannedChoice:
        if choice not in self._known:
            self._known[choice] = PlannedChoice(choice, self.timed(self.plan(choice, self.network)))
        return self._known[choice]

    @property
    def all_made(self) -> tuple[TimedPlan, ...]:
        return tuple(found.timed for found in self._known.values())

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
        """The plan of a choice of whole layers, with what each technique saved."""
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
    """A plan that the search laid out on its way, reduced to its figures: RAM, MACs, instructions."""

    peak_bytes: int
    slowdown: float  # estimated instructions beyond those of whole layers, as a share of these
    macs: int


@dataclass(frozen=True)
class FoundPlan:
    """The plan that a search returns, and the trade-offs of RAM and instructions that it met, most RAM first."""

    plan: Plan
    whole: Plan | None = None  # layers whole: what slowdowns are relative to
    trades: tuple[TradeOff, ...] = ()


def trade_off_of(timed: TimedPlan, whole: float) -> TradeOff:
    """The figures of the plan, relative to those of whole layers (`whole` instructions)."""
    return TradeOff(timed.plan.peak_bytes, timed.total / max(1.0, whole) - 1, timed.plan.macs)


def undominated(items: Iterable[Item], figures: Callable[[Item], tuple[float, float]]) -> tuple[Item, ...]:
    """The items that no other beats in both figures, from the largest first figure to the least."""
    found: list[Item] = []
    for item in sorted(items, key=figures):
        if not found or figures(item)[1] < figures(found[-1])[1]:
            found.append(item)
    return tuple(found[::-1])


def undominated_trade_offs(trades: Iterable[TradeOff]) -> tuple[TradeOff, ...]:
    """Those that no other beats in RAM and instructions, from most RAM to least."""
    return undominated(trades, lambda trade: (trade.peak_bytes, trade.slowdown))


INTERRUPTED = "interrupted; best so far"


def interrupted(plan: Plan) -> Plan:
    """The plan, marked as the best that was found before the user interrupted the search."""
    return replace(plan, method=f"{INTERRUPTED}; {plan.method}")


def is_interrupted(plan: Plan) -> bool:
    """Whether the search for the plan was ended by an interrupt."""
    return plan.method.startswith(INTERRUPTED)
