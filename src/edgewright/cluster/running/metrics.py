"""Figures of a run for other programs: lines of JSON in a file, and an endpoint for Prometheus."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import InputError
from .monitor import ClusterStatus, repeated

Look = Callable[[], ClusterStatus]


@contextmanager
def json_lines(path: Path, look: Look, every_s: float = 1.0) -> Iterator[None]:
    """While the block runs, a line with the status each second; one more at its end."""
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error

    def write() -> None:
        file.write(json.dumps(look().to_dict()) + "\n")
        file.flush()

    with file:
        try:
            with repeated(write, every_s):
                yield
        finally:
            write()


@contextmanager
def prometheus(port: int, look: Look) -> Iterator[int]:
    """While the block runs, http://…:PORT/metrics has the figures; yields the port, which is another one for 0."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
        from prometheus_client.core import GaugeMetricFamily
        from prometheus_client.registry import Collector
    except ImportError as error:
        raise InputError("figures for Prometheus take prometheus-client: pip install 'edgewright[cluster]'") from error

    class PrometheusFigures(Collector):
        def collect(self) -> Iterator[Any]:
            status = look()
            for name, what, value in _figures(status):
                yield GaugeMetricFamily(f"edgewright_{name}", what, value=value)
            for name, what, key in _OF_DEVICES:
                family = GaugeMetricFamily(f"edgewright_device_{name}", what, labels=["device"])
                for device in status.devices:
                    family.add_metric([device.name], float(getattr(device, key)))
                yield family

    registry = CollectorRegistry()
    registry.register(PrometheusFigures())
    try:
        server, thread = start_http_server(port, registry=registry)
    except OSError as error:
        raise InputError(f"cannot serve figures at port {port}: {error.strerror or error}") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_OF_DEVICES = (
    ("up", "1 while the device is there", "is_there"),
    ("computing_ratio", "Share of the time for which it computes", "computing"),
    ("planned_bytes", "Memory as planned", "planned_bytes"),
    ("allocated_bytes", "Memory as allocated", "allocated_bytes"),
    ("resident_bytes", "The process in RAM", "resident_bytes"),
)


def _figures(status: ClusterStatus) -> Iterator[tuple[str, str, float]]:
    yield "frames", "Frames with results", status.frames
    yield "frames_under_way", "Frames without results yet", status.under_way
    yield "frames_per_second", "Results a second, recently", status.frames_per_s
    yield "latency_seconds", "From a frame to its result, recently", status.latency_s
    yield "epoch", "1, and one more for each restart of the run", status.epoch
    yield "losses", "Devices lost so far", status.recoveries
