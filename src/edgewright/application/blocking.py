"""RAM against blocking time: preemption points decide what others may overlay, and how long more urgent networks
wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from .. import text
from ..errors import Infeasible
from ..fusion.timing import TimedPlan, Timing
from ..memory.layout import LayoutEffort
from ..program import Plan
from ..program.deployment import InterruptionPoints, RelationKind
from .description import PreemptionPoints
from .joint import JointLayout, lay_out_jointly
from .members import Application
from .preemption_points import choices, with_rows
from .relations import Preemption, Relations
from .response_time import timed_pieces

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class BlockingTrade:
    """One choice of preemption points for a pair of networks, with its RAM and its longest wait."""

    preemption: Preemption
    where: str  # for people
    wait: float  # seconds, at most
    layout: JointLayout

    @property
    def peak_bytes(self) -> int:
        return self.layout.peak_bytes

    def to_dict(self) -> dict[str, object]:
        pair = {"who": self.preemption.high, "waits_for": self.preemption.low, "where": self.where}
        return {**pair, "peak_bytes": self.peak_bytes, "wait_s": self.wait}


def choose_points(application: Application, plans: Mapping[str, Plan]) -> dict[str, InterruptionPoints]:
    """For each network whose wait is limited, the preemption points with the fewest live bytes that keep the limit."""
    found: dict[str, InterruptionPoints] = {}
    for preemption in Relations(application).preemptions.values():
        if preemption.wait is None:
            continue
        low, pieces = preemption.low, timed_pieces(application, preemption.low, plans[preemption.low])
        found_here = choices(plans[low], preemption.points, pieces)
        kept = [points for wait, points in found_here.items() if wait <= preemption.wait]
        if not kept:
            least = min(found_here, default=pieces.total)
            raise Infeasible(
                f"'{preemption.high}' may wait for '{low}' for {text.duration(least)}, and "
                f"{text.duration(preemption.wait)} are allowed; "
                + (
                    "let it interrupt anywhere"
                    if preemption.points is PreemptionPoints.ROWS
                    else 'let it interrupt at points = "rows", or "anywhere"'
                )
            )
        before = found.get(low, InterruptionPoints())
        found[low] = InterruptionPoints(before.after | kept[-1].after, before.rows | kept[-1].rows)
    return found


def blocking_front(application: Application, plans: Mapping[str, Plan]) -> tuple[BlockingTrade, ...]:
    """For each pair of networks of which one interrupts the other, RAM against waiting, from most RAM to least."""
    found: list[BlockingTrade] = []
    for preemption in Relations(application).preemptions.values():
        found += undominated(_trades(application, plans, preemption), lambda trade: (trade.peak_bytes, trade.wait))
    return tuple(found)


def undominated(found: Iterable[Choice], costs: Callable[[Choice], tuple[int, float]]) -> tuple[Choice, ...]:
    """Those that none beats in both of two costs: bytes, from most to least, and a share or a time."""
    best: list[Choice] = []
    for one in sorted(found, key=costs):
        if not best or costs(one)[1] < costs(best[-1])[1] - 1e-9:
            best.append(one)
    return tuple(best[::-1])


def _trades(application: Application, plans: Mapping[str, Plan], preemption: Preemption) -> Iterator[BlockingTrade]:
    low, whole = preemption.low, dict(plans)
    anywhere = _trade_at(application, preemption, PreemptionPoints.ANYWHERE)
    yield BlockingTrade(preemption, "anywhere", 0.0, lay_out_jointly(anywhere, whole, effort=LayoutEffort.QUICK))
    timed = TimedPlan(whole[low], Timing(application.target).costs(whole[low].network))
    divided = {**whole, low: with_rows(whole[low], timed)}
    for kind, used in ((PreemptionPoints.ROWS, divided), (PreemptionPoints.STAGES, whole)):
        changed, pieces = _trade_at(application, preemption, kind), timed_pieces(application, low, used[low])
        for wait, points in choices(used[low], kind, pieces).items():
            where = ([f"after {text.plural(len(points.rows), 'row')}"] if points.rows else []) + (
                [f"{text.plural(len(points.after), 'end')} of stages"] if points.after else []
            )
            layout = lay_out_jointly(changed, used, {low: points})
            yield BlockingTrade(preemption, " and ".join(where), wait, layout)


def _trade_at(application: Application, preemption: Preemption, kind: PreemptionPoints) -> Application:
    """The application with other points for the pair."""
    pair = tuple(application.by_name[name].owner for name in (preemption.high, preemption.low))
    relations = tuple(
        one.model_copy(update={"points": kind, "wait": None})
        if one.kind is RelationKind.PREEMPTS and one.networks == pair
        else one
        for one in application.file.relations
    )
    return replace(application, file=application.file.model_copy(update={"relations": relations}))
