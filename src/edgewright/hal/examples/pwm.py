"""The model of the timer: it counts with every look, and channels match when their value is passed."""

from __future__ import annotations

from edgewright.hal.verify.peripheral import Peripheral

STEP = 0x0123


class Pwm(Peripheral):
    """Channels that are switched on match as soon as the count is looked at."""

    group = "PwmType"

    def read(self, name: str) -> int:
        self.reads[name] += 1
        if name == "count" and self.state["enable"]:
            self._run()
        return self.state[name]

    def write(self, name: str, value: int) -> None:
        if name.endswith(".matched"):
            self.state[name] &= ~value
        else:
            self.state[name] = value

    def _run(self) -> None:
        before, period = self.state["count"], self.state["period"]
        self.state["count"] = (before + STEP) % (period + 1)
        for channel in (f"channels[{n}]" for n in range(4)):
            if self.state[f"{channel}.enable"] and self.state[f"{channel}.compare"] <= self.state["count"]:
                self.state[f"{channel}.matched"] = 1
