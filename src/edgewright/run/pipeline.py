"""A deployment that runs: `with pipeline(deployment) as p: for y in p(frames): ...`.

Threads exist while frames are read from it, and no longer: an error, an interrupt or a reader that stops ends them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from ..errors import InputError
from .executors import Executor, executor_of
from .ring import Array, FrameSlot, MemoryBlock, Ring, StreamEnd, StreamState
from .specification import DEPLOYMENT_FILE, FILE, PipelineSpec, WorkerSpec, load_specification
from .statistics import FrameLog, MemoryUse, RunStatistics
from .workers import BoundPart, Feeder, Starts, WorkerThread

if TYPE_CHECKING:
    from ..program.deployment import Deployment

SOURCE_PATIENCE = 0.5  # seconds that a source is waited for when a stream has been stopped
Frame = Mapping[str, Array] | Array


def pipeline(what: Deployment | str | Path) -> Pipeline:
    """A deployment, compiled for this machine and loaded; or what was built before, by its folder.

    A folder that holds a deployment and nothing built is compiled as well.
    """
    if isinstance(what, str | Path) and ((Path(what) / FILE).exists() or not (Path(what) / DEPLOYMENT_FILE).exists()):
        return Pipeline(load_specification(Path(what)), Path(what))
    from ..program.deployment_file import load_deployment
    from .build import build_pipeline  # compiles, which takes more than numpy

    deployment = load_deployment(what) if isinstance(what, str | Path) else what
    keep = TemporaryDirectory(prefix="edgewright-")
    try:
        return Pipeline(build_pipeline(deployment, Path(keep.name)), Path(keep.name), keep)
    except BaseException:
        keep.cleanup()
        raise


class Pipeline:
    """Parts with their executors, slots and arenas in place. Called with frames, it gives their results in order.

    A frame is an array, or a mapping from input names to arrays where there are several; a result is a mapping from
    output names to arrays. Tensors are in our layout, channels last.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        folder: Path,
        keep: TemporaryDirectory[str] | None = None,
        executors: Mapping[tuple[str, str], Executor] | None = None,
    ) -> None:
        """With `executors`, by worker and part, none are loaded from the folder."""
        self.spec, self.folder, self._keep = spec, folder, keep
        self._block = MemoryBlock(spec.arena_bytes + spec.slot_bytes)
        self._slots = [
            [self._block.slot(fifo.shape, fifo.dtype, fifo.bytes) for _ in range(fifo.slots)] for fifo in spec.fifos
        ]
        self._executors = dict(executors) if executors is not None else self._loaded()
        self._state: StreamState | None = None
        self.statistics: RunStatistics | None = None  # of the last stream

    @property
    def memory(self) -> MemoryUse:
        """What has been allocated."""
        return MemoryUse(
            self.spec.arena_bytes,
            self.spec.slot_bytes,
            self.spec.weights_bytes,
            sum(executor.memory_estimate for executor in self._executors.values()),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is running, and gives everything back."""
        if self._state is not None:
            self._state.stop()
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()
        self._slots.clear()
        if self._keep is not None:
            self._keep.cleanup()

    def __call__(self, frames: Iterable[Frame]) -> Iterator[dict[str, Array]]:
        """The results of the frames, in their order, while the next ones are being computed."""
        if not self._slots:
            raise InputError("this pipeline has been closed; make a new one")
        if self._state is not None:
            raise InputError("this pipeline is running; read its results to the end, or close them, before new frames")
        return self._results(iter(frames))

    def _results(self, frames: Iterator[Frame]) -> Iterator[dict[str, Array]]:
        state, started, chronicle = StreamState(), Starts(), FrameLog()
        rings = [state.ring(slots, len(f.readers)) for f, slots in zip(self.spec.fifos, self._slots, strict=True)]
        workers = [WorkerThread(worker, self._bound(worker, rings), state, started) for worker in self.spec.workers]
        feeder = Feeder(state, [rings[i] for i in self.spec.sources], frames, self._write)
        results = [rings[i] for i in self.spec.results]
        self._state = state
        begun, frame = time.perf_counter(), 0
        try:
            for thread in (*workers, feeder):
                thread.start()
            while True:
                with state.lock:
                    slots = [ring.wait_for_frame(frame) for ring in results]
                    done = max(ring.done(frame) for ring in results)
                found = self._read(slots)
                with state.lock:
                    for ring in results:
                        ring.release(frame)
                chronicle.add(started.pop(frame, done), done)
                yield found
                frame += 1
        except StreamEnd:
            pass
        finally:
            state.stop()
            for worker in workers:
                if worker.ident is not None:
                    worker.join()
            if feeder.ident is not None:
                feeder.join(SOURCE_PATIENCE)
            seconds = time.perf_counter() - begun
            self.statistics = chronicle.statistics(seconds, {w.spec.name: w.times for w in workers}, self.memory)
            self._state = None
        if state.error is not None:
            raise state.error

    def _bound(self, worker: WorkerSpec, rings: list[Ring]) -> list[BoundPart]:
        """The worker's parts, joined to the rings of this stream."""
        parts = []
        for name in worker.parts:
            part = self.spec.part_named[name]
            reads = tuple(rings[port.fifo] for port in part.inputs)
            writes = tuple(rings[port.fifo] for port in part.outputs)
            parts.append(BoundPart(part, self._executors[worker.name, name], reads, writes))
        return parts

    def _loaded(self) -> dict[tuple[str, str], Executor]:
        """The executors of each worker's parts, which share the worker's arenas."""
        found: dict[tuple[str, str], Executor] = {}
        for worker in self.spec.workers:
            arenas = {memory: self._block.piece(size) for memory, size in self.spec.arenas(worker).items()}
            for name in worker.parts:
                part = self.spec.part_named[name]
                threads = max(1, len(worker.cores))
                found[worker.name, name] = executor_of(self.spec, part, self.folder, arenas, threads)
        return found

    def _write(self, frame: int, values: Frame, slots: list[FrameSlot]) -> None:
        """Copies a frame from outside into the slots of its inputs."""
        names = [tensor.name for tensor in self.spec.inputs]
        if not isinstance(values, Mapping):
            if len(names) != 1:
                raise InputError(f"frame {frame} is one array; expected a mapping with {', '.join(names)}")
            values = {names[0]: values}
        if missing := [name for name in names if name not in values]:
            raise InputError(f"frame {frame} has no value for input '{missing[0]}'; given are {sorted(values)}")
        given = {tensor.name: np.asarray(values[tensor.name]) for tensor in self.spec.inputs}
        for tensor in self.spec.inputs:
            value = given[tensor.name]
            if value.shape != tensor.shape or value.dtype != tensor.dtype:
                raise InputError(
                    f"frame {frame}: input '{tensor.name}' must be {tensor.dtype} of shape {tensor.shape}, "
                    f"got {value.dtype} of shape {value.shape}"
                )
        for index, slot in zip(self.spec.sources, slots, strict=True):
            fifo = self.spec.fifos[index]
            np.copyto(slot.array, given[fifo.tensor][fifo.slices])

    def _read(self, slots: list[FrameSlot]) -> dict[str, Array]:
        """The outputs, copied out of the slots that hold them or regions of them."""
        found = {tensor.name: np.empty(tensor.shape, tensor.dtype) for tensor in self.spec.outputs}
        for index, slot in zip(self.spec.results, slots, strict=True):
            fifo = self.spec.fifos[index]
            found[fifo.tensor][fifo.slices] = slot.array
        return found
