"""What ends a call on the virtual prototype before it returns."""

from __future__ import annotations

from enum import Enum


class Why(Enum):
    UNDEFINED = "undefined"  # the call has no meaning in the source: an index out of range, a pointer to nowhere
    ENDLESS = "endless"  # it ran past the limit, as a loop that waits for a value does
    WRONG = "wrong"  # an access that no code may make


class Fault(Exception):
    def __init__(self, why: Why, what: str) -> None:
        super().__init__(what)
        self.why = why
