"""The model of the DMA controller: transfers end after a while, and some fail."""

from __future__ import annotations

from edgewright.hal.verify.peripheral import Peripheral

BURST = 64  # elements that move between two looks


class Dma(Peripheral):
    """A channel runs until its count is 0; it fails when it would copy something onto itself."""

    group = "DmaType"

    def read(self, name: str) -> int:
        self.reads[name] += 1
        value = self.state[name]
        if name.endswith(".running") and value:
            self._move(name.rpartition(".")[0])
        return value

    def write(self, name: str, value: int) -> None:
        field = name.rpartition(".")[2]
        if field in ("finished", "failed"):
            self.state[name] &= ~value
        elif field == "reset":
            self._reset()
        else:
            self.state[name] = value

    def _move(self, channel: str) -> None:
        left = max(0, self.state[f"{channel}.count"] - BURST)
        self.state[f"{channel}.count"] = left
        if left == 0:
            is_good = self.state[f"{channel}.source.address"] != self.state[f"{channel}.target.address"]
            if is_good:
                self.state["finished"] |= 1 << int(channel.removeprefix("channels[").removesuffix("]"))
            else:
                self.state[f"{channel}.failed"] = 1
            self.state[f"{channel}.running"] = 0

    def _reset(self) -> None:
        for name in self.state:
            if name == "finished" or name.endswith((".running", ".failed")):
                self.state[name] = 0
