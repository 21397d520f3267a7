"""The page of a run over devices: work, memory and traffic of each, failures, results over time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from markupsafe import Markup

from .. import text
from ..cluster.running.lost_devices import Recovery
from ..cluster.running.monitor import ClusterStatus, Monitor, recovery_words, repeated
from ..files import write_atomic
from .charts import FOOT, LEFT, RIGHT, TOP, Axis, Card, asset, grid, html_page, opening

WIDTH, HEIGHT = 1060.0, 260.0
STEP_S, MOST_STEPS = 0.5, 400
LIVE_S = 2  # seconds between updates of the page


@dataclass
class RunHistory:
    """The number of results over time; thinned out for long runs."""

    points: list[tuple[float, int]] = field(default_factory=list)  # seconds, results
    step_s: float = STEP_S

    def note(self, monitor: Monitor) -> None:
        """Adds a result. Called once for each."""
        now = time.monotonic() - monitor.began
        if not self.points or now - self.points[-1][0] >= self.step_s:
            self.points.append((now, monitor.coordinator.keeper.taken))
        if len(self.points) > MOST_STEPS:
            self.points, self.step_s = self.points[::2], 2 * self.step_s

    def rates(self) -> list[tuple[float, float]]:
        """Results per second, at the middle of each step."""
        pairs = pairwise(list(self.points))  # another thread may add results meanwhile
        return [((a + b) / 2, (m - n) / (b - a)) for (a, n), (b, m) in pairs]


@contextmanager
def page_while_running(path: Path, monitor: Monitor, history: RunHistory) -> Iterator[None]:
    """While the block runs, rewrites the page every two seconds; the page reloads itself as often."""

    def write() -> None:
        write_run_page(path, monitor.status(), monitor.coordinator.recoveries, history, is_live=True)

    with repeated(write, LIVE_S):
        yield


def write_run_page(
    path: Path, status: ClusterStatus, recoveries: Sequence[Recovery], history: RunHistory, *, is_live: bool = False
) -> None:
    """One self-contained HTML document without a script."""
    largest = max((device.planned_bytes for device in status.devices), default=0)
    page = html_page(
        "cluster_run.html",
        f"{text.count(status.frames)} frames over {text.plural(len(status.devices), 'device')}",
        asset("page.css") + asset("charts.css") + asset("cluster.css"),
        cards=tuple(_cards(status)),
        notes=[],
        devices=status.devices,
        largest=max(1, largest),
        plan=text.printable(status.plan),
        losses=[text.printable(recovery_words(each)) for each in recoveries],
        rates=Markup(_rates_svg(history)),
        seconds=LIVE_S if is_live else 0,
    )
    write_atomic(path, page)


def _cards(status: ClusterStatus) -> Iterator[Card]:
    yield Card("frames per second", text.three_digits(status.frames_per_s), "the latest results")
    yield Card("latency", text.duration(status.latency_s), "from frame to result, in the median")
    yield Card("frames", text.count(status.frames), "in order, none lost")
    yield Card("losses of devices", text.count(status.recoveries), "survived" if status.recoveries else "none")


def _rates_svg(history: RunHistory) -> str:
    rates = history.rates()
    if len(rates) < 2:
        return ""
    across = Axis(0.0, rates[-1][0], LEFT, WIDTH - RIGHT)
    up = Axis(0.0, 1.1 * max(rate for _, rate in rates) or 1.0, HEIGHT - FOOT, TOP)
    line = " ".join(f"{across.at(at):.1f},{up.at(rate):.1f}" for at, rate in rates)
    return "".join(
        (
            *opening("sizes", WIDTH, HEIGHT, "results a second over time", False),
            *grid(across, up, ("seconds", "results a second"), most=5),
            f'<g class="hybrid"><polyline class="line" points="{line}"/></g>',
            "</svg>",
        )
    )
