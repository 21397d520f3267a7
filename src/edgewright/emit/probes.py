"""Libraries that tell the time: between stages they note a clock, in C, for whoever profiles them.

One build serves both: while probing is off, a frame takes as long as without probes.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..network import Array
from .library import Library
from .native import FLAGS, build_shared

# Of one lane the time that its thread computes, so that whatever else the machine does disturbs little. Lanes wait for
# each other: there it is the time of the clock.
_PROBE = """/* What {name} calls where a stage begins. */
#include <stdint.h>
#include <time.h>
int64_t {name}_stage_times[{count}];
int32_t {name}_is_probing;
void {name}_probe(int32_t stage);
int64_t {name}_probe_cost(void);

static int64_t now(void)
{{
    struct timespec time;
    clock_gettime({clock}, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}}

void {name}_probe(int32_t stage)
{{
    if ({name}_is_probing)
        {name}_stage_times[stage] = now();
}}

/* Nanoseconds of a thousand probes. */
int64_t {name}_probe_cost(void)
{{
    const int64_t start = now();
    for (int32_t i = 0; i < 1000; i++)
        {name}_probe(0);
    return now() - start;
}}
"""


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
    clock = "CLOCK_MONOTONIC" if lanes > 1 else "CLOCK_THREAD_CPUTIME_ID"
    probe = _PROBE.format(name=library.name, count=len(library.stages) + 1, clock=clock)
    profiled = replace(library, files={**library.files, f"{library.name}_probe.c": probe})
    flags = (*FLAGS, "-D_POSIX_C_SOURCE=200809L", f"-D{library.name.upper()}_PROFILE")
    path = build_shared(profiled, folder, flags)
    loaded = ctypes.CDLL(str(path))
    function = loaded[f"{library.name}_run_in"]
    function.restype = None
    cost = loaded[f"{library.name}_probe_cost"]
    cost.restype = ctypes.c_int64
    timed = TimedLibrary(library, path, function, loaded, 0.0)
    timed.probe(True)
    return replace(timed, probe_seconds=min(cost() for _ in range(5)) * 1e-12)
