"""What a plan may do to need less memory than order and layout alone give."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..network import Tensor
from ..network.operators import Grain
from ..program import ROWS


@dataclass(frozen=True, slots=True)
class Techniques:
    """What a plan may do beyond order and layout. All off is what the papers do (`plain`)."""

    views: bool = True  # concat, split, slice and reshape for free
    in_place: bool = True  # element-wise layers overwrite a dying input; a residual add its operand
    overlap: bool = True  # other layers trail their dying input in the same memory
    planes: bool = True  # depthwise layers in place, channel by channel, with a small scratch
    pulled: tuple[tuple[str, int], ...] = ()  # inputs that come row by row, and the rows kept of each
    no_overlap: frozenset[str] = frozenset()  # layers whose output keeps off the memory of their inputs, to be faster
    scratch_bytes: tuple[tuple[str, int], ...] = ()  # scratch that kernels of a stage find free, in bytes
    outside: frozenset[str] = frozenset()  # inputs and outputs in the caller's memory
    reserved: tuple[str, int] | None = None  # a layer, and bytes that are left to others from its stage on

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing but order and layout, wherever inputs and outputs lie."""
        return replace(self, outside=frozenset()) == PLAIN

    def allows(self, grain: Grain) -> bool:
        return self.in_place if grain is Grain.ELEMENT else self.overlap

    def bytes(self, tensor: Tensor) -> int:
        """What must be kept of the tensor: all of it, or a few rows of a pulled input."""
        rows = dict(self.pulled).get(tensor.name)
        return tensor.bytes if rows is None else tensor.bytes // tensor.shape[ROWS] * rows


PLAIN = Techniques(views=False, in_place=False, overlap=False, planes=False)
