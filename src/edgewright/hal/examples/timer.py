"""The model of the timer: time passes with every look at it."""

from __future__ import annotations

from collections.abc import Mapping

from edgewright.hal.verify.peripheral import ModelField, Peripheral

STEP = 0x4000_0001  # microseconds for each look, so that the low half overflows soon
WORD = 0xFFFFFFFF


class Timer(Peripheral):
    """Reading the low half of the clock stores the upper half; a channel matches when its count is looked at."""

    group = "TimerType"

    def __init__(self, name: str, model_fields: Mapping[str, ModelField], seed: int = 0) -> None:
        super().__init__(name, model_fields, seed)
        self.now = seed << 28

    def read(self, name: str) -> int:
        self.reads[name] += 1
        channel, _, field = name.rpartition(".")
        if field == "nowLow":
            self.now += STEP
            self.state["nowLow"], self.state["nowHigh"] = self.now & WORD, self.now >> 32 & WORD
        if field in ("count", "matched"):
            self._tick(channel)
        return self.state[name]

    def write(self, name: str, value: int) -> None:
        self.state[name] = self.state[name] & ~value if name.endswith("matched") else value

    def _tick(self, channel: str) -> None:
        if not self.state[f"{channel}.enable"]:
            return
        self.state[f"{channel}.count"] = (self.state[f"{channel}.count"] + (STEP >> 8)) & WORD
        if self.state[f"{channel}.count"] >= self.state[f"{channel}.compare"]:
            self.state[f"{channel}.matched"] = 1
            self.state[f"{channel}.count"] = 0
