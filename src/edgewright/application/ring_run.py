"""A pipeline whose partitions hand rows over, on this machine: the application's library, a thread for each of them."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from ..emit.native import FLAGS, compiler
from ..errors import EdgewrightError, InputError
from ..network import Array
from ..network.parts import NetworkPart
from ..run.statistics import FrameLog, MemoryUse, RunStatistics
from .app_ends import c_name, given_ends
from .library import AppLibrary
from .members import AppMember, partition

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


class RingPipeline:
    """Frames through the two partitions at the ends of a ring: one thread fills it, the caller's empties it."""

    def __init__(self, library: AppLibrary, path: Path, owner: str) -> None:
        self.statistics: RunStatistics | None = None
        self._fault: EdgewrightError | None = None  # of the thread that fills the ring
        self._library, self._owner = library, owner
        self._first, self._last = library.layout.application.members_of(owner)
        if any(map(library.members[self._first.name].plan.is_by_rows, self._first.network.inputs)):
            raise InputError(f"network '{owner}' pulls rows of its input; a pipeline is run here with whole frames")
        loaded = ctypes.CDLL(str(path))
        self._calls = {one.name: loaded[f"{library.name}_run_{c_name(one)}"] for one in (self._first, self._last)}

    def __call__(self, frames: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
        """The results of the frames, in their order, while the next ones are being computed."""
        given = [[np.ascontiguousarray(frame[name]) for name in self._inputs] for frame in frames]
        begun: list[float] = []
        filler = threading.Thread(target=self._fill, args=(given, begun), daemon=True)
        start, chronicle = time.perf_counter(), FrameLog()
        filler.start()
        for number in range(len(given)):
            results = self._results()
            self._run(self._last, [*results.values()])
            chronicle.add(begun[number], time.perf_counter())
            yield results
        filler.join()
        memory = MemoryUse(sum(self._library.arenas.values()), 0, self._library.weight_bytes)
        self.statistics = chronicle.statistics(time.perf_counter() - start, {}, memory)

    def _fill(self, frames: list[list[Array]], begun: list[float]) -> None:
        try:
            for frame in frames:
                begun.append(time.perf_counter())
                self._run(self._first, frame)
        except EdgewrightError as error:
            self._fault = error

    def _run(self, member: AppMember, ends: list[Array]) -> None:
        """One run, as soon as the library allows it."""
        pointers = [ctypes.c_void_p(end.ctypes.data) for end in ends]
        while status := self._calls[member.name](*pointers):
            if status > 2:
                raise EdgewrightError(f"partition '{member.name}' ended with {status}; please report this")
            if self._fault is not None:  # nobody fills the ring any more
                raise self._fault
            time.sleep(PAUSE)

    @property
    def _inputs(self) -> list[str]:
        """The inputs of the whole network, in the order in which the first partition takes them."""
        own = given_ends(self._library.layout, self._first)[0]
        return [self._part(0).inputs[name].tensor for name in own]

    def _results(self) -> dict[str, Array]:
        """Room for the outputs of the whole network, in the order in which the second partition gives them."""
        own, tensors = given_ends(self._library.layout, self._last)[1], self._last.network.tensors
        whole = self._part(1).outputs
        return {whole[x].tensor: np.empty(tensors[x].shape, tensors[x].dtype.numpy) for x in own}

    def _part(self, number: int) -> NetworkPart:
        application = self._library.layout.application
        return partition(application.networks[self._owner], application.partitions[self._owner], number)
