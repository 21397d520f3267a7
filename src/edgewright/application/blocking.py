"""RAM against blocking time: preemption points determine what others may overwrite, and how long urgent networks
wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from .. import text
from ..errors import Infeasible
from ..fusion.timing import TimedPlan, Timing
from ..memory.joint.layout import JointLayout, lay_out_jointly
from ..memory.layout import LayoutEffort
from ..program.deployment import Deployment, InterruptionPoints, Relation
from .description import PreemptionPoints
from .draft import Application
from .preemption_points import choices, turns_needed, with_points, with_turns
from .response_time import timed_pieces

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class BlockingTrade:
    """One choice of preemption points for a pair of networks, with its RAM and longest wait."""

    high: str
    low: str
    where: str  # a description for tables
    wait: float  # worst case in seconds
    layout: JointLayout

    @property
    def peak_bytes(self) -> int:
        return self.layout.peak_bytes

    def to_dict(self) -> dict[str, object]:
        pair = {"who": self.high, "waits_for": self.low, "where": self.where}
        return {**pair, "peak_bytes": self.peak_bytes, "wait_s": self.wait}


def choose_points(application: Application, deployment: Deployment) -> dict[str, InterruptionPoints]:
    """For each part whose wait is limited, the preemption points with the fewest live bytes that keep the limit."""
    chosen: dict[str, InterruptionPoints] = {}
    for relation in deployment.preemptions:
        (high, low), asked = relation.parts, application.preempting(relation)
        if asked.wait is None:
            continue
        plan = deployment.plans[low]
        pieces = timed_pieces(application, low, plan)
        found_here = choices(plan, asked.points, pieces)
        kept = [points for wait, points in found_here.items() if wait <= asked.wait]
        if not kept:
            least = min(found_here, default=pieces.total)
            raise Infeasible(
                f"'{high}' may wait for '{low}' for {text.duration(least)}, and {text.duration(asked.wait)} are "
                "allowed; "
                + (
                    "let it interrupt anywhere"
                    if asked.points is PreemptionPoints.ROWS
                    else 'let it interrupt at points = "rows", or "anywhere"'
                )
            )
        before = chosen.get(low, InterruptionPoints())
        chosen[low] = InterruptionPoints(before.after | kept[-1].after, before.rows | kept[-1].rows)
    return chosen


def blocking_front(application: Application, deployment: Deployment) -> tuple[BlockingTrade, ...]:
    """For each pair of parts in which one interrupts the other, RAM against waiting time, by descending RAM."""
    trades: list[BlockingTrade] = []
    for relation in deployment.preemptions:
        trades += undominated(_trades(application, deployment, relation), lambda trade: (trade.peak_bytes, trade.wait))
    return tuple(trades)


def undominated(choices: Iterable[Choice], costs: Callable[[Choice], tuple[int, float]]) -> tuple[Choice, ...]:
    """The items that no other beats in two costs: bytes, in descending order, and a share or a time."""
    best: list[Choice] = []
    for one in sorted(choices, key=costs):
        if not best or costs(one)[1] < costs(best[-1])[1] - 1e-9:
            best.append(one)
    return tuple(best[::-1])


def _trades(application: Application, deployment: Deployment, relation: Relation) -> Iterator[BlockingTrade]:
    high, low = relation.parts
    whole = deployment.plans[low]
    anywhere = with_points(_interrupting(application, relation, PreemptionPoints.ANYWHERE), deployment, {})
    yield BlockingTrade(high, low, "anywhere", 0.0, lay_out_jointly(anywhere, LayoutEffort.QUICK))
    timed = TimedPlan(whole, Timing(application.target).costs(whole.network))
    for kind, plan in (
        (PreemptionPoints.ROWS, with_turns(whole, turns_needed(whole, timed))),
        (PreemptionPoints.STAGES, whole),
    ):
        changed = _interrupting(application, relation, kind)
        planned = deployment.with_plans({**deployment.plans, low: plan})
        for wait, points in choices(plan, kind, timed_pieces(application, low, plan)).items():
            where = ([f"after {text.plural(len(points.rows), 'row')}"] if points.rows else []) + (
                [f"{text.plural(len(points.after), 'end')} of stages"] if points.after else []
            )
            layout = lay_out_jointly(with_points(changed, planned, {low: points}))
            yield BlockingTrade(high, low, " and ".join(where), wait, layout)


def _interrupting(application: Application, relation: Relation, kind: PreemptionPoints) -> Application:
    """The application in which the first of two networks interrupts the second at points of this kind."""
    asked = application.preempting(relation)
    relations = tuple(
        one.model_copy(update={"points": kind, "wait": None}) if one == asked else one
        for one in application.file.relations
    )
    return replace(application, file=application.file.model_copy(update={"relations": relations}))
