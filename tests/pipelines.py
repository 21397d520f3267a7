"""Random pipelines whose parts are Python functions, for tests of rings, workers and streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np

from edgewright.run.pipeline import Pipeline
from edgewright.run.ring import FrameSlot
from edgewright.run.specification import (
    OUTSIDE,
    FifoSpec,
    PartSpec,
    PipelineSpec,
    PortSpec,
    TensorSpec,
    WorkerSpec,
    specification_faults,
)

Compute = Callable[[list[np.ndarray]], int]


class PythonPart:
    """A part that adds up its inputs and its own number, perhaps after a while."""

    memory_estimate = 0

    def __init__(self, number: int, before: Callable[[int], None] = lambda value: None) -> None:
        self.number, self.before = number, before

    def close(self) -> None: ...

    def run(self, inputs: Sequence[FrameSlot], outputs: Sequence[FrameSlot]) -> None:
        values = [int(slot.array[0]) for slot in inputs]
        self.before(values[0])
        assert [int(slot.array[0]) for slot in inputs] == values, "a slot changed while it was read"
        for slot in outputs:
            slot.array[0] = sum(values) + self.number


def draw_pipeline(random: Random, parts: int = 5) -> PipelineSpec:
    """Parts in a row and over bridges, with FIFOs of one to three slots; groups of them replicated or not."""
    names = [f"p{i}" for i in range(parts)]
    readers: dict[str, set[str]] = {OUTSIDE: {names[0]}, **{name: set() for name in names}}
    for index, name in enumerate(names[1:], 1):
        readers[random.choice([OUTSIDE, *names[:index]])].add(name)
        readers[names[index - 1]].add(name)
    readers[names[-1]].add(OUTSIDE)
    fifos = [
        FifoSpec(f"t{source}", (1,), "int64", random.randint(1, 3), source, tuple(sorted(ends)), 64)
        for source, ends in readers.items()
        if ends
    ]
    workers = []
    start = 0
    while start < parts:
        end = random.randint(start + 1, parts)
        for replica in random.choice(([(0, 1)], [(0, 1)], [(0, 2), (1, 2)], [(0, 2), (1, 4), (3, 4)])):
            workers.append(WorkerSpec(f"w{len(workers)}", (), tuple(names[start:end]), replica))
        start = end
    return with_ports(fifos, names, workers)


def with_ports(fifos: Sequence[FifoSpec], names: Sequence[str], workers: Sequence[WorkerSpec]) -> PipelineSpec:
    """The specification in which each part has a port for each FIFO that is joined to it."""
    parts = tuple(
        PartSpec(
            name,
            "python",
            "",
            "",
            tuple(PortSpec("", i) for i, fifo in enumerate(fifos) if name in fifo.readers),
            tuple(PortSpec("", i) for i, fifo in enumerate(fifos) if name == fifo.source),
            layers=(f"layer of {name}",),
        )
        for name in names
    )
    inputs = tuple(TensorSpec(f.tensor, f.shape, f.dtype) for f in fifos if f.source == OUTSIDE)
    outputs = tuple(TensorSpec(f.tensor, f.shape, f.dtype) for f in fifos if OUTSIDE in f.readers)
    spec = PipelineSpec("random", "", (), inputs, outputs, parts, tuple(workers), tuple(fifos))
    assert not list(specification_faults(spec))
    return spec


def expected(spec: PipelineSpec, value: int) -> int:
    """What comes out for one frame, computed one part after the other."""
    found = {OUTSIDE: value}
    for number, part in enumerate(spec.parts):
        found[part.name] = sum(found[spec.fifos[port.fifo].source] for port in part.inputs) + number
    return found[spec.parts[-1].name]


def started(spec: PipelineSpec, before: Mapping[str, Callable[[int], None]] | None = None) -> Pipeline:
    """The pipeline; `before` is called by each part of that name with the value that it reads."""
    chosen = before or {}
    executors = {
        (worker.name, name): PythonPart(int(name[1:]), chosen.get(name, lambda value: None))
        for worker in spec.workers
        for name in worker.parts
    }
    return Pipeline(spec, Path(), executors=executors)


def threads_left() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("edgewright-")]


def delays(random: Random, share: float, longest: float) -> Callable[[int], None]:
    """Waits now and then, at most so long."""

    def wait(_value: int) -> None:
        if random.random() < share:
            time.sleep(random.random() * longest)

    return wait
