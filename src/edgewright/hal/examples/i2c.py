"""The model of the I2C master: a slave that answers to most addresses, and lines that are slow."""

from __future__ import annotations

from edgewright.hal.verify.peripheral import Peripheral

SLOW = 2  # looks at `go` until a step ends
NOBODY = 0x7F  # the address that no slave has


class I2c(Peripheral):
    """Steps end after some looks; what is received counts up from the seed."""

    group = "I2cType"

    def read(self, name: str) -> int:
        self.reads[name] += 1
        if name == "go":
            return self._look()
        return self.peek(name)

    def write(self, name: str, value: int) -> None:
        if name == "go":
            self.state["go"] = value & self.state["enable"]
            self.touches["looks"] = 0
        elif name == "done":
            self.state["done"] &= ~value
        else:
            self.state[name] = value

    def _look(self) -> int:
        """What was so when it was looked at; only then does time pass."""
        seen = self.state["go"]
        self.touches["looks"] += 1
        if seen and self.touches["looks"] >= SLOW:
            self._end()
        return seen

    def _end(self) -> None:
        is_nobody = self.state["start"] and self.state["data"] >> 1 == NOBODY
        self.state |= {"go": 0, "done": 1, "failure": int(is_nobody)}
        if self.state["receive"]:
            self.touches["bytes"] += 1
            self.state["received"] = (self.seed + 37 * self.touches["bytes"]) & 0xFF
