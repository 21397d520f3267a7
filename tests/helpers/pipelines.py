"""Random pipelines whose parts are Python functions, for tests of rings, workers and streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np

from edgewright.network import DType, Network, Region, Tensor
from edgewright.network.parts import TensorRegion
from edgewright.program.deployment import OUTSIDE, BuiltPart, Deployment, Fifo, Part, Reader, Worker
from edgewright.program.deployment_check import deployment_faults
from edgewright.program.deployment_memory import laid_out
from edgewright.run.pipeline import Pipeline
from edgewright.run.ring import FrameSlot

NAME = "random"
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


def draw_pipeline(random: Random, parts: int = 5) -> Deployment:
    """Parts in a row and over bridges, with FIFOs of one to three slots; groups of them replicated or not."""
    names = [f"p{i}" for i in range(parts)]
    readers: dict[str, set[str]] = {OUTSIDE: {names[0]}, **{name: set() for name in names}}
    for index, name in enumerate(names[1:], 1):
        readers[random.choice([OUTSIDE, *names[:index]])].add(name)
        readers[names[index - 1]].add(name)
    readers[names[-1]].add(OUTSIDE)
    fifos = [fifo(f"t{source}", source, sorted(ends), random.randint(1, 3)) for source, ends in readers.items() if ends]
    workers = []
    start = 0
    while start < parts:
        end = random.randint(start + 1, parts)
        for replica in random.choice(([(0, 1)], [(0, 1)], [(0, 2), (1, 2)], [(0, 2), (1, 4), (3, 4)])):
            workers.append(worker(f"w{len(workers)}", names[start:end], replica))
        start = end
    return joined(fifos, names, workers)


def fifo(tensor: str, source: str, readers: Sequence[str], slots: int) -> Fifo:
    """Slots for one number."""
    what = TensorRegion(NAME, tensor, Region(((0, 1),)))
    return Fifo(what, source, tuple(map(Reader, readers)), slots)


def worker(name: str, parts: Sequence[str], replica: tuple[int, int] = (0, 1)) -> Worker:
    return Worker(name, "this", "cpu", (), tuple(parts), replica)


def joined(fifos: Sequence[Fifo], names: Sequence[str], workers: Sequence[Worker]) -> Deployment:
    """The reduced deployment in which each part has an input or output for each FIFO that is joined to it."""
    parts = []
    for name in names:
        inputs = {f.what.tensor: f.what for f in fifos if name in f.reading}
        outputs = {f.what.tensor: f.what for f in fifos if name == f.source}
        built = BuiltPart("python", "", "", 0, (f"layer of {name}",))
        parts.append(Part(name, network(name, inputs, outputs), None, inputs, outputs, built=built))
    brought = [f.what.tensor for f in fifos if f.source == OUTSIDE]
    taken = [f.what.tensor for f in fifos if OUTSIDE in f.reading]
    whole = network(NAME, brought, taken, [f.what.tensor for f in fifos])
    draft = Deployment((whole,), tuple(parts), tuple(workers), tuple(fifos), {})
    deployment = replace(draft, arenas=laid_out(draft))
    assert not list(deployment_faults(deployment))
    return deployment


def network(name: str, inputs: Iterable[str], outputs: Iterable[str], others: Iterable[str] = ()) -> Network:
    """A network without layers, whose tensors are single numbers."""
    tensors = {each: Tensor(each, (1,), DType.INT64) for each in (*inputs, *outputs, *others)}
    return Network(name, tuple(inputs), tuple(outputs), (), tensors, {})


def expected(deployment: Deployment, value: int) -> int:
    """What comes out for one frame, computed one part after the other."""
    found = {OUTSIDE: value}
    for number, part in enumerate(deployment.parts):
        found[part.name] = sum(found[each.source] for each in deployment.reads[part.name].values()) + number
    return found[deployment.parts[-1].name]


def started(deployment: Deployment, before: Mapping[str, Callable[[int], None]] | None = None) -> Pipeline:
    """The pipeline; `before` is called by each part of that name with the value that it reads."""
    chosen = before or {}
    executors = {
        (worker.name, name): PythonPart(int(name[1:]), chosen.get(name, lambda value: None))
        for worker in deployment.workers
        for name in worker.parts
    }
    return Pipeline(deployment, Path(), executors=executors)


def allocated(pipeline: Pipeline) -> int:
    """Bytes that it took from the system for arenas and slots."""
    return sum(block.size for block in pipeline._blocks.values())


def threads_left() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("edgewright-")]


def delays(random: Random, share: float, longest: float) -> Callable[[int], None]:
    """Waits now and then, at most so long."""

    def wait(_value: int) -> None:
        if random.random() < share:
            time.sleep(random.random() * longest)

    return wait
