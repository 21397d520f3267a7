"""Judges what deployments compute: interprets all parts over their FIFOs, frame by frame.

Workers start and end parts in a random order, one that could happen; slots are poisoned when they are free again, and
what is read while it may not be shows in the results. Every frame is held against the whole network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from ..network import Array, DType
from ..network.kernels import execute
from .deployment import OUTSIDE, Deployment, Fifo, Part, Worker
from .deployment_check import region_text
from .interpreter import POISON, Interpreter

Frame = Mapping[str, Mapping[str, Array]]  # of each network the inputs, or the outputs


def deployment_errors(
    deployment: Deployment, frames: Sequence[Frame], seed: int = 0, tolerance: float = 1e-4
) -> Iterator[str]:
    """What goes wrong when the frames are run in a random order of workers; nothing where all is right.

    Integers must be the reference's bit for bit; real numbers may differ by `tolerance`, absolute and relative, as
    parts may add in another order.
    """
    run = DeploymentRun(deployment, frames, Random(seed))
    with np.errstate(all="ignore"):
        wanted = [
            {network.name: execute(network, frame[network.name]) for network in deployment.networks} for frame in frames
        ]
        yield from run.errors(wanted, tolerance)


@dataclass
class _Ring:
    """The state of a FIFO: its slots, the number of frames written, and the number read by each reader."""

    fifo: Fifo
    shape: tuple[int, ...]
    dtype: DType
    slots: list[Array] = field(default_factory=list)
    written: dict[int, bool] = field(default_factory=dict)
    read: dict[str, set[int]] = field(default_factory=dict)

    def slot(self, frame: int) -> Array:
        return self.slots[frame % self.fifo.slots]

    def value(self, frame: int) -> Array:
        return self.slot(frame).view(self.dtype.numpy).reshape(self.shape)

    def is_free(self, frame: int) -> bool:
        before = frame - self.fifo.slots
        return before < 0 or all(before in self.read[reader] for reader in self.fifo.reading)

    def done(self, reader: str, frame: int) -> None:
        self.read[reader].add(frame)
        if all(frame in had for had in self.read.values()):
            self.slot(frame).fill(POISON)


# A worker that ends a part, or starts one; an exchange with the outside.
_Event = str | Worker | tuple[_Ring, bool]


class DeploymentRun:
    """The state of a deployment that processes frames, one event at a time."""

    def __init__(self, deployment: Deployment, frames: Sequence[Frame], random: Random) -> None:
        self.deployment, self.frames, self.random = deployment, frames, random
        self.rings = {fifo.what: self._ring(fifo) for fifo in deployment.fifos}
        self.interpreters = {
            (worker.name, part): Interpreter(plan, deployment.part_named[part].network)
            for worker in deployment.workers
            for part in worker.parts
            if (plan := deployment.part_named[part].plan) is not None
        }
        self.ahead = {worker.name: list(self._firings(worker))[::-1] for worker in deployment.workers}
        self.running: dict[str, tuple[str, int, bool]] = {}  # by worker: part, frame, whether it is computed
        self.given = {what: 0 for what, ring in self.rings.items() if ring.fifo.source == OUTSIDE}
        self.taken = {what: 0 for what, ring in self.rings.items() if OUTSIDE in ring.fifo.reading}

    def _ring(self, fifo: Fifo) -> _Ring:
        tensor = self.deployment.tensor(fifo)
        slots: list[Array] = [np.full(tensor.bytes, POISON, np.uint8) for _ in range(fifo.slots)]
        return _Ring(fifo, tensor.shape, tensor.dtype, slots, {}, {reader: set() for reader in fifo.reading})

    def _firings(self, worker: Worker) -> Iterator[tuple[str, int]]:
        for frame in range(len(self.frames)):
            if worker.takes(frame):
                yield from ((part, frame) for part in worker.parts)

    def errors(self, wanted: Sequence[Frame], tolerance: float) -> Iterator[str]:
        """Runs until all frames are out, or no worker can continue."""
        while True:
            events: list[_Event] = [*self._starts(), *self.running, *self._gifts(), *self._results()]
            if not events:
                break
            event = self.random.choice(events)
            if isinstance(event, str):
                problem = self._go_on(event)
            elif isinstance(event, Worker):
                problem = self._start(event)
            else:
                problem = self._exchange(event, wanted, tolerance)
            if problem:
                yield problem
                return
        late = {what: count for what, count in self.taken.items() if count < len(self.frames)}
        for what, count in late.items():
            stuck = [f"'{part}' for frame {frame}" for (part, frame) in (x[-1] for x in self.ahead.values() if x)]
            yield f"after {count} frames of {region_text(what)} no worker can continue; waiting: {', '.join(stuck)}"
            return
        for name, left in self.ahead.items():
            if left:
                yield f"all results are out, and worker '{name}' waits to run '{left[-1][0]}'"
                return

    def _starts(self) -> Iterator[Worker]:
        """The workers that can start a part."""
        for worker in self.deployment.workers:
            if worker.name in self.running or not self.ahead[worker.name]:
                continue
            name, frame = self.ahead[worker.name][-1]
            part = self.deployment.part_named[name]
            has_inputs = all(self.rings[what].written.get(frame) for what in part.inputs.values())
            if has_inputs and all(self.rings[what].is_free(frame) for what in part.outputs.values()):
                yield worker

    def _start(self, worker: Worker) -> str:
        name, frame = self.ahead[worker.name].pop()
        is_early = self.random.random() < 0.5  # it may compute at once and end late, or the other way round
        self.running[worker.name] = name, frame, is_early
        return self._compute(worker.name, name, frame) if is_early else ""

    def _go_on(self, worker: str) -> str:
        """Ends the part that a worker is running: its outputs become readable, its inputs are read."""
        name, frame, is_computed = self.running.pop(worker)
        problem = "" if is_computed else self._compute(worker, name, frame)
        part = self.deployment.part_named[name]
        for what in part.outputs.values():
            self.rings[what].written[frame] = True
        for what in part.inputs.values():
            self.rings[what].done(name, frame)
        return problem

    def _compute(self, worker: str, name: str, frame: int) -> str:
        part = self.deployment.part_named[name]
        before = {what: self.rings[what].slot(frame).copy() for what in part.inputs.values()}
        interpreter = self.interpreters.get((worker, name))
        if interpreter is None:
            self._execute(part, frame)
        else:
            self._interpret(interpreter, part, frame)
        for what, content in before.items():
            if not np.array_equal(content, self.rings[what].slot(frame)):
                return f"part '{name}' writes to {region_text(what)}, which others may be reading"
        return ""

    def _execute(self, part: Part, frame: int) -> None:
        given = {own: self.rings[what].value(frame).copy() for own, what in part.inputs.items()}
        for own, value in execute(part.network, given).items():
            if own in part.outputs:
                self.rings[part.outputs[own]].value(frame)[...] = value

    def _interpret(self, interpreter: Interpreter, part: Part, frame: int) -> None:
        """Interprets the part's plan. Tensors that the plan does not keep in slots are copied in and out."""
        ends = {**part.inputs, **part.outputs}
        slots = {own: self.rings[ends[own]].slot(frame) for own in interpreter.plan.outside}
        given = {own: self.rings[what].value(frame).copy() for own, what in part.inputs.items() if own not in slots}
        outputs = interpreter.run(given, slots)
        for own, what in part.outputs.items():
            if own not in slots:
                self.rings[what].value(frame)[...] = outputs[own]

    def _gifts(self) -> Iterator[tuple[_Ring, bool]]:
        """Network inputs that the outside world can put into a free slot now."""
        for what, frame in self.given.items():
            if frame < len(self.frames) and self.rings[what].is_free(frame):
                yield self.rings[what], True

    def _results(self) -> Iterator[tuple[_Ring, bool]]:
        """Network outputs that the outside world can take out of a slot now."""
        for what, frame in self.taken.items():
            if self.rings[what].written.get(frame):
                yield self.rings[what], False

    def _exchange(self, event: tuple[_Ring, bool], wanted: Sequence[Frame], tolerance: float) -> str:
        ring, is_gift = event
        what = ring.fifo.what
        if is_gift:
            frame = self.given[what]
            self.given[what] += 1
            ring.value(frame)[...] = self.frames[frame][what.network][what.tensor][what.region.slices]
            ring.written[frame] = True
            return ""
        frame = self.taken[what]
        self.taken[what] += 1
        value = ring.value(frame).copy()
        ring.done(OUTSIDE, frame)
        expected = wanted[frame][what.network][what.tensor][what.region.slices]
        if _are_equal(value, expected, tolerance):
            return ""
        others = (i for i, other in enumerate(wanted) if i != frame)
        for i in others:
            if _are_equal(value, wanted[i][what.network][what.tensor][what.region.slices], tolerance):
                return f"{region_text(what)} of frame {frame} is that of frame {i}"
        return f"{region_text(what)} of frame {frame} is not what the whole network gives"


def _are_equal(computed: Array, wanted: Array, tolerance: float) -> bool:
    if not np.issubdtype(wanted.dtype, np.floating):
        return np.array_equal(computed, wanted)
    close = max(tolerance, 4e-3) if wanted.dtype == np.float16 else tolerance
    return np.allclose(computed, wanted, rtol=close, atol=close, equal_nan=True)
