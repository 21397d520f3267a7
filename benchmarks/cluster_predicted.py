"""What the simulator says of a deployment whose devices share the cores of this machine: its rate, and a lone frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean, median

from cluster_places import PERIOD_S
from edgewright.cluster.deploying import ClusterDeployment
from edgewright.cluster.devices import Cluster
from edgewright.cluster.simulation import ClusterRun, simulate

STEPS = 10  # after which a prediction does not change any more
PHASES = 0.0, 0.25, 0.5, 0.75  # of a period
HALVINGS = 20
PIECES = 16  # of a transfer, beside others on the same cable: so TCP connections share one


@dataclass(frozen=True)
class MessageCosts:
    """What messages of few bytes cost, as a network shows that computes almost nothing."""

    delay_s: float = 0.0  # of a message on each of the two cables on its way
    core_s: float = 0.0  # of a core, for a message that is sent or received or a part that is run


@dataclass(frozen=True)
class Observed:
    """A deployment, and what was measured of it before the frames that are predicted."""

    planned: ClusterDeployment
    cluster: Cluster
    quota: float  # of a core, for each device
    core: Mapping[str, int]  # of this machine, by device
    parts_s: Mapping[str, float]  # of a core, for each part
    events: Mapping[str, Counter[str]]  # by device: for each part, itself and its messages
    lone_core_s: Mapping[str, float]  # of a core, by device, for a frame that is alone
    stream_core_s: Mapping[str, float]  # the same for one of many

    def event_s(self) -> float:
        """Of a core, for a message or the run of a part, where parts compute almost nothing."""
        rest = self._rest(self.lone_core_s)
        return median(rest[name] / each.total() for name, each in self.events.items())

    def messages_s(self, core_s: Mapping[str, float]) -> dict[str, float]:
        """Of a core, for the messages of each part: what a frame takes besides the parts, in equal shares."""
        rest, found = self._rest(core_s), dict[str, float]()
        for name, each in self.events.items():
            found |= {part: max(0.0, rest[name] * number / each.total()) for part, number in each.items()}
        return found

    def _rest(self, core_s: Mapping[str, float]) -> dict[str, float]:
        return {name: core_s[name] - sum(map(self.parts_s.__getitem__, each)) for name, each in self.events.items()}


def predicted_rate(observed: Observed, costs: MessageCosts, frames: int) -> float:
    """Frames per second of many frames. Devices compute and send as fast as their share of a core lets them.

    They handle messages while parts wait, so that messages hold nothing up until a device has no time left.
    """
    times = {part: each / observed.quota for part, each in observed.parts_s.items()}
    pieces = PIECES if len(observed.events) > 2 else 1  # two devices have one connection each way
    busiest = max(observed.stream_core_s.values()) / observed.quota
    return min(simulated(observed, frames, costs.delay_s, times, pieces).throughput, 1 / busiest)


def predicted_latency(observed: Observed, costs: MessageCosts) -> float:
    """Seconds of a frame that is alone: the mean over moments of a period at which it may arrive.

    Its parts have a core until the device's share of a period is used up, and beside other devices a part of the core.
    When parts run depends on how long they take, and the other way round: both are computed in turns.
    """
    events = {part: number for each in observed.events.values() for part, number in each.items()}
    messages = observed.messages_s(observed.lone_core_s)
    handling = {part: min(each, events[part] * costs.core_s) for part, each in messages.items()}  # in messages' delay
    needed = {part: each + messages[part] - handling[part] for part, each in observed.parts_s.items()}
    found = []
    for phase in PHASES:
        times: Mapping[str, float] = needed
        for step in range(STEPS):
            one = simulated(observed, 1, costs.delay_s, times)
            found += [one.latency_s] if step >= STEPS // 2 else []
            new = throttled(one, observed, needed, handling, phase * PERIOD_S)
            times = {part: (times[part] + each) / 2 for part, each in new.items()}
    return mean(found)


def throttled(
    run: ClusterRun, observed: Observed, needed: Mapping[str, float], handling: Mapping[str, float], begin_s: float
) -> dict[str, float]:
    """How long parts take that start as in this run, which begins so late in a period: CPU quotas end them for a while.

    What handling messages takes of a quota is used up when the part begins.
    """
    crowding, found, quota_s = crowded(run, observed), dict(needed), observed.quota * PERIOD_S
    for device in observed.events:
        period, left = -1, quota_s
        for span in sorted((each for each in run.spans if each.row == device), key=lambda each: each.start_s):
            start = now = begin_s + span.start_s
            if now // PERIOD_S > period:
                period, left = int(now // PERIOD_S), quota_s
            left -= handling[span.label]
            while left <= 0:
                period += 1
                now, left = period * PERIOD_S, left + quota_s
            rest = needed[span.label]
            while rest > left:
                period, rest = period + 1, rest - left
                now, left = period * PERIOD_S, quota_s
            now += rest * crowding[span.label]
            left -= rest
            found[span.label] = now - start
    return found


def crowded(run: ClusterRun, observed: Observed) -> dict[str, float]:
    """How much longer each part takes since other devices compute on the same core meanwhile."""
    spans = [span for span in run.spans if span.row in observed.core]
    times = sorted({time for span in spans for time in (span.start_s, span.end_s)})
    found = dict.fromkeys(observed.parts_s, 1.0)
    for span in spans:
        same = [other for other in spans if observed.core[other.row] == observed.core[span.row]]
        work = 0.0
        for begin, end in pairwise(times):
            if span.start_s <= begin and end <= span.end_s:
                work += (end - begin) / sum(each.start_s <= begin and end <= each.end_s for each in same)
        if work:
            found[span.label] = (span.end_s - span.start_s) / work
    return found


def predicted_delay(observed: Observed, latency_s: float, core_s: float) -> float:
    """The delay of a message on each cable with which the prediction for a lone frame is this latency."""
    low, high = 0.0, latency_s
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_more = predicted_latency(observed, MessageCosts(middle, core_s)) > latency_s
        low, high = (low, middle) if is_more else (middle, high)
    return (low + high) / 2


def simulated(
    observed: Observed, frames: int, delay_s: float, times: Mapping[str, float], pieces: int = 1
) -> ClusterRun:
    planned = observed.planned
    links = tuple(replace(link, latency_s=delay_s) for link in observed.cluster.links)
    spent = {(worker.name, part): times[part] for worker in planned.deployment.workers for part in worker.parts}
    return simulate(
        planned.deployment,
        replace(observed.cluster, links=links),
        frames,
        times=spent,
        turns=planned.turns,
        is_judged=True,
        under_way=planned.frames_kept,
        pieces=pieces,
    )
