"""A pipeline whose partitions hand rows over, on this machine: the application's library, a thread for each of them."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..emit.native import FLAGS, compiler
from ..errors import EdgewrightError, InputError
from ..network import Array
from ..program.deployment import Part
from ..run.statistics import FrameLog, MemoryUse, RunStatistics
from .app_ends import c_name, given_ends
from .library import AppLibrary

PAUSE = 2e-5  # seconds until a run that was refused is tried again
THREADS_H = """\
#include <sched.h>
extern volatile char app_lock;
#define APP_WAIT() sched_yield()
#define APP_LOCK() while (__atomic_test_and_set(&app_lock, __ATOMIC_ACQUIRE)) sched_yield()
#define APP_UNLOCK() __atomic_clear(&app_lock, __ATOMIC_RELEASE)
"""


def build_threaded(library: AppLibrary, folder: Path) -> Path:
    """The library as a shared object, whose partitions wait for each other's rows."""
    where = folder.resolve()
    where.mkdir(parents=True, exist_ok=True)
    prefix = library.name.upper()
    texts = {"threads.h": THREADS_H.replace("APP", prefix), "threads.c": "volatile char app_lock;\n"}
    for name, content in {**library.files, **texts}.items():
        (where / name).write_bytes(content.encode() if isinstance(content, str) else content)
    target = where / f"lib{library.name}.so"
    sources = [name for name in library.sources if name.endswith(".c")]
    objects = [name for name in library.sources if not name.endswith(".c")]
    flags = [*FLAGS, "-std=gnu99", "-shared", "-fPIC", "-pthread", "-I", str(where)]
    files = ["-include", "threads.h", *sources, "threads.c", *objects]
    compiler().run([*flags, "-o", str(target), *files, "-lm"], where)
    return target


@dataclass
class FrameEnds:
    """What a partition is called with: the arrays of one frame that are inputs and outputs of the whole network."""

    inputs: list[Array]
    outputs: dict[str, Array]

    @property
    def pointers(self) -> list[ctypes.c_void_p]:
        return [ctypes.c_void_p(end.ctypes.data) for end in (*self.inputs, *self.outputs.values())]


class RingPipeline:
    """Frames through partitions that hand rows over: a thread for each, and the caller's for the last one."""

    def __init__(self, library: AppLibrary, path: Path, owner: str) -> None:
        self.statistics: RunStatistics | None = None
        self._fault: BaseException | None = None  # of a thread
        self._library = library
        self._members = library.deployment.parts_of(owner)
        for member in self._members:
            inputs = given_ends(library.deployment, member)[0]
            if any(map(library.members[member.name].plan.is_by_rows, inputs)):
                raise InputError(f"network '{owner}' pulls rows of its input; a pipeline is run here with whole frames")
        loaded = ctypes.CDLL(str(path))
        self._calls = {
            one.name: loaded[f"{library.name}_run_{c_name(library.application, one)}"] for one in self._members
        }

    def __call__(self, frames: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
        """The results of the frames, in their order, while the next ones are being computed."""
        ends = [{one.name: self._ends(one, frame) for one in self._members} for frame in frames]
        begun: list[float] = []
        *first, last = self._members
        threads = [threading.Thread(target=self._fill, args=(one, ends, begun), daemon=True) for one in first]
        start, chronicle = time.perf_counter(), FrameLog()
        for thread in threads:
            thread.start()
        for number, frame in enumerate(ends):
            self._run(last, frame[last.name])
            chronicle.add(begun[number], time.perf_counter())
            yield {name: value for each in frame.values() for name, value in each.outputs.items()}
        for thread in threads:
            thread.join()
        memory = MemoryUse(sum(self._library.arenas.values()), 0, self._library.weight_bytes)
        self.statistics = chronicle.statistics(time.perf_counter() - start, {}, memory)

    def _fill(self, member: Part, frames: list[dict[str, FrameEnds]], begun: list[float]) -> None:
        try:
            for frame in frames:
                if member is self._members[0]:
                    begun.append(time.perf_counter())
                self._run(member, frame[member.name])
        except BaseException as error:  # raised again where the rows are waited for
            self._fault = error

    def _run(self, member: Part, ends: FrameEnds) -> None:
        """One run, as soon as the library allows it."""
        while status := self._calls[member.name](*ends.pointers):
            if status > 2:
                raise EdgewrightError(f"partition '{member.name}' ended with {status}; please report this")
            if self._fault is not None:  # the thread that fills the ring has ended
                raise self._fault
            time.sleep(PAUSE)

    def _ends(self, member: Part, frame: Mapping[str, Array]) -> FrameEnds:
        """The inputs of a frame that a partition takes, and room for the results that it gives, in their order."""
        inputs, outputs = given_ends(self._library.deployment, member)
        tensors = member.network.tensors
        return FrameEnds(
            [np.ascontiguousarray(frame[member.inputs[name].tensor]) for name in inputs],
            {member.outputs[x].tensor: np.empty(tensors[x].shape, tensors[x].dtype.numpy) for x in outputs},
        )
