"""The model of the real-time clock: a second passes with every look at the seconds."""

from __future__ import annotations

from edgewright.hal.verify.peripheral import Peripheral

LIMITS = (
    ("seconds", 0, 59),
    ("minutes", 0, 59),
    ("hours", 0, 23),
    ("day", 1, 28),
    ("month", 1, 12),
    ("year", 0, 63),
)


class Rtc(Peripheral):
    """All months have 28 days; the alarm goes off when its second is passed."""

    group = "RtcType"

    def read(self, name: str) -> int:
        self.reads[name] += 1
        value = self.state[name]
        if name == "seconds" and self.state["running"]:
            self._tick()
        if name == "alarmed" and self.state["alarmEnable"]:
            self.state["alarmed"] = 1
        return value

    def write(self, name: str, value: int) -> None:
        if name == "alarmed":
            self.state[name] &= ~value
        else:
            self.state[name] = value

    def _tick(self) -> None:
        for name, first, last in LIMITS:
            self.state[name] += 1
            if self.state[name] <= last:
                return
            self.state[name] = first
