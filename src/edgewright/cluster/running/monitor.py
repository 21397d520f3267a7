"""What a run is doing, as plain data: for the terminal, a page, JSON lines and Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from ... import text
from ...run.machine import resident_bytes
from .coordinator import Coordinator
from .lost_devices import Recovery
from .prepared_plan import PreparedPlan

RECENT = 50  # frames that rates and latencies are taken from


@dataclass(frozen=True)
class DeviceStatus:
    name: str
    is_there: bool
    has_share: bool  # in the plan that is carried out
    computing: float  # share of the time since the epoch began
    waits_for: str  # the device whose data or memory its next part needs; "" when it computes
    planned_bytes: int  # weights, arenas, slots, and the frames that the gateway keeps
    allocated_bytes: int  # the same, as it was allocated
    resident_bytes: int  # the process in RAM, Python and all
    sent: dict[str, int]  # bytes to each device since the epoch began

    @property
    def state(self) -> str:
        """What it does, in a few words."""
        if not self.is_there:
            return "lost"
        if not self.has_share:
            return "has no part"
        if self.waits_for:
            return f"waits for {self.waits_for}" if self.waits_for != self.name else "waits for memory"
        return "computes"


@dataclass(frozen=True)
class ClusterStatus:
    seconds: float
    frames: int  # with results
    under_way: int
    frames_per_s: float  # recently
    latency_s: float  # recently, in the median
    epoch: int
    plan: str
    devices: tuple[DeviceStatus, ...]
    recoveries: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Monitor:
    """Looks at a coordinator from outside."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator, self.began = coordinator, time.monotonic()

    def status(self) -> ClusterStatus:
        coordinator, keeper = self.coordinator, self.coordinator.keeper
        with keeper.changed:
            times, latencies = list(keeper.finish_times)[-RECENT:], list(keeper.latencies)[-RECENT:]
            frames, under_way = keeper.finished, keeper.admitted - keeper.finished
        span = times[-1] - times[0] if len(times) > 1 else 0.0
        names = sorted({name for plan in coordinator.plans for name in plan.devices})
        return ClusterStatus(
            time.monotonic() - self.began,
            frames,
            under_way,
            (len(times) - 1) / span if span else 0.0,
            median(latencies) if latencies else 0.0,
            coordinator.epoch,
            coordinator.plan.name if coordinator.plan else "",
            tuple(self._device(name) for name in names),
            len(coordinator.recoveries),
        )

    def _device(self, name: str) -> DeviceStatus:
        coordinator, plan = self.coordinator, self.coordinator.plan
        is_gateway = name == coordinator.name
        engine = coordinator.current.engine
        pulse = (engine.pulse(resident_bytes()) if engine else None) if is_gateway else coordinator.pulses.get(name)
        is_there = is_gateway or name in coordinator.remotes
        has_share = plan is not None and name in plan.nodes
        is_fresh = pulse is not None and pulse.epoch == coordinator.epoch
        return DeviceStatus(
            name,
            is_there,
            has_share,
            pulse.computing_s / pulse.elapsed_s if pulse and is_fresh and pulse.elapsed_s else 0.0,
            pulse.awaited if pulse and is_fresh else "",
            plan.memory.get(name, 0) if plan else 0,
            self._allocated(name, plan) if plan and has_share and is_there else 0,
            pulse.resident if pulse else 0,
            dict(pulse.sent) if pulse and is_fresh else {},
        )

    def _allocated(self, name: str, plan: PreparedPlan) -> int:
        """Arenas and slots as the device reports them, its library's weights, and frames kept."""
        coordinator = self.coordinator
        library = plan.nodes[name].library
        kept = coordinator.keeper.most_kept if name == coordinator.name else 0
        return coordinator.allocated.get(name, 0) + (library.weights_bytes if library else 0) + kept


@contextmanager
def repeated(act: Callable[[], None], every_s: float) -> Iterator[None]:
    """While the block runs, a thread calls `act` every `every_s` seconds."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(every_s):
            act()

    thread = threading.Thread(target=work, name="edgewright-monitor", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def recovery_words(recovery: Recovery) -> str:
    """What happened, in a sentence."""
    after = (
        f"results again after {recovery.resumed - recovery.noticed:.2f} s" if recovery.resumed else "no result since"
    )
    again = (
        f"{text.plural(recovery.frames_again, 'frame')} computed again"
        if recovery.frames_again
        else "nothing computed again"
    )
    return f"device '{recovery.device}' was lost ({recovery.why}): {again} by plan '{recovery.plan}', {after}"


def recoveries_to_list(recoveries: Sequence[Recovery]) -> list[dict[str, Any]]:
    return [
        {
            "device": each.device,
            "why": each.why,
            "plan": each.plan,
            "frames_again": each.frames_again,
            "seconds_without_results": each.resumed - each.noticed if each.resumed else None,
        }
        for each in recoveries
    ]
