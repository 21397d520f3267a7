"""The judge of joint layouts: all programs run in one arena, in random legal interleavings, with dead bytes poisoned.

It knows the relations as rules of what may start when, and nothing of conflict graphs. An overlap of buffers in use
together shows as a wrong result of a network, or as a changed buffer of the firmware.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from edgewright.memory.joint.conflicts import BufferUse, JointBuffer, slot_buffer
from edgewright.memory.joint.layout import JointLayout
from edgewright.network import Array, random_inputs
from edgewright.program import Plan, interpret
from edgewright.program.deployment import OUTSIDE, Deployment, Fifo, InterruptionPoints, RelationKind
from edgewright.program.interpreter import POISON, Interpreter
from edgewright.program.plan import slot_name
from tests.application.judged_rings import JudgedRing

VARIANTS = 2  # different inputs of each network


@dataclass(frozen=True, slots=True)
class JointFault:
    """What went wrong, and the moves that led to it: starts of networks, and stages that ran."""

    message: str
    moves: tuple[str, ...]


@dataclass
class _MemberRun:
    """A member at work on a frame."""

    interpreter: Interpreter
    inputs: Mapping[str, Array]
    frame: int
    next: int = 0  # the stage that comes next
    steps: Iterator[None] | None = None  # the rest of that stage, once it has begun
    turn: int = -1  # the last of its turns that has run
    pulled: Array | None = None  # a frame that comes out of a ring, as far as its rows have come


class Interleaving:
    """The arenas, the networks in progress, and the tensors that are kept for later."""

    def __init__(self, layout: JointLayout, seed: int, deployment: Deployment | None = None) -> None:
        """`deployment`: as it was laid out, with other plans."""
        self.layout, self.deployment = layout, deployment or layout.deployment
        self.random = random.Random(seed)
        self.arenas = {name: np.full(size, POISON, dtype=np.uint8) for name, size in layout.arenas.items()}
        self.running: dict[str, _MemberRun] = {}
        self.moves: list[str] = []
        self.done = dict.fromkeys(self.deployment.part_named, 0)  # frames
        self.results: dict[tuple[str, int], Mapping[str, Array]] = {}
        self.pending: dict[tuple[str, str], Array] = {}  # (network, input) -> what was handed over and is not yet read
        self.outputs: dict[tuple[str, str], Array] = {}  # kept outputs
        self.own = {
            buffer.name: np.frombuffer(self.random.randbytes(buffer.bytes), dtype=np.uint8)
            for buffer in self.deployment.buffers
        }
        self.rings = [JudgedRing(ring, self.deployment) for ring in self.deployment.rings]
        kept = [(fifo.writer, self._own(fifo, fifo.writer)) for fifo in self.deployment.fifos if fifo.is_kept]
        self.kept = sorted(kept)  # (part, input or output)
        self._variants: dict[str, list[Mapping[str, Array]]] = {}
        self._known: dict[tuple[str, bytes], Mapping[str, Array]] = {}
        for buffer in self.deployment.buffers:
            if buffer.parts is None:
                self._bytes(buffer.name)[: buffer.bytes] = self.own[buffer.name]
        for name, tensor in self.kept:
            if tensor in self.deployment.part_named[name].inputs:
                self._fill(name, tensor)

    def run(self, moves: int) -> Iterator[JointFault]:
        for _ in range(moves):
            legal = [*self._starts(), *self._stages()]
            if not legal:
                if self.running:
                    yield JointFault(f"{', '.join(sorted(self.running))} cannot go on", tuple(self.moves))
                return
            member = self.random.choice(legal)
            if member in self.running:
                yield from self._advance(member)
            else:
                self._start(member)
            self._poison_dead()
        for name, message in self._spoiled():
            yield JointFault(f"{message} '{name}' was overwritten", tuple(self.moves))

    # What may happen next.

    def _stages(self) -> Iterator[str]:
        """Members that may run their next stage: those that nobody has interrupted, and that wait for no row."""
        for member, run in self.running.items():
            is_interrupted = any(self.deployment.preemption(high, member) for high in self.running)
            if not is_interrupted and not self._waits(member, run):
                yield member

    def _starts(self) -> Iterator[str]:
        for member in self.deployment.part_named:
            if member not in self.running and self._is_ready(member):
                yield member

    def _is_ready(self, member: str) -> bool:
        for other in self._busy():
            if other != member and not self._may_start_beside(member, other):
                return False
        for fifo in self.deployment.shared:
            if member == fifo.writer and any(name in self.running for name in fifo.reading):
                return False  # it would be overwritten while it is read
            if member != fifo.writer and member in fifo.reading:
                waiting = {name for name in fifo.reading if (name, self._own(fifo, name)) in self.pending}
                if member not in waiting or self._earlier(fifo, member) & waiting:
                    return False
        return all(self._has_frame(member, fifo) for fifo in self.deployment.queues)

    def _own(self, fifo: Fifo, name: str) -> str:
        return self.deployment.part_named[name].own(fifo)

    def _earlier(self, fifo: Fifo, name: str) -> set[str]:
        """The networks that read a frame before this one, as the file lists them."""
        found: set[str] = set()
        orders = [one.parts for one in self.deployment.relations if one.kind is RelationKind.SAME_INPUT]
        for order in orders:
            if name in order:
                found |= {other for x in order[: order.index(name)] for other in (x, *self._earlier(fifo, x))}
        return found & set(fifo.reading)

    def _busy(self) -> set[str]:
        """Members that have begun, and those of a pipeline with frames under way."""
        found = set(self.running)
        for fifo in self.deployment.queues:
            if self._under_way(fifo):
                found |= {part.name for part in self.deployment.parts_of(fifo.what.network)}
        return found

    def _under_way(self, fifo: Fifo) -> int:
        return self.done[fifo.source] - min(self.done[name] for name in fifo.reading)

    def _unread(self, fifo: Fifo) -> int:
        """The first frame that some partition has still to read."""
        return min(self.done[name] + self._has_read(name) for name in fifo.reading)

    def _has_read(self, member: str) -> bool:
        """Whether the member has released its slots: when it is said to, or when no stage that is left reads them."""
        run = self.running.get(member)
        if run is None:
            return False
        fifos = [fifo for fifo in self.deployment.queues if member in fifo.reading]
        stages = {reader.stage for fifo in fifos for reader in fifo.readers if reader.part == member} - {None}
        if stages:
            return run.next > max(stage for stage in stages if stage is not None)
        tensors = [self._own(fifo, member) for fifo in fifos]
        plan = self.deployment.plans[member]
        buffers = {plan.views[tensor].buffer for tensor in tensors}
        left = [layer for stage in plan.program.stages[run.next :] for layer in stage.layers]
        read = {name for layer in left for name in plan.network.by_name[layer].inputs}
        return not any(plan.views[name].buffer in buffers for name in read if name in plan.views)

    def _has_frame(self, member: str, fifo: Fifo) -> bool:
        if member == fifo.source:
            return self.done[member] - self._unread(fifo) < fifo.slots
        if member in fifo.reading:
            if fifo.rows:
                return any(ring.ring == fifo and ring.made > ring.taken for ring in self.rings)
            return self.done[fifo.source] > self.done[member]
        return True

    def _rings(self, member: str, run: _MemberRun) -> list[JudgedRing]:
        """The rings that the member fills and empties in the stage that comes next."""
        return [ring for ring in self.rings if ring.is_at(member, run.next)]

    def _waits(self, member: str, run: _MemberRun) -> bool:
        """Whether the member waits for a row, or for room for one."""
        turn = run.turn + 1 if run.steps is not None else 0
        return any(ring.waits(member, run.frame, turn) for ring in self._rings(member, run))

    def _advance_rows(self, member: str, run: _MemberRun, rings: list[JudgedRing]) -> Iterator[JointFault]:
        """Turns of the stage, until it has to wait or others come; after the last one the stage is over."""
        assert run.steps is not None
        turns = rings[0].turns(member)
        while run.turn + 1 < turns:
            stops = [(ring, ring.stop(member, run.frame, run.turn + 1)) for ring in rings]
            for ring, stop in stops:
                if member == ring.reader and run.pulled is not None:
                    ring.take(stop, self._bytes(slot_buffer(ring.ring)), run.pulled)
            next(run.steps)
            run.turn += 1
            for ring, stop in stops:
                frame = self.results[ring.source, run.frame][ring.output]
                if member == ring.source and not ring.make(stop, self._bytes(slot_buffer(ring.ring)), frame):
                    yield JointFault(f"network '{member}' makes a wrong row of '{ring.output}'", tuple(self.moves))
            if run.turn + 1 < turns and (self._waits(member, run) or self.random.random() < 0.3):
                return

    def _may_start_beside(self, member: str, other: str) -> bool:
        if self.deployment.are_parallel(member, other):
            return True
        preemption = self.deployment.preemption(member, other)
        if preemption is None:
            return False
        if preemption.points is None or other not in self.running:
            return True
        run, allowed = self.running[other], preemption.points
        return (run.next, run.turn) in allowed.rows if run.steps is not None else run.next - 1 in allowed.after

    # What happens then.

    def _start(self, member: str) -> None:
        self.moves.append(f"start {member}")
        plan = self.deployment.plans[member]
        interpreter = Interpreter(plan, memories={**self.arenas, **self._slots(member)})
        network = plan.network
        inputs = dict(self.random.choice(self._inputs(member)))
        there: set[str] = set()
        for tensor in network.inputs:
            if (given := self.pending.pop((member, tensor), None)) is not None:
                inputs[tensor] = given
                there.add(tensor)
        pulled: dict[str, Array] = {}
        for fifo in self.deployment.queues:
            if member in fifo.reading:
                output, tensor = self._own(fifo, fifo.source), self._own(fifo, member)
                inputs[tensor] = self.results[fifo.source, self.done[member]][output]
                there.add(tensor)
                if fifo.rows:
                    pulled[tensor] = np.zeros_like(inputs[tensor])
        for buffer in self.deployment.buffers:
            if member in (buffer.parts or ()) and not self._is_alive(buffer.parts):
                self._bytes(buffer.name)[: buffer.bytes] = self.own[buffer.name]
        interpreter.begin({name: value for name, value in inputs.items() if name not in there} | pulled)
        run = _MemberRun(interpreter, inputs, self.done[member], pulled=next(iter(pulled.values()), None))
        self.running[member] = run
        if any(ring.source == member for ring in self.rings):
            self.results[member, run.frame] = self._expected(member, inputs)
        for fifo in (each for each in self.deployment.shared if each.writer == member):
            for name in fifo.reading:  # what was not read is lost
                self.pending.pop((name, self._own(fifo, name)), None)
                if fifo.source == OUTSIDE and name != member:
                    self.pending[name, self._own(fifo, name)] = inputs[self._own(fifo, member)]

    def _advance(self, member: str) -> Iterator[JointFault]:
        run = self.running[member]
        self.moves.append(f"{member} stage {run.next}")
        if run.steps is None:
            run.turn = -1
            run.steps = run.interpreter.by_turns(run.next)
        if rings := self._rings(member, run):
            yield from self._advance_rows(member, run, rings)
            if run.turn + 1 < rings[0].turns(member):
                return
        elif self._stops_at_a_row(member, run):
            return
        for _ in run.steps:
            pass
        run.next, run.steps = run.next + 1, None
        if run.next < len(run.interpreter.plan.program.stages):
            return
        expected = self._expected(member, run.inputs)
        for name, value in run.interpreter.results().items():
            if not run.interpreter.plan.is_by_rows(name) and value.tobytes() != expected[name].tobytes():
                yield JointFault(f"network '{member}' computes a wrong '{name}'", tuple(self.moves))
        for name, message in self._spoiled():
            yield JointFault(f"{message} '{name}' was overwritten", tuple(self.moves))
        self._finish(member, expected)

    def _stops_at_a_row(self, member: str, run: _MemberRun) -> bool:
        """Whether it stops within its stage: at the next place where others may come, or at one after that."""
        places = self.deployment.points_of(member).rows
        assert run.steps is not None
        if self.random.random() < 0.4 or not any(stage == run.next for stage, _ in places):
            return False
        for _ in run.steps:
            run.turn += 1
            if (run.next, run.turn) in places and self.random.random() < 0.3:
                return True
        return False

    def _within(self, use: BufferUse) -> tuple[int, int]:
        """The bytes of a buffer that are alive where its member stands within a stage."""
        run = self.running.get(use.part)
        if run is None or run.steps is None:
            return 0, 0
        place = InterruptionPoints(rows=frozenset(((run.next, run.turn),)))
        return self.layout.problem.spans(use.part, place).get(use.buffer, (0, 0))

    def _finish(self, member: str, expected: Mapping[str, Array]) -> None:
        del self.running[member]
        self.results[member, self.done[member]] = expected
        self.done[member] += 1
        for fifo in self.deployment.shared:
            for name in fifo.reading if fifo.source == member else ():
                self.pending[name, self._own(fifo, name)] = expected[self._own(fifo, member)]
        for name, tensor in self.kept:
            if name == member and tensor in self.deployment.part_named[name].inputs:
                self._fill(name, tensor)
            elif name == member and tensor in expected:
                self.outputs[name, tensor] = expected[tensor]

    def _fill(self, name: str, tensor: str) -> None:
        """Somebody, such as DMA, puts the next frame where the network will find it."""
        value = self.random.choice(self._inputs(name))[tensor]
        plan = self.deployment.plans[name]
        view = plan.views[tensor]
        buffer = next(b for b in plan.buffers if b.name == view.buffer)
        data = np.frombuffer(np.ascontiguousarray(value).tobytes(), dtype=np.uint8)
        self.arenas[buffer.memory][buffer.offset + view.offset :][: len(data)] = data
        self.pending[name, tensor] = value

    def _spoiled(self) -> Iterator[tuple[str, str]]:
        """Buffers of the firmware, and kept tensors, whose content has changed."""
        for buffer in self.deployment.buffers:
            is_alive = buffer.parts is None or self._is_alive(buffer.parts)
            if is_alive and (self._bytes(buffer.name)[: buffer.bytes] != self.own[buffer.name]).any():
                yield buffer.name, "buffer"
        for (name, tensor), value in self.outputs.items():
            if name not in self.running:
                found = Interpreter(self.deployment.plans[name], memories=self.arenas).results()[tensor]
                if found.tobytes() != value.tobytes():
                    yield f"{name}.{tensor}", "kept output"

    # Where things lie, and what is in use.

    def _is_alive(self, parts: tuple[str, ...] | None) -> bool:
        return parts is None or not self._busy().isdisjoint(parts)

    def _bytes(self, name: str) -> Array:
        return self.arenas[self.layout.home(name)][self.layout.at(name) :]

    def _slots(self, member: str) -> dict[str, Array]:
        """The memories of tensors that cross partitions, for the frame that the member is at."""
        found = {}
        for fifo in (each for each in self.deployment.queues if member in each.ends):
            if (tensor := self._own(fifo, member)) in self.deployment.plans[member].outside:
                slot = slot_buffer(fifo, self.done[member] % fifo.slots)
                found[slot_name(tensor)] = self._bytes(slot)[: self.deployment.tensor(fifo).bytes]
        return found

    def _poison_dead(self) -> None:
        alive = {name: np.zeros(len(arena), dtype=bool) for name, arena in self.arenas.items()}
        for buffer in self.layout.buffers:
            at, here = self.layout.at(buffer.name), alive[self.layout.home(buffer.name)]
            if self._is_in_use(buffer):
                here[at : at + buffer.size] = True
            for use in buffer.uses if buffer.fifo is None or not buffer.fifo.rows else ():
                low, high = self._within(use)
                here[at + low : at + high] = True
        for ring in self.rings:
            at, here = self.layout.at(slot_buffer(ring.ring)), alive[self.layout.home(slot_buffer(ring.ring))]
            for part in ring.alive:
                here[at:][part] = True
        for name, arena in self.arenas.items():
            arena[~alive[name]] = POISON

    def _is_in_use(self, buffer: JointBuffer) -> bool:
        if buffer.is_always:
            return True
        if buffer.fifo is not None and buffer.fifo.rows:
            return False  # some rows of it are
        if buffer.fifo is not None:
            slot, source = int(buffer.name.rpartition("[")[2][:-1]), buffer.fifo.source
            last = self.done[source] + (source in self.running)
            frames = range(self._unread(buffer.fifo), last)
            return any(frame % buffer.fifo.slots == slot for frame in frames)
        if buffer.during:
            return any(member in buffer.during for member in self._busy())
        for use in buffer.uses:
            plan = self.deployment.plans[use.part]
            tensors = [tensor for tensor in plan.network.inputs if plan.views[tensor].buffer == use.buffer]
            if any((use.part, tensor) in self.pending for tensor in tensors):
                return True
            run = self.running.get(use.part)
            is_between = run is not None and run.steps is None
            if run is not None and is_between and ((run.next == 0 and tensors) or use.first < run.next <= use.last):
                return True
        return False

    # What should come out.

    def _inputs(self, member: str) -> list[Mapping[str, Array]]:
        if member not in self._variants:
            network = self.deployment.part_named[member].network
            self._variants[member] = [random_inputs(network, seed=n) for n in range(VARIANTS)]
        return self._variants[member]

    def _expected(self, member: str, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """What the network computes alone, by its own plan."""
        key = (member, b"".join(inputs[name].tobytes() for name in sorted(inputs)))
        if key not in self._known:
            self._known[key] = interpret(self._plan_alone(member), inputs)
        return self._known[key]

    def _plan_alone(self, member: str) -> Plan:
        return self.layout.problem.plans[member]
