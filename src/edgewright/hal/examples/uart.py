"""The model of the UART: what is sent comes back, a character at a time, and now and then with an error."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from edgewright.hal.verify.peripheral import ModelField, Peripheral

DEPTH = 16
FRAMING = 4


class Uart(Peripheral):
    """A line that is looped back: each look at the level of the FIFO lets one character pass."""

    group = "UartType"

    def __init__(self, name: str, model_fields: Mapping[str, ModelField], seed: int = 0) -> None:
        super().__init__(name, model_fields, seed)
        self.line: deque[int] = deque()
        self.arrived: deque[int] = deque(seed >> shift & 0xFF for shift in range(0, seed.bit_length(), 8))

    def read(self, name: str) -> int:
        self.reads[name] += 1
        value = self.peek(name)
        if name in ("txLevel", "txIdle") and self.line:
            self._pass(self.line.popleft())
        if name == "rxData" and self.arrived:
            self.arrived.popleft()
        if name == "errors":
            self.state["errors"] = 0
        return value

    def peek(self, name: str) -> int:
        match name:
            case "txLevel":
                return min(len(self.line), DEPTH)
            case "txIdle":
                return int(not self.line)
            case "rxReady":
                return int(bool(self.arrived))
            case "rxData":
                return self.arrived[0] if self.arrived else 0
        return super().peek(name)

    def write(self, name: str, value: int) -> None:
        if name == "txData":
            self.line.append(value)
        elif name == "flush" and value:
            self.line.clear()
            self.arrived.clear()
        else:
            self.state[name] = value

    def _pass(self, character: int) -> None:
        self.arrived.append(character)
        if character == 0xFF:  # looks like a line that is never released
            self.state["errors"] |= FRAMING
