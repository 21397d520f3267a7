"""The techniques that lower memory beyond order and layout."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..network import Tensor
from ..network.operators import Grain
from ..program import ROWS


@dataclass(frozen=True, slots=True)
class Techniques:
    """Techniques beyond order and layout. With all off, a plan is `plain`, as in the papers."""

    views: bool = True  # concat, split, slice and reshape for free
    in_place: bool = True  # element-wise layers overwrite a dying input; a residual add its operand
    overlap: bool = True  # other layers' outputs overlap their dying input
    planes: bool = True  # depthwise layers in place, channel by channel, with a small scratch
    pulled: tuple[tuple[str, int], ...] = ()  # inputs that arrive row by row, and the rows kept of each
    no_overlap: frozenset[str] = frozenset()  # layers whose output stays clear of their inputs, for speed
    scratch_bytes: tuple[tuple[str, int], ...] = ()  # scratch reserved for kernels of a stage, in bytes
    outside: frozenset[str] = frozenset()  # inputs and outputs in the caller's memory
    reserved: tuple[str, int] | None = None  # a layer, and bytes left to others from its stage on

    @property
    def is_plain(self) -> bool:
        """Whether only order and layout are used; inputs and outputs may lie anywhere."""
        return replace(self, outside=frozenset()) == PLAIN

    def allows(self, grain: Grain) -> bool:
        return self.in_place if grain is Grain.ELEMENT else self.overlap

    def bytes(self, tensor: Tensor) -> int:
        """The bytes to keep of the tensor: all of it, or a few rows of a pulled input."""
        rows = dict(self.pulled).get(tensor.name)
        return tensor.bytes if rows is None else tensor.bytes // tensor.shape[ROWS] * rows


PLAIN = Techniques(views=False, in_place=False, overlap=False, planes=False)
