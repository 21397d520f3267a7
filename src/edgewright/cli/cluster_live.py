"""The live view of a run over devices: a table that is redrawn while frames are processed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.live import Live
from rich.table import Table

from .. import text
from ..cluster.running.monitor import ClusterStatus, Monitor, repeated
from ..network.reference import OutputDifference
from .common import console, shown, table

REFRESH_S = 0.5


def status_table(status: ClusterStatus) -> Table:
    """The state of each device: its part, memory and traffic."""
    made = table(
        f"{status.frames:,} frames, {text.three_digits(status.frames_per_s)} frames/s, plan '{shown(status.plan)}'",
        "device", "state", ">computes", ">memory", ">as planned", ">process", "sends",
    )  # fmt: skip
    for device in status.devices:
        sent = ", ".join(f"{text.rounded_size(size)} to {shown(name)}" for name, size in device.sent.items())
        made.add_row(
            shown(device.name),
            shown(device.state),
            f"{device.computing:.0%}" if device.has_share else "",
            text.size(device.allocated_bytes) if device.allocated_bytes else "",
            text.size(device.planned_bytes) if device.has_share else "",
            text.rounded_size(device.resident_bytes) if device.resident_bytes else "",
            sent,
        )
    return made


def run_figures(status: ClusterStatus, worst: OutputDifference | None, reference: str) -> str:
    """The figures of the whole run in one sentence."""
    figures = (
        f"{status.frames:,} frames: {text.three_digits(status.frames_per_s)} frames/s, "
        f"latency {text.duration(status.latency_s)}"
    )
    if status.recoveries:
        figures += f", {text.plural(status.recoveries, 'loss')} survived"
    return f"{figures}; all results are {comparison(worst, reference)}" if worst else figures


def comparison(worst: OutputDifference, reference: str) -> str:
    """How results compare with the reference's, as the end of a sentence that begins "results are"."""
    if worst.largest == 0:
        return f"equal to those of {reference}"
    off = f"{worst.largest:.2g} off, {worst.allowed:.2g} allowed"
    return f"{'within' if worst.passes else 'outside'} the tolerance of those of {reference} ({off})"


def difference_to_dict(worst: OutputDifference) -> dict[str, Any]:
    return {"equal": worst.passes, "difference": worst.largest, "allowed": worst.allowed}


@contextmanager
def following(monitor: Monitor) -> Iterator[None]:
    """Shows the table while the block runs, twice a second; does nothing without a terminal."""
    if not console.is_terminal:
        yield
        return
    with Live(status_table(monitor.status()), console=console, transient=True, auto_refresh=False) as live:

        def refresh() -> None:
            live.update(status_table(monitor.status()), refresh=True)

        with repeated(refresh, REFRESH_S):
            yield
