"""The model of the ADC: a sequence ends after some looks, with voltages that the seed and the channels say."""

from __future__ import annotations

from edgewright.hal.verify.peripheral import Peripheral

SLOW = 3  # looks until a sequence ends


class Adc(Peripheral):
    """Results follow from channels, times and the number of sequences so far."""

    group = "AdcType"

    def read(self, name: str) -> int:
        self.reads[name] += 1
        seen = self.state[name]
        if name == "start" and seen:
            self.touches["looks"] += 1
            if self.touches["looks"] >= SLOW:
                self._end()
        return seen

    def write(self, name: str, value: int) -> None:
        if name in ("done", "outside"):
            self.state[name] &= ~value
        elif name == "start":
            self.state["start"] = value & self.state["enable"]
            self.touches["looks"] = 0
        else:
            self.state[name] = value

    def _end(self) -> None:
        self.touches["sequences"] += 1
        self.state["overrun"] = self.state["done"]
        for step in range(self.state["last"] + 1):
            channel, time = self.state[f"steps[{step}].channel"], self.state[f"steps[{step}].sampleTime"]
            value = (self.seed + 257 * channel + 31 * time + 101 * self.touches["sequences"]) & 0xFFF
            self.state[f"steps[{step}].result"] = value
            if not self.state["low"] <= value <= self.state["high"]:
                self.state["outside"] = 1
        self.state["done"] = 1
        self.state["start"] = self.state["repeat"]
        self.touches["looks"] = 0
