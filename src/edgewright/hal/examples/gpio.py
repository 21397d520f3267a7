"""The model of the GPIO: its inputs are wired to the world outside, not to its outputs."""

from __future__ import annotations

from edgewright.hal.verify.peripheral import Peripheral


class Gpio(Peripheral):
    """Every input has a level that the seed says and keeps it; interrupts come as they please, until they are read."""

    group = "GPIOType"

    def read(self, name: str) -> int:
        if not name.endswith(".in"):
            return super().read(name)
        self.reads[name] += 1
        return self.peek(name)

    def peek(self, name: str) -> int:
        """For an input its level, by the number of its pad."""
        if not name.endswith(".in"):
            return super().peek(name)
        return (self.seed ^ 0x5A) >> int(name.removeprefix("pads[").removesuffix("].in")) & 1
