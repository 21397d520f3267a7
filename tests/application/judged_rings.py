"""A ring of rows as the judge of applications knows it: which turns make and read rows, and which rows lie in it.

It takes nothing from those who size rings: a turn that would overwrite a row before it was read has to wait here, and
what waits for ever is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgewright.network import Array
from edgewright.program import ROWS, Plan, Step
from edgewright.program.deployment import Deployment, Fifo


class JudgedRing:
    """Rows are counted through all frames; none of a frame is made before all of the last one have been taken."""

    def __init__(self, ring: Fifo, deployment: Deployment) -> None:
        self.ring, self.rows, self.made, self.taken = ring, ring.rows, 0, 0
        self.height, self.row_bytes = ring.frame_rows, deployment.slot_size(ring) // ring.rows
        (self.source, self.reader), plans = ring.ends, deployment.plans
        self.output, self.input = (deployment.part_named[name].own(ring) for name in ring.ends)
        self._stages = {self.source: len(plans[self.source].program.stages) - 1, self.reader: 0}
        self._stops = {
            name: [
                max((self._rows(plans[name], name, step) for step in turn), default=0)
                for turn in plans[name].program.turns(plans[name].program.stages[stage])
            ]
            for name, stage in self._stages.items()
        }

    def _rows(self, plan: Plan, member: str, step: Step) -> int:
        """One past the last row of the frame that a step makes, or reads."""
        layer = plan.network.by_name[step.layer]
        if member == self.source:
            return step.region.bounds[ROWS][1] if layer.output == self.output else 0
        needs = zip(layer.inputs, plan.program.needs(step), strict=True)
        return max((region.bounds[ROWS][1] for name, region in needs if name == self.input), default=0)

    def is_at(self, member: str, stage: int) -> bool:
        """Whether it is this stage of the member that makes, or reads, rows."""
        return self._stages.get(member) == stage

    def turns(self, member: str) -> int:
        return len(self._stops[member])

    def stop(self, member: str, frame: int, turn: int) -> int:
        """One past the last row that a turn makes, or reads; as many as there are before the frame where none."""
        return frame * self.height + (self._stops[member][turn] if turn < self.turns(member) else 0)

    def waits(self, member: str, frame: int, turn: int) -> bool:
        """Whether the turn finds no room for a row that it makes, or not the row that it reads."""
        stop, first = self.stop(member, frame, turn), frame * self.height
        if member == self.reader:
            return stop > self.made
        return stop > first and self.taken < max(first, stop - self.rows)

    def place(self, row: int) -> slice:
        """The bytes of the ring in which a row lies."""
        at = row % self.height % self.rows * self.row_bytes
        return slice(at, at + self.row_bytes)

    @property
    def alive(self) -> Iterator[slice]:
        """The bytes of rows that were made and not taken."""
        return (self.place(row) for row in range(self.taken, self.made))

    def take(self, stop: int, memory: Array, frame: Array) -> None:
        """Copies rows out of the ring, into the frame as far as it has come."""
        for row in range(self.taken, stop):
            into = frame[:, row % self.height]
            into[...] = memory[self.place(row)].view(into.dtype).reshape(into.shape)
        self.taken = max(self.taken, stop)

    def make(self, stop: int, memory: Array, frame: Array) -> bool:
        """Whether rows that were put into the ring are those of the frame."""
        rows = range(self.made, stop)
        self.made = max(self.made, stop)
        return all(memory[self.place(row)].tobytes() == frame[:, row % self.height].tobytes() for row in rows)
