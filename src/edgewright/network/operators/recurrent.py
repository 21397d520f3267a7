"""One step of an LSTM layer from the sums of its gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from ..region import Region, Shape
from .base import Answer, Grain, Operator, RestrictedOperator, WidenedRegion, require

GATES = 4  # input, forget, candidate, output


class LstmPart(Enum):
    CELL = "cell"  # sigmoid(forget) * c + sigmoid(input) * tanh(candidate)
    HIDDEN = "hidden"  # sigmoid(output) * tanh(c), with the new c


@dataclass(frozen=True, slots=True)
class LstmStep(Operator):
    """Inputs: sums of the gates (..., 4 n: input, forget, candidate, output), c (..., n). Gives the part (..., n).

    `clip` limits a new cell to [-clip, clip]. Stored integers have 16 bits, as in TFLite's LSTM layers.
    """

    grain: ClassVar[Grain] = Grain.ELEMENT
    part: LstmPart
    clip: float | None = None

    def output_shape(self, shapes: Sequence[Shape]) -> Shape:
        gates, cell = shapes
        require(len(cell) > 0 and gates == (*cell[:-1], GATES * cell[-1]), f"gates {gates} do not fit a cell {cell}")
        return cell

    def needs(self, out: Region, shapes: Sequence[Shape]) -> tuple[Region, ...]:
        size, (first, last) = shapes[1][-1], out.bounds[-1]
        ends = (first, 2 * size + last) if self.part is LstmPart.CELL else (3 * size + first, 3 * size + last)
        return (Region((*out.bounds[:-1], ends)), out)

    def restrict(self, out: Region, shapes: Sequence[Shape]) -> Answer:
        reason = "the gates of each element lie far from each other"
        answer = self._restrict_lines(out, shapes, len(out.bounds) - 1, reason)
        if isinstance(answer, WidenedRegion):
            return answer
        return RestrictedOperator(self, (out.with_axis(-1, (0, shapes[0][-1])), out))
