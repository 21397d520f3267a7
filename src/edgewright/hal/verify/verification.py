"""The result of a verification: what was called, what it cost, all differences, and why calls ended early."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum


class StopReason(Enum):
    UNDEFINED = "undefined"  # the call has no meaning in the source: an index out of range, a pointer to nowhere
    ENDLESS = "endless"  # it ran past the limit, as a loop that waits for a value does
    WRONG = "wrong"  # an access that no code may make


class Fault(Exception):
    def __init__(self, reason: StopReason, what: str) -> None:
        super().__init__(what)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Counts:
    """What all calls of a function came to, and the bytes of its code."""

    instructions: int = 0
    accesses: int = 0
    code_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FunctionCheck:
    function: str
    calls: int  # that ended and were compared
    naive: Counts
    optimised: Counts
    unfinished: int = 0  # calls that waited without end: compared as far as they went
    left_out: str = ""  # why no call, or not every call, could be compared
    unreached: tuple[str, ...] = ()  # accesses that no call came to


@dataclass(frozen=True, slots=True)
class Difference:
    function: str
    call: str
    what: str

    def __str__(self) -> str:
        return f"{self.call}: {self.what}"


@dataclass(frozen=True, slots=True)
class Uncompared:
    """A function with accesses that no call was compared of."""

    function: str
    reason: str
    is_dead: bool = False  # nothing can ever call it


@dataclass(frozen=True, slots=True)
class Verification:
    target: str
    compiler: str
    seed: int
    functions: tuple[FunctionCheck, ...]
    differences: tuple[Difference, ...]
    naive_code_bytes: int
    optimised_code_bytes: int
    has_accesses: bool = True  # whether there was anything to compare
    uncompared: tuple[Uncompared, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether something was compared, and nothing differs."""
        return not self.differences and not self.is_empty

    def unproven(self, excluded: Collection[str] = ()) -> tuple[Uncompared, ...]:
        """The functions of which nothing is known, but for those that the user excluded."""
        return tuple(one for one in self.uncompared if not one.is_dead and one.function not in excluded)

    @property
    def is_empty(self) -> bool:
        """Whether no access could be compared, though there are some."""
        return self.has_accesses and not any(c.naive.accesses or c.unfinished for c in self.functions)

    @property
    def calls(self) -> int:
        return sum(checked.calls for checked in self.functions)
