"""A running deployment: `with pipeline(deployment) as p: for y in p(frames): ...`.

Threads exist only while frames are read: an error, an interrupt or the end of reading ends them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

import numpy as np

from ..errors import InputError
from ..network.parts import TensorRegion
from ..network.tensor import Array, Tensor
from ..program.deployment import OUTSIDE, Deployment, Fifo, Worker
from ..program.deployment_file import FILE, REDUCED_FILE, load_deployment, load_reduced
from ..program.deployment_memory import worker_arenas
from .executors import Executor, executor_of
from .requirements import check_executable
from .ring import FrameSlot, MemoryBlock, Ring, StreamEnd, StreamState
from .statistics import FrameLog, MemoryUse, RunStatistics
from .workers import BoundPart, Feeder, Starts, WorkerThread

SOURCE_PATIENCE = 0.5  # seconds to wait for a source after a stream was stopped
Frame = Mapping[str, Array] | Array


def pipeline(what: Deployment | str | Path) -> Pipeline:
    """A deployment compiled for this machine and loaded; or one that was built before, by its folder.

    A folder with a deployment that is not built is compiled first.
    """
    if isinstance(what, str | Path) and ((Path(what) / REDUCED_FILE).exists() or not (Path(what) / FILE).exists()):
        return Pipeline(load_reduced(Path(what)), Path(what))
    from .build import build_pipeline  # compiling needs more than numpy

    deployment = load_deployment(what) if isinstance(what, str | Path) else what
    keep = TemporaryDirectory(prefix="edgewright-")
    try:
        return Pipeline(build_pipeline(deployment, Path(keep.name)), Path(keep.name), keep)
    except BaseException:
        keep.cleanup()
        raise


class Pipeline:
    """Parts with their executors, slots and arenas. Called with frames, it yields their results in order.

    A frame is an array, or a mapping from input names to arrays if there are several; a result is a mapping from output
    names to arrays. Tensors are in our layout, channels last.
    """

    def __init__(
        self,
        deployment: Deployment,
        folder: Path,
        keep: TemporaryDirectory[str] | None = None,
        executors: Mapping[tuple[str, str], Executor] | None = None,
    ) -> None:
        """Given `executors`, by worker and part, are not loaded from the folder."""
        check_executable(deployment)
        self.deployment, self.folder, self._keep = deployment, folder, keep
        self._sources = [fifo for fifo in deployment.fifos if fifo.source == OUTSIDE]
        self._results = [fifo for fifo in deployment.fifos if OUTSIDE in fifo.reading]
        self.inputs, self.outputs = self._ends(self._sources), self._ends(self._results)
        device = deployment.workers[0].device  # the only one
        layouts = {memory: layout for (home, memory), layout in deployment.arenas.items() if home == device}
        self._blocks = {memory: MemoryBlock(layout.bytes) for memory, layout in layouts.items()}
        self._slots: dict[TensorRegion, list[FrameSlot]] = {}
        for fifo in deployment.fifos:
            starts, tensor = layouts[fifo.memory].slots[fifo.what], deployment.tensor(fifo)
            self._slots[fifo.what] = [self._blocks[fifo.memory].slot(start, tensor) for start in starts]
        self._executors = dict(executors) if executors is not None else self._loaded()
        self._state: StreamState | None = None
        self.statistics: RunStatistics | None = None  # of the last stream

    @property
    def memory(self) -> MemoryUse:
        """The allocated memory."""
        slots = sum(fifo.slots * self.deployment.slot_bytes(fifo) for fifo in self.deployment.fifos)
        return MemoryUse(
            self.deployment.ram_bytes - slots,
            slots,
            self.deployment.built_weights_bytes,
            sum(executor.memory_estimate for executor in self._executors.values()),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stops running streams and releases everything."""
        if self._state is not None:
            self._state.stop()
        for executor in self._executors.values():
            executor.close()
        self._executors.clear()
        self._slots.clear()
        if self._keep is not None:
            self._keep.cleanup()

    def __call__(self, frames: Iterable[Frame]) -> Iterator[dict[str, Array]]:
        """Yields the results of the frames in order, while the next frames are computed."""
        if not self._slots:
            raise InputError("this pipeline has been closed; make a new one")
        if self._state is not None:
            raise InputError("this pipeline is running; read its results to the end, or close them, before new frames")
        return self._run(iter(frames))

    def _run(self, frames: Iterator[Frame]) -> Iterator[dict[str, Array]]:
        state, started, chronicle = StreamState(), Starts(), FrameLog()
        deployment = self.deployment
        rings = {fifo.what: state.ring(self._slots[fifo.what], len(fifo.readers)) for fifo in deployment.fifos}
        workers = [WorkerThread(worker, self._bound(worker, rings), state, started) for worker in deployment.workers]
        feeder = Feeder(state, [rings[fifo.what] for fifo in self._sources], frames, self._write)
        results = [rings[fifo.what] for fifo in self._results]
        self._state = state
        begun, frame = time.perf_counter(), 0
        try:
            for thread in (*workers, feeder):
                thread.start()
            while True:
                with state.lock:
                    slots = [ring.wait_for_frame(frame) for ring in results]
                    done = max(ring.done(frame) for ring in results)
                outputs = self._read(slots)
                with state.lock:
                    for ring in results:
                        ring.release(frame)
                chronicle.add(started.pop(frame, done), done)
                yield outputs
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
            self.statistics = chronicle.statistics(seconds, {w.worker.name: w.times for w in workers}, self.memory)
            self._state = None
        if state.error is not None:
            raise state.error

    def _ends(self, fifos: Iterable[Fifo]) -> dict[str, Tensor]:
        """The tensors whose regions these FIFOs carry, by their public names."""
        networks = self.deployment.network_named
        return {self._name(fifo): networks[fifo.what.network].tensors[fifo.what.tensor] for fifo in fifos}

    def _name(self, fifo: Fifo) -> str:
        """The public name of a tensor: with its network if there are several."""
        what = fifo.what
        return what.tensor if len(self.deployment.networks) == 1 else f"{what.network}/{what.tensor}"

    def _bound(self, worker: Worker, rings: Mapping[TensorRegion, Ring]) -> list[BoundPart]:
        """The worker's parts, connected to the rings of this stream."""
        parts = []
        for part in map(self.deployment.part_named.__getitem__, worker.parts):
            reads = tuple(rings[part.inputs[name]] for name in part.network.inputs)
            writes = tuple(rings[part.outputs[name]] for name in part.network.outputs)
            parts.append(BoundPart(part, self._executors[worker.name, part.name], reads, writes))
        return parts

    def _loaded(self) -> dict[tuple[str, str], Executor]:
        """The executors of each worker's parts, which share the worker's arenas."""
        executors: dict[tuple[str, str], Executor] = {}
        for worker in self.deployment.workers:
            arenas = {}
            for memory, size in worker_arenas(self.deployment, worker).items():
                start = self.deployment.arenas[worker.device, memory].workers[worker.name]
                arenas[memory] = self._blocks[memory].piece(start, size)
            for part in map(self.deployment.part_named.__getitem__, worker.parts):
                threads = max(1, len(worker.cores))
                executors[worker.name, part.name] = executor_of(part, self.folder, arenas, threads)
        return executors

    def _write(self, frame: int, values: Frame, slots: list[FrameSlot]) -> None:
        """Copies a frame into the slots of its inputs."""
        names = list(self.inputs)
        if not isinstance(values, Mapping):
            if len(names) != 1:
                raise InputError(f"frame {frame} is one array; expected a mapping with {', '.join(names)}")
            values = {names[0]: values}
        if missing := [name for name in names if name not in values]:
            raise InputError(f"frame {frame} has no value for input '{missing[0]}'; given are {sorted(values)}")
        given = {name: np.asarray(values[name]) for name in names}
        for name, tensor in self.inputs.items():
            if given[name].shape != tensor.shape or given[name].dtype != tensor.dtype.numpy:
                raise InputError(
                    f"frame {frame}: input '{name}' must be {tensor.dtype.value} of shape {tensor.shape}, "
                    f"got {given[name].dtype} of shape {given[name].shape}"
                )
        for fifo, slot in zip(self._sources, slots, strict=True):
            np.copyto(slot.array, given[self._name(fifo)][fifo.what.region.slices])

    def _read(self, slots: list[FrameSlot]) -> dict[str, Array]:
        """Copies the outputs from their slots."""
        outputs = {name: np.empty(tensor.shape, tensor.dtype.numpy) for name, tensor in self.outputs.items()}
        for fifo, slot in zip(self._results, slots, strict=True):
            outputs[self._name(fifo)][fifo.what.region.slices] = slot.array
        return outputs
