"""What the simulator says of a deployment whose devices share the cores of this machine: its rate, and a lone frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from cluster_places import with_quota
from edgewright.cluster.deploying import ClusterDeployment
from edgewright.cluster.devices import Cluster
from edgewright.cluster.simulation import ClusterRun, simulate

CLOSE = 0.01  # share of a time within which two steps of a prediction agree
STEPS = 20


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
    cores: int  # of this machine
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
    """Frames per second of many frames. Devices compute and send as fast as their share of a core lets them."""
    messages = observed.messages_s(observed.stream_core_s)
    times = {part: (each + messages[part]) / observed.quota for part, each in observed.parts_s.items()}
    return simulated(observed, frames, costs.delay_s, times).throughput


def predicted_latency(observed: Observed, costs: MessageCosts) -> float:
    """Seconds of a frame that is alone.

    Its parts have a whole core until the share of a period is used up, or until more devices compute than there are
    cores. All are slower where a device would use more than its share of the time that the frame takes.
    """
    events = {part: number for each in observed.events.values() for part, number in each.items()}
    messages = observed.messages_s(observed.lone_core_s)
    needed = {  # of a core, besides what is part of a message's delay
        part: each + max(0.0, messages[part] - events[part] * costs.core_s) for part, each in observed.parts_s.items()
    }
    slower, crowding = 1.0, dict.fromkeys(needed, 1.0)
    for _ in range(STEPS):
        times = {
            part: max(slower * each, crowding[part] * each, with_quota(each, observed.quota))
            for part, each in needed.items()
        }
        one = simulated(observed, 1, slower * costs.delay_s, times)
        excess = max(observed.lone_core_s.values()) / (observed.quota * one.latency_s)
        before, crowding = crowding, crowded(one, observed)
        slower = min(slower * max(1.0, excess), 1 / observed.quota)
        is_settled = all(abs(crowding[part] - each) < CLOSE for part, each in before.items())
        if is_settled and (excess < 1 + CLOSE or slower == 1 / observed.quota):
            break
    return one.latency_s


def crowded(run: ClusterRun, observed: Observed) -> dict[str, float]:
    """How much longer each part takes since more devices compute meanwhile than there are cores."""
    devices = observed.cluster.device_named
    spans = [span for span in run.spans if span.row in devices]
    times = sorted({time for span in spans for time in (span.start_s, span.end_s)})
    found: dict[str, float] = dict.fromkeys(observed.parts_s, 1.0)
    for span in spans:
        own = [(a, b) for a, b in pairwise(times) if span.start_s <= a and b <= span.end_s]
        work = sum((b - a) / max(1.0, _at_work(spans, a, b) / observed.cores) for a, b in own)
        if work:
            found[span.label] = (span.end_s - span.start_s) / work
    return found


def _at_work(spans: list, begin: float, end: float) -> int:  # type: ignore[type-arg]
    return len({span.row for span in spans if span.start_s <= begin and end <= span.end_s})


def predicted_delay(observed: Observed, latency_s: float, core_s: float) -> float:
    """The delay of a message on each cable with which the prediction for a lone frame is this latency."""
    low, high = 0.0, latency_s
    for _ in range(STEPS):
        middle = (low + high) / 2
        is_more = predicted_latency(observed, MessageCosts(middle, core_s)) > latency_s
        low, high = (low, middle) if is_more else (middle, high)
    return (low + high) / 2


def simulated(observed: Observed, frames: int, delay_s: float, times: Mapping[str, float]) -> ClusterRun:
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
    )
