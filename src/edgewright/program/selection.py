"""The part of a plan about code: kernel and scratch of each call, packed weights, linked sizes.

Kernels are selected once, before any code is written; emission packs, the linker counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class CallKind(Enum):
    """The effect of a call on its region."""

    COMPUTE = "compute"
    ADD = "add"  # a partial sum to the running sums of the output
    FINISH = "finish"  # complete sums become the output


@dataclass(frozen=True, slots=True)
class Offer:
    """One way for a kernel to compute the calls of a site."""

    scratch: int = 0  # bytes, anywhere
    # What else the kernel has to be told: pixels at once, rows of a block.
    variant: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(scratch: int = 0, **variant: int) -> Offer:
        return Offer(scratch, tuple(variant.items()))

    def __getitem__(self, name: str) -> int:
        return dict(self.variant)[name]


@dataclass(frozen=True, slots=True)
class CallKey:
    """A call of a plan. A stage has one of each kind for a layer, or one for each part, as of a concat."""

    stage: int
    layer: str
    kind: CallKind
    part: int = 0


@dataclass(frozen=True, slots=True)
class Selection:
    """The kernel of a call."""

    kernel: str
    offer: Offer
    scratch: str | None = None  # the buffer of its scratch; None where it needs none, or has it on the stack

    @property
    def stack(self) -> int:
        """Bytes of scratch on the stack."""
        return 0 if self.scratch else self.offer.scratch


@dataclass(frozen=True, slots=True)
class Packed:
    """Weights or a table of numbers in flash, as a kernel reads them."""

    name: str  # the layer, and what it is
    bytes: int
    alignment: int
    digest: str  # of type and values


def packed_bytes(packed: Iterable[Packed]) -> int:
    """Bytes of flash of packed arrays, each at its alignment."""
    at = 0
    for each in packed:
        at = -(-at // each.alignment) * each.alignment + each.bytes
    return at


@dataclass(frozen=True, slots=True)
class Linked:
    """Sizes reported by one compiler's linker for the target."""

    compiler: str  # with its version, and how it was asked to optimise
    weights_bytes: int
    code_bytes: int  # of the library: kernels, schedule, tables
    runtime_bytes: int  # what the library calls: memcpy, mathematics, the compiler's helpers
    stack_bytes: int | None  # no run takes more, without interrupts; None where the code has no bound

    @property
    def flash_bytes(self) -> int:
        return self.weights_bytes + self.code_bytes + self.runtime_bytes
