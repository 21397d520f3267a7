"""What a layout is to be best at, and within which limit."""

from __future__ import annotations

from dataclasses import dataclass

from .code_bytes import DEFAULT, CodeBytes, code_bytes

# What one byte of code, one bus access (ten for each loop around it) and one byte of the map weigh. Where one is
# asked for, the others only break ties. Balanced: an access is worth six bytes of code (two or three instructions, as
# long as many a bus takes for it), ten bytes of the map one.
WEIGHTS = {
    "balanced": (100, 600, 10),
    "code": (1000, 10, 1),
    "accesses": (10, 1000, 1),
    "map": (10, 5, 100_000),
}


@dataclass(frozen=True, slots=True)
class Wish:
    max_map: int | None = None  # bytes, all devices together
    minimise: str = "balanced"  # "code", "accesses", "map"
    target: str = DEFAULT  # whose code is estimated
    power_of_two: bool = True  # strides of what is indexed at run time, where the limit allows it

    @property
    def sizes(self) -> CodeBytes:
        return code_bytes(self.target)

    @property
    def weights(self) -> tuple[int, int, int]:
        """The weights of a byte of code, an access and a byte of the map."""
        return WEIGHTS[self.minimise]
