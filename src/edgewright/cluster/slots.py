"""Where slots lie in a device's memory: those that are used at different times of a frame share their bytes in turn.

Inside a pipeline stage there is one frame at a time, so a slot is needed from the round in which it is filled to the
round that reads it last. A slot of which copies go to other devices is kept a round longer, while these are sent.
Workers of a device take turns and share an arena. It, and slots of what passes between stages, have bytes of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..dataflow.deployments.sharing import SlotTurn
from ..memory.layout import Item, LayoutEffort, LayoutProblem, place_optimal
from ..network.parts import TensorRegion
from ..program.deployment import OUTSIDE, SLOT_ALIGNMENT, ArenaLayout, Deployment, Fifo, aligned
from ..program.deployment_memory import worker_arenas


@dataclass(frozen=True, slots=True)
class _SlotUse:
    """A FIFO's slot on a device, and the rounds in which it is filled and used there."""

    fifo: Fifo
    first: int
    last: int
    bytes: int
    is_sent: bool  # from here to other devices
    is_received: bool


class SlotLayout:
    """The memories of all devices of a deployment; `rounds` has the round of each part, `stages` its stage."""

    def __init__(self, deployment: Deployment, rounds: Mapping[str, int], stages: Mapping[str, int]) -> None:
        self.deployment, self.rounds, self.stages = deployment, rounds, stages
        self.device_of = {part: worker.device for worker in deployment.workers for part in worker.parts}
        self.devices = tuple(dict.fromkeys(worker.device for worker in deployment.workers))
        self.offsets: dict[str, dict[TensorRegion, int]] = {}
        self.arenas = {(device, "ram"): self._placed(device) for device in self.devices}

    def _placed(self, device: str) -> ArenaLayout:
        mine = [worker for worker in self.deployment.workers if worker.device == device]
        workers = dict.fromkeys((worker.name for worker in mine), 0)  # one part of a device runs at a time
        end = max(sum(worker_arenas(self.deployment, worker).values()) for worker in mine)
        slots: dict[TensorRegion, tuple[int, ...]] = {}
        for fifo in self._fifos(device):
            if fifo.slots > 1:
                size = self.deployment.slot_bytes(fifo)
                slots[fifo.what] = tuple(end + n * size for n in range(fifo.slots))
                end += size * fifo.slots
        self.offsets[device] = self._in_turn(device)
        slots |= {what: (end + at,) for what, at in self.offsets[device].items()}
        sizes = (at + self.deployment.slot_bytes(fifo) for fifo in self._fifos(device) for at in slots[fifo.what])
        return ArenaLayout(max([end, *sizes]), workers, slots)

    def _fifos(self, device: str) -> Iterator[Fifo]:
        return (fifo for fifo in self.deployment.fifos if device in self.deployment.devices_of(fifo))

    def _in_turn(self, device: str) -> dict[TensorRegion, int]:
        """Addresses of single slots; those of different stages are never in turn."""
        found: dict[TensorRegion, int] = {}
        end = 0
        by_stage: dict[int, list[_SlotUse]] = {}
        for use in self.uses(device):
            by_stage.setdefault(self.stages[next(x for x in use.fifo.ends if x != OUTSIDE)], []).append(use)
        for uses in by_stage.values():
            items = [Item(str(n), use.first, use.last + 1, use.bytes) for n, use in enumerate(uses)]
            effort = LayoutEffort.NORMAL if len(items) < 150 else LayoutEffort.QUICK
            placement = place_optimal(LayoutProblem(tuple(items), alignment=SLOT_ALIGNMENT), effort=effort)
            found |= {use.fifo.what: end + placement.offsets[str(n)] for n, use in enumerate(uses)}
            end += aligned(placement.peak)
        return found

    def uses(self, device: str) -> list[_SlotUse]:
        """The single slots of a device."""
        return [self._use(device, fifo) for fifo in self._fifos(device) if fifo.slots == 1]

    def _use(self, device: str, fifo: Fifo) -> _SlotUse:
        begin = self.rounds[fifo.source] if fifo.source != OUTSIDE else 0
        near = [self.rounds[name] for name in fifo.reading if self.device_of.get(name) == device]
        is_own = self.device_of.get(fifo.source) == device
        is_sent = is_own and any(self.device_of.get(name) != device for name in fifo.reading)
        last = max([begin, *near, *([begin + 1] if is_sent else ())])
        if OUTSIDE in fifo.ends and len(self.devices) == 1:  # nothing comes over a link that could wait
            begin, last = 0, max(self.rounds.values())
        return _SlotUse(fifo, begin, last, self.deployment.slot_bytes(fifo), is_sent, not is_own)

    def turns(self) -> tuple[SlotTurn, ...]:
        """Who waits for whose bytes, where neither the order of parts nor their data say it already."""
        return tuple(turn for device in self.devices for turn in self._turns(device))

    def _turns(self, device: str) -> Iterator[SlotTurn]:
        uses = sorted(self.uses(device), key=lambda use: (use.first, use.last))
        offsets = self.offsets[device]
        held: list[tuple[int, int, _SlotUse, int]] = []  # who was last in which bytes, and in which frame
        for frame, use in [(frame, use) for frame in (0, 1) for use in uses]:
            start = offsets[use.fifo.what]
            stop = start + use.bytes
            for _, _, before, then in [each for each in held if each[0] < stop and start < each[1]]:
                if frame and before.fifo != use.fifo and self._must_wait(device, before, use, frame - then):
                    yield SlotTurn(device, before.fifo.what, use.fifo.what, frame - then)
            held = [rest for each in held for rest in _without(each, start, stop)]
            held.append((start, stop, use, frame))

    def _must_wait(self, device: str, before: _SlotUse, use: _SlotUse, frames: int) -> bool:
        """Whether a frame could come into these bytes while others need what is there."""
        if not use.is_received:
            return before.is_sent
        if frames or before.is_sent:
            return True
        source = self.deployment.part_named.get(use.fifo.source)
        given = [
            self.rounds[maker]
            for what in (source.inputs.values() if source else ())
            if self.device_of.get(maker := self.source_of[what]) == device
        ]
        return max(given, default=-1) < before.last

    @cached_property
    def source_of(self) -> Mapping[TensorRegion, str]:
        return {fifo.what: fifo.source for fifo in self.deployment.fifos}


def _without(held: tuple[int, int, _SlotUse, int], start: int, stop: int) -> Sequence[tuple[int, int, _SlotUse, int]]:
    """What is left of a range of bytes besides another one."""
    low, high, *rest = held
    parts = ((low, min(high, start)), (max(low, stop), high))
    return [(a, b, *rest) for a, b in parts if a < b]  # type: ignore[misc]
