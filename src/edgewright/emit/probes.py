"""Instrumented libraries: between stages their C reads a clock, for profiles.

One build serves both: while probing is off, a frame takes as long as without probes.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..network import Array
from .files import own_source
from .library import Library
from .native import FLAGS, build_shared


@dataclass(frozen=True)
class TimedLibrary:
    """A loaded library with probes."""

    library: Library
    path: Path
    function: Any  # the run function
    loaded: ctypes.CDLL
    probe_seconds: float  # that one probe takes

    def stop_lanes(self) -> None:
        """Ends the threads of lanes, which the next run starts again on the cores of its caller."""
        if self.library.plan.lanes > 1:
            self.loaded[f"{self.library.name}_lanes_stop"]()

    def probe(self, is_on: bool) -> None:
        ctypes.c_int32.in_dll(self.loaded, f"{self.library.name}_is_probing").value = is_on

    def stage_seconds(self) -> Array:
        """What each stage of the last run took, less what a probe takes."""
        name, count = self.library.name, len(self.library.stages) + 1
        times = np.array((ctypes.c_int64 * count).in_dll(self.loaded, f"{name}_stage_times"))
        return np.maximum(np.diff(times) * 1e-9 - self.probe_seconds, 0.0)


def build_timed(library: Library, folder: Path, lanes: int = 1) -> TimedLibrary:
    """The library compiled with probes, and loaded."""
    # Of one lane the time that its thread computes, so that whatever else the machine does disturbs little. Lanes wait
    # for each other: there it is the time of the clock.
    clock = "CLOCK_MONOTONIC" if lanes > 1 else "CLOCK_THREAD_CPUTIME_ID"
    probe = {f"{library.name}_probe.c": own_source("probe_times", library.name)}
    profiled = replace(library, files={**library.files, **probe})
    settings = {"PROFILE": 1, "STAGE_COUNT": len(library.stages), "CLOCK": clock}
    defined = (f"-D{library.name.upper()}_{name}={value}" for name, value in settings.items())
    flags = (*FLAGS, "-D_POSIX_C_SOURCE=200809L", *defined)
    path = build_shared(profiled, folder, flags)
    loaded = ctypes.CDLL(str(path))
    function = loaded[f"{library.name}_run_in"]
    function.restype = None
    cost = loaded[f"{library.name}_probe_cost"]
    cost.restype = ctypes.c_int64
    timed = TimedLibrary(library, path, function, loaded, 0.0)
    timed.probe(True)
    return replace(timed, probe_seconds=min(cost() for _ in range(5)) * 1e-12)
