"""What may happen next on a device: which part may run, what may be sent, what may come. No threads, no sockets.

The rules are those of a Deployment (`program.deployment`). A part runs when its inputs hold the frame and its outputs
have a slot for it. A frame is sent over a link when the receiver has said that its slot is free: a credit. A slot is
free when all readers have read it, and when the FIFOs that share its bytes have had their turn. Parts and transfers are
served in the order in which they become ready, as in the simulator. The gateway keeps frames from outside until their
results are there; it sends them from where they are kept, also to itself. Results are copied out at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from .node_plan import NodeFifo, NodePlan, Number


@dataclass
class _Progress:
    """How far a FIFO is on this device. All numbers are of the next frame."""

    fifo: NodeFifo
    written: int
    granted: int  # that others may send
    read: dict[Number, int] = field(default_factory=dict)  # by parts of this device
    sent: dict[str, int] = field(default_factory=dict)  # to each device
    credited: dict[str, int] = field(default_factory=dict)  # that each device has room for


class FrameBook:
    """The state of all FIFOs and workers of a device from one frame on.

    An event concerns few FIFOs of hundreds: what it may make possible is noted, and nothing else is looked at.
    """

    def __init__(self, plan: NodePlan, first: int) -> None:
        self.plan, self.first = plan, first
        self.admitted = first  # at the gateway: the next frame that has not come from outside
        self.progress = {fifo.number: self._begun(fifo) for fifo in plan.fifos}
        self._turns: dict[Number, list[tuple[Number, int]]] = {}
        self._touched_by: dict[Number, list[Number]] = {number: [number] for number in self.progress}
        for turn in plan.turns:
            self._turns.setdefault(turn.then, []).append((turn.first, turn.frames))
            self._touched_by[turn.first].append(turn.then)
        self._touched = dict.fromkeys(self.progress)  # FIFOs that may have room since they were last looked at
        self._to_send: deque[tuple[int, Number, str]] = deque()  # frames that are here and that a device has room for
        self._next = [(0, first)] * len(plan.workers)  # of each worker: a part's place, and the frame
        self._ahead = dict.fromkeys(range(len(plan.workers)))  # workers whose next part may run, as far as is known
        self._blocked: dict[Number, list[int]] = {}  # the other workers, by the FIFO that they wait for

    def _begun(self, fifo: NodeFifo) -> _Progress:
        first, devices = self.first, fifo.sent_to
        read, sent = dict.fromkeys(fifo.readers, first), dict.fromkeys(devices, first)
        return _Progress(fifo, first, first, read, sent, dict(sent))

    # What may happen

    def runnable(self) -> Iterator[tuple[int, Number, int]]:
        """Workers that may run their next part: (worker, part, frame), who has waited longest first."""
        for worker in list(self._ahead):
            part, frame = self.next_of(worker)
            blocking = self._blocking(part, frame)
            if blocking is None:
                yield worker, part, frame
            else:
                del self._ahead[worker]
                self._blocked.setdefault(blocking.fifo.number, []).append(worker)

    def next_of(self, worker: int) -> tuple[Number, int]:
        """The part that a worker runs next, and the frame."""
        place, frame = self._next[worker]
        return self.plan.workers[worker][place], frame

    def waits_for(self, number: Number, frame: int) -> str | None:
        """The device that a part waits for, to read or to write; None when it may run."""
        blocking = self._blocking(number, frame)
        if blocking is None:
            return None
        if number in blocking.fifo.readers:
            return blocking.fifo.origin
        late = (device for device, sent in blocking.sent.items() if sent < frame)
        return next(late, self.plan.device)

    def _blocking(self, number: Number, frame: int) -> _Progress | None:
        """The FIFO that a part waits for: it does not hold the frame yet, or has no slot for it."""
        part = self.plan.parts[number]
        for each in map(self.progress.__getitem__, part.reads):
            if each.written <= frame:
                return each
        for each in map(self.progress.__getitem__, part.writes):
            if not self._is_free(each, frame):
                return each
        return None

    def new_credits(self) -> Iterator[tuple[NodeFifo, int]]:
        """Frames that may come now; each is told once. They come from another device, or are kept at this one."""
        touched, self._touched = self._touched, {}
        for progress in map(self.progress.__getitem__, touched):
            fifo = progress.fifo
            if fifo.origin != self.plan.device or (fifo.is_given and fifo.starts):
                while self._has_room(progress, progress.granted):
                    progress.granted += 1
                    yield fifo, progress.granted - 1

    def _has_room(self, progress: _Progress, frame: int) -> bool:
        if progress.fifo.starts:
            return self._is_free(progress, frame)
        return frame < self.admitted  # a result: there is room for those of frames that are under way

    def sendable(self) -> tuple[NodeFifo, int, str] | None:
        """What is to be sent next, and to which device: what has waited longest."""
        ahead = self._to_send
        while ahead and ahead[0][0] < self.progress[ahead[0][1]].sent[ahead[0][2]]:
            ahead.popleft()  # it was sent
        if not ahead:
            return None
        frame, number, device = ahead[0]
        return self.progress[number].fifo, frame, device

    def is_expected(self, number: Number, frame: int, size: int, origin: str) -> bool:
        """Whether a tensor may come: it is the next of its FIFO, credited, of its size and from the right device."""
        progress = self.progress.get(number)
        if progress is None or progress.fifo.origin != origin:
            return False
        return frame == progress.written < progress.granted and size == progress.fifo.wire_bytes

    def slot(self, number: Number, frame: int) -> int:
        """Where a frame lies in memory."""
        starts = self.progress[number].fifo.starts
        return starts[frame % len(starts)]

    # What has happened

    def admit(self, frames: int) -> None:
        """At the gateway: all frames before this number have come from outside."""
        before, self.admitted = self.admitted, max(self.admitted, frames)
        for number, progress in self.progress.items():
            if progress.fifo.is_given:
                for frame in range(before, self.admitted):
                    self._is_here(progress, frame)
            elif progress.fifo.is_result:
                self._touched[number] = None

    def ran(self, worker: int) -> None:
        """A worker's next part has run."""
        number, frame = self.next_of(worker)
        for each in self.plan.parts[number].writes:
            self.came(each, frame)
        for each in self.plan.parts[number].reads:
            self.progress[each].read[number] = frame + 1
            self._touch(each)
        place = self._next[worker][0] + 1
        self._next[worker] = (place, frame) if place < len(self.plan.workers[worker]) else (0, frame + 1)
        self._ahead.pop(worker, None)
        self._ahead[worker] = None  # behind those that have waited

    def came(self, number: Number, frame: int) -> None:
        """A frame was written to its slot."""
        progress = self.progress[number]
        progress.written = frame + 1
        if not progress.fifo.is_given:
            self._is_here(progress, frame)
        self._touch(number)

    def sent(self, number: Number, frame: int, device: str) -> None:
        self.progress[number].sent[device] = frame + 1
        self._touch(number)

    def credited(self, number: Number, frame: int, device: str) -> bool:
        """A device has room for a frame; False if that cannot be."""
        progress = self.progress.get(number)
        if progress is None or progress.credited.get(device) != frame:
            return False
        progress.credited[device] = frame + 1
        if frame < (self.admitted if progress.fifo.is_given else progress.written):
            self._to_send.append((frame, number, device))
        return True

    def _is_here(self, progress: _Progress, frame: int) -> None:
        """A frame can be sent to the devices that have room for it."""
        for device, credited in progress.credited.items():
            if frame < credited:
                self._to_send.append((frame, progress.fifo.number, device))

    def _touch(self, number: Number) -> None:
        """Something that a FIFO or its slot waits for has happened, or the slot of one that shares its bytes."""
        for each in self._touched_by[number]:
            self._touched[each] = None
            self._ahead.update(dict.fromkeys(self._blocked.pop(each, ())))

    def _is_free(self, progress: _Progress, frame: int) -> bool:
        fifo = progress.fifo
        return self._is_read(progress, frame - len(fifo.starts)) and all(
            self._is_read(self.progress[first], frame - frames) for first, frames in self._turns.get(fifo.number, ())
        )

    def _is_read(self, progress: _Progress, frame: int) -> bool:
        """Whether all readers and receivers have had a frame."""
        if frame < self.first:
            return True
        if progress.written <= frame or any(done <= frame for done in progress.read.values()):
            return False
        return progress.fifo.is_given or all(done > frame for done in progress.sent.values())
