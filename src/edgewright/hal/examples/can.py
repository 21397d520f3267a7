"""The model of the CAN controller: what is sent comes back if a filter takes it, and nobody else is on the bus."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from edgewright.hal.verify.peripheral import ModelField, Peripheral

DEPTH = 3
FRAME = ("id", "extended", "remote", "length", "low", "high")


class Can(Peripheral):
    """A mailbox is sent when its flag is looked at; the FIFO holds three frames."""

    group = "CanType"

    def __init__(self, name: str, model_fields: Mapping[str, ModelField], seed: int = 0) -> None:
        super().__init__(name, model_fields, seed)
        self.frames: deque[dict[str, int]] = deque()
        for field, model_field in model_fields.items():
            self.state[field] = model_field.field.reset

    def read(self, name: str) -> int:
        self.reads[name] += 1
        value = self.peek(name)
        if name.endswith(".request") and value:
            self._send(name.rpartition(".")[0])
        if name == "configuring":
            self.state[name] = self.state["configure"]
        return value

    def peek(self, name: str) -> int:
        if name == "level":
            return len(self.frames)
        if name in FRAME:
            return self.frames[0][name] if self.frames else 0
        if name == "sendErrors":
            return self.touches["lost"] & 0xFF
        return self.state[name]

    def write(self, name: str, value: int) -> None:
        field = name.rpartition(".")[2]
        if field == "release":
            if value and self.frames:
                self.frames.popleft()
        elif field == "overrun":
            self.state[name] &= ~value
        else:
            self.state[name] = value

    def _send(self, box: str) -> None:
        self.state[f"{box}.request"] = 0
        frame = {name: self.state[f"{box}.{name}"] for name in FRAME}
        if not (self.state["loopback"] and self._is_taken(frame["id"])):
            return
        if len(self.frames) < DEPTH:
            self.frames.append(frame)
        else:
            self.state["overrun"] = 1
            self.touches["lost"] += 1

    def _is_taken(self, number: int) -> bool:
        filters = [f"filters[{n}]." for n in range(4) if self.state[f"filters[{n}].enable"]]
        return any((number ^ self.state[f"{f}id"]) & self.state[f"{f}mask"] == 0 for f in filters)
