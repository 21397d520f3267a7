"""The exact worst, median and best delay of every switch over all request times.

The request time is uniformly distributed over the old frame. Between two starts of old steps the delay falls linearly
or is constant, so a few intervals describe it completely.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise, permutations

from .. import text
from ..program.switching import SwitchPolicy
from .deploying import SwitchingApplication, with_policy
from .description import LayerAttribute
from .front import SwitchLayout
from .paper.layers import scenario_graph
from .paper.protocol import RequestMoment, barrier_delay, hazards, loses_last_step, naive_delay, printed_x, safe_x
from .paper.supergraph import Supergraph, derive_supergraph
from .scenarios import AdaptiveApplication
from .transition import Transition

HALVINGS = 60  # bisection steps for the median


@dataclass(frozen=True, slots=True)
class DelayPiece:
    """Request times during which the delay runs linearly through a range."""

    least: float
    most: float
    width: float  # total seconds of these times

    def share_below(self, delay: float) -> float:
        """The total length of request times with at most this delay."""
        if delay >= self.most:
            return self.width
        return self.width * max(0.0, delay - self.least) / (self.most - self.least) if self.most > self.least else 0.0


@dataclass(frozen=True, slots=True)
class DelayRange:
    """Seconds from the request to the first output of the new scenario, over all request times."""

    worst: float
    median: float
    best: float

    @classmethod
    def of(cls, pieces: Sequence[DelayPiece]) -> DelayRange:
        low, high = min(piece.least for piece in pieces), max(piece.most for piece in pieces)
        best, worst, half = low, high, sum(piece.width for piece in pieces) / 2
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if sum(piece.share_below(middle) for piece in pieces) < half:
                low = middle
            else:
                high = middle
        return cls(worst, high, best)


@dataclass(frozen=True)
class PolicyDelays:
    """All switches under one policy, with the layout chosen for it."""

    switching: SwitchingApplication
    delays: dict[tuple[str, str], DelayRange]

    @property
    def layout(self) -> SwitchLayout:
        return self.switching.layout

    @property
    def policy(self) -> SwitchPolicy:
        return self.switching.policy


@dataclass(frozen=True)
class PaperDelays:
    """A switch under the paper's protocol, and its races over all request times."""

    old: str
    new: str
    naive: DelayRange
    printed: DelayRange
    safe: DelayRange
    hazards: tuple[str, ...]  # edges whose data is destroyed
    loses_last_step: bool


@dataclass(frozen=True)
class DelayOutcome:
    """The result of `adapt --simulate`."""

    application: AdaptiveApplication
    policies: tuple[PolicyDelays, ...]
    left_out: dict[SwitchPolicy, str]  # with the reason
    paper: tuple[PaperDelays, ...]

    @cached_property
    def judged(self) -> str:
        """A sentence on what the judge has checked."""
        pairs = text.plural(sum(len(one.delays) for one in self.policies), "switch")
        names = ", ".join(one.policy.value for one in self.policies)
        return (
            f"no hazards: the judge has followed {pairs} under {names}, byte by "
            "byte and for every moment of the request; no step overwrites a value that is still read"
        )

    def to_dict(self) -> dict[str, object]:
        return {
            "policies": {
                one.policy.value: {
                    "arena_bytes": one.layout.arena_bytes,
                    "switches": [{"from": old, "to": new, **asdict(delay)} for (old, new), delay in one.delays.items()],
                }
                for one in self.policies
            },
            "left_out": {policy.value: why for policy, why in self.left_out.items()},
            "paper": [
                {
                    "from": one.old,
                    "to": one.new,
                    **{name: asdict(getattr(one, name)) for name in ("naive", "printed", "safe")},
                    "hazards": list(one.hazards),
                    "loses_last_step": one.loses_last_step,
                }
                for one in self.paper
            ],
            "hazards": [],  # a layout with hazards is rejected by the judge
            "judged": self.judged,
        }


def delay_outcome(
    application: AdaptiveApplication,
    policies: Collection[SwitchPolicy] | None = None,
    share: Collection[LayerAttribute] | None = None,
) -> DelayOutcome:
    """Delays under these policies (all applicable ones if None), beside those of the paper's protocol for a set A."""
    left_out: dict[SwitchPolicy, str] = {}
    if policies is None and application.file.adapt.processors == 1:
        left_out[SwitchPolicy.OVERLAP] = "gains nothing on one processor"
    chosen = [one for one in SwitchPolicy if one not in left_out and (policies is None or one in policies)]
    found = []
    for policy in chosen:
        switching = SwitchingApplication(with_policy(application, policy), policy)
        delays = {pair: delay_range(one) for pair, one in switching.layout.transitions.items()}
        found.append(PolicyDelays(switching, delays))
    return DelayOutcome(application, tuple(found), left_out, tuple(_paper(application, share)))


def delay_range(transition: Transition) -> DelayRange:
    """The delays of a switch; the worst is `Transition.worst_delay`."""
    return DelayRange.of([*_pieces(transition)])


def _pieces(transition: Transition) -> Iterator[DelayPiece]:
    ends = (*transition.old.critical_arrivals, transition.old.interval)
    for begin, end in pairwise(ends):
        most = transition.delay(begin)
        if transition.policy is SwitchPolicy.OVERLAP:
            floor = transition.new.latency
            falling = min(end - begin, max(0.0, most - floor))
            yield DelayPiece(most - falling, most, falling)
            if falling < end - begin:
                yield DelayPiece(floor, floor, end - begin - falling)
        else:
            yield DelayPiece(most - (end - begin), most, end - begin)


def _paper(application: AdaptiveApplication, share: Collection[LayerAttribute] | None) -> Iterator[PaperDelays]:
    graphs = [scenario_graph(one.name, one.network) for one in application.scenarios]
    graph = derive_supergraph(graphs, application.file.adapt.share if share is None else share)
    times = {one.name: tuple(one.times.values()) for one in application.scenarios}
    for old, new in permutations(times, 2):
        yield _paper_delays(graph, old, new, (times[old], times[new]))


def _paper_delays(graph: Supergraph, old: str, new: str, times: tuple[Sequence[float], Sequence[float]]) -> PaperDelays:
    before, after = graph.sequences[old], graph.sequences[new]
    moments = [RequestMoment.at(step, times[0]) for step in range(len(before))]
    printed, safe = printed_x(before, after), safe_x(before, after)
    races = (hazards(before, after, printed, moment.step) for moment in moments)
    return PaperDelays(
        old,
        new,
        _falling([naive_delay(*times, moment) for moment in moments], times[0]),
        _falling([barrier_delay(printed, *times, moment) for moment in moments], times[0]),
        _falling([barrier_delay(safe, *times, moment) for moment in moments], times[0]),
        tuple(dict.fromkeys(hazard.edge for found in races for hazard in found)),
        any(loses_last_step(printed, len(before), moment.step) for moment in moments),
    )


def _falling(delays: Sequence[float], times: Sequence[float]) -> DelayRange:
    """The delay at the start of each old step; it falls by the step's time until it ends."""
    return DelayRange.of([DelayPiece(delay - time, delay, time) for delay, time in zip(delays, times, strict=True)])
