"""What the lanes of a stage touch: lanes run at the same time, so that none may write what another reads or writes.

Memory is looked at in cells of equal size. Each lane is carried out on memory as the stage found it; here it is noted
which cells it reads and writes, and afterwards which of them others touch too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..network import Array
from .places import StoredPiece


def cells_of(memory: Array, piece: StoredPiece, element: int, grid: int = 1) -> Array:
    """The cells of `grid` bytes that a piece lies in: its own shape, with an axis for the cells of an element."""
    size = memory.dtype.itemsize
    return np.ndarray(
        (*piece.shape, element // grid),
        memory.dtype,
        memory.data,
        piece.offset // grid * size,
        (*(stride // grid * size for stride in piece.strides), size),
    )


class LaneTouches:
    """The cells that lanes of a stage read and write: of the lane at work, and of all before it."""

    def __init__(self, memories: Mapping[str, Array]) -> None:
        self._sizes = {name: memory.size for name, memory in memories.items()}
        self.read, self.written = self._nothing(), self._nothing()
        self._read_before, self._written_before = self._nothing(), self._nothing()

    def next_lane(self) -> Mapping[str, Array]:
        """Ends the lane at work: the cells that it shares with one before it, and that one of the two writes."""
        contested = {
            name: (self.written[name] & (self._read_before[name] | self._written_before[name]))
            | (self.read[name] & self._written_before[name])
            for name in self._sizes
        }
        for name in self._sizes:
            self._read_before[name] |= self.read[name]
            self._written_before[name] |= self.written[name]
        self.read, self.written = self._nothing(), self._nothing()
        return contested

    def _nothing(self) -> dict[str, Array]:
        return {name: np.zeros(size, bool) for name, size in self._sizes.items()}
