"""What a plan comes to as code for its target: weights as kernels read them, and what the linker made of the rest.

Emission packs, the linker counts; here are the figures that both promise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Packed:
    """Weights or a table of numbers in flash, as a kernel reads them."""

    name: str  # the layer, and what it is
    bytes: int
    alignment: int
    digest: str  # of type and values


def packed_bytes(packed: Iterable[Packed]) -> int:
    """Flash that they take: each at its alignment, one after the other."""
    at = 0
    for each in packed:
        at = -(-at // each.alignment) * each.alignment + each.bytes
    return at


@dataclass(frozen=True, slots=True)
class Linked:
    """Sizes as linked for the target, by one compiler."""

    compiler: str  # with its version, and how it was asked to optimise
    weights_bytes: int
    code_bytes: int  # of the library: kernels, schedule, tables
    runtime_bytes: int  # what the library calls: memcpy, mathematics, the compiler's helpers
    stack_bytes: int | None  # no run takes more, interrupts apart; None where the code tells no bound

    @property
    def flash_bytes(self) -> int:
        return self.weights_bytes + self.code_bytes + self.runtime_bytes
