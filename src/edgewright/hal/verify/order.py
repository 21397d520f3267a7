"""Whether two traces of accesses are equivalent: the second may differ only in orders that no one can observe.

Only writes of plain fields of one device may change places with each other, and accesses of a device that is declared
unordered with those of others; accesses may happen at once. All else that is seen from outside keeps its order: calls,
side effects, reads and writes of what hardware changes, accesses of other devices and of fields that an interrupt
routine uses. Reads of plain fields show in what is done with their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BusEvent:
    """One access to a field, or a call of unknown code."""

    kind: str  # "read", "write", "call", "foreign"
    what: str  # "uart.data", with the first bit for parts of wide fields
    value: object
    device: str
    is_plain: bool  # a write of a plain field
    access: int  # the same for all steps that one access to a register makes
    is_loose: bool = False  # of a device that is unordered: it keeps its order within that device only
    moment: str = ""  # steps that are to happen at once, since their fields are together
    is_changed: bool = False  # hardware changes the field too: it keeps its order to all writes of the device

    def __str__(self) -> str:
        return f"write of {self.value} to {self.what}" if self.kind == "write" else f"{self.kind} of {self.what}"


def disorder(expected: Sequence[BusEvent], found: Sequence[BusEvent], certain: int | None = None) -> str:
    """Why the second trace is not a valid reordering of the first, or nothing.

    Of a call that does not end, the first `certain` steps must be there and all further ones may.
    """
    matched, story = _matched(expected, found, certain)
    return story or _order(expected, matched) or _split_moments(expected, matched)


def _split_moments(expected: Sequence[BusEvent], matched: Sequence[int | None]) -> str:
    """Steps of one moment that the second makes by several accesses; a field that comes again begins another."""
    moments: dict[tuple[str, str], dict[str, tuple[int, BusEvent]]] = {}
    for step, at in zip(expected, matched, strict=True):
        if at is None or not step.moment:
            continue
        home = moments.setdefault((step.moment, step.what.rpartition(".")[0]), {})
        if step.what in home:
            home.clear()
        for other, earlier in home.values():
            if other != at:
                return f"{step} and {earlier} are two accesses, and their fields are together"
        home[step.what] = at, step
    return ""


def _matched(
    expected: Sequence[BusEvent], found: Sequence[BusEvent], certain: int | None
) -> tuple[list[int | None], str]:
    """For each step of the first the access of the second that makes it: the nth of its kind is the nth."""
    waiting: dict[tuple[str, str], list[BusEvent]] = {}
    for step in reversed(found):
        waiting.setdefault((step.kind, step.what), []).append(step)
    matched: list[int | None] = []
    for number, step in enumerate(expected):
        here = waiting.get((step.kind, step.what))
        if not here:
            if certain is None or number < certain:
                return matched, f"{step} is missing"
            matched.append(None)
            continue
        other = here.pop()
        if other.value != step.value and step.kind != "read":
            return matched, f"{other} instead of {step}"
        matched.append(other.access)
    if certain is None and (rest := [step for steps in waiting.values() for step in steps]):
        return matched, f"{min(rest, key=lambda step: step.access)} is one too many"
    return matched, ""


def _order(expected: Sequence[BusEvent], matched: Sequence[int | None]) -> str:
    latest: dict[tuple[str, bool, bool, bool], tuple[int, BusEvent]] = {}  # of steps that are alike
    for step, at in zip(expected, matched, strict=True):
        if at is None:
            continue
        for before, earlier in latest.values():
            if before > at and _keeps_order(earlier, step):
                return f"{step} comes before {earlier}, which the source has first"
        alike = step.device, step.is_plain, step.is_loose, step.is_changed
        if alike not in latest or at > latest[alike][0]:
            latest[alike] = at, step
    return ""


def _keeps_order(first: BusEvent, second: BusEvent) -> bool:
    if first.device == second.device:
        return first.is_changed or second.is_changed or not (first.is_plain and second.is_plain)
    is_field = bool(first.device and second.device)
    return not (is_field and (first.is_loose or second.is_loose))
