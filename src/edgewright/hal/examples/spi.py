"""The model of the SPI master: FIFOs, and a slave that answers with what the seed and the address say."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from edgewright.hal.verify.peripheral import ModelField, Peripheral

IDLE, DATA = 1, 8  # state: a bit for each phase
READS, WRITES, RESET = 0b00101, 0b01010, 0b10000  # start: commands that receive, that send, that clear
DEPTH = 8


class Spi(Peripheral):
    """It is busy as long as there is something to receive; a full FIFO gets room by being looked at."""

    group = "SPIType"

    def __init__(self, name: str, model_fields: Mapping[str, ModelField], seed: int = 0) -> None:
        super().__init__(name, model_fields, seed)
        self.sent: deque[int] = deque()  # what waits in the FIFO
        self.received: deque[int] = deque()

    def read(self, name: str) -> int:
        self.reads[name] += 1
        value = self.peek(name)
        if name == "txLevel" and len(self.sent) >= DEPTH:
            self.sent.popleft()
        if name == "data" and self.received:
            self.received.popleft()
        return value

    def peek(self, name: str) -> int:
        match name:
            case "state":
                return DATA if self.received else IDLE
            case "txLevel":
                return min(len(self.sent), DEPTH)
            case "rxLevel":
                return min(len(self.received), DEPTH)
            case "data":
                return self.received[0] if self.received else 0
        return super().peek(name)

    def write(self, name: str, value: int) -> None:
        if name == "data":
            self.sent.append(value)
        elif name == "start":
            self._start(value)
        else:
            self.state[name] = value

    def _start(self, commands: int) -> None:
        words = -(-self.state["dataLen"] // 32)
        if commands & RESET:
            self.sent.clear()
            self.received.clear()
        if commands & READS:
            self.received.extend(self._answer(number) for number in range(words))
        if commands & WRITES:
            self.sent.clear()

    def _answer(self, number: int) -> int:
        return (~(self.state["addr"] + number) ^ self.seed) & 0xFFFFFFFF
