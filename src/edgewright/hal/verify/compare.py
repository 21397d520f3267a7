"""Two layouts of one driver compared call by call; the first difference of each function is described for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from .abi import Signature
from .bus import Event
from .calls import ANY, EDGE, DrawnCall, draw_call
from .order import disorder
from .prototype import Outcome, Prototype
from .verification import Counts, Difference, FunctionCheck, StopReason
from .written import Written

SEQUENCE = 4  # calls on one state before the devices are reset
USED = 8  # least number of calls on devices that were used before


@dataclass(frozen=True, slots=True)
class Runnable:
    """A function to call, with upper bounds for the arguments that it uses as indices."""

    signature: Signature
    bounds: Mapping[str, int] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)  # HAL functions that it calls, with the access of each


@dataclass(slots=True)
class _Tally:
    ran: set[str]
    written: Written | None
    calls: int = 0
    unfinished: int = 0
    left_out: str = ""
    small: int = 0
    naive: Counts = field(default_factory=Counts)
    optimised: Counts = field(default_factory=Counts)


def compare(
    naive: Prototype,
    optimised: Prototype,
    functions: Sequence[Runnable],
    calls: int,
    seed: int,
    written: Written | None = None,
) -> tuple[tuple[FunctionCheck, ...], tuple[Difference, ...], frozenset[str]]:
    """Every function called so many times on both, in sequences, some after a call of another function.

    For each sequence there is one more call on devices that were used before, with 0 or any other number, not counted.
    The last value names the functions that ran in calls that were compared.
    """
    ran: set[str] = set()
    checked: list[FunctionCheck] = []
    differences: dict[str, Difference] = {}  # the first of each function
    for function in functions:
        tally = _Tally(ran, written)
        naive.reached.clear()
        difference = _compare_one(naive, optimised, function, functions, calls, seed, tally)
        if difference:
            differences.setdefault(difference.function, difference)
        name = function.signature.name
        plain = replace(tally.naive, code_bytes=_code(naive, name))
        small = replace(tally.optimised, code_bytes=_code(optimised, name))
        unreached = tuple(access for called, access in function.asked.items() if called not in naive.reached)
        checked.append(FunctionCheck(name, tally.calls, plain, small, tally.unfinished, tally.left_out, unreached))
    return tuple(checked), tuple(differences.values()), frozenset(ran)


def _compare_one(
    naive: Prototype,
    optimised: Prototype,
    function: Runnable,
    others: Sequence[Runnable],
    calls: int,
    seed: int,
    tally: _Tally,
) -> Difference | None:
    name = function.signature.name
    problem = function.signature.problem or _without_instance(function.signature, naive)
    if problem:
        tally.left_out = f"not called: {problem}"
        return None
    random = Random(f"{seed} {name}")
    fresh = -(-calls // SEQUENCE)
    for number in range(fresh + max(fresh, USED)):
        start, is_used = seed * 1000 + number, number >= fresh
        used = (EDGE, ANY)[number % 2] if is_used else 0
        naive.reset(start, is_used)
        optimised.reset(start, is_used)
        if tally.written:
            tally.written.reset(start)
        for call in _sequence(function, others if number % 2 else (), naive, random, tally, used):
            counts = call.signature.name == name and not is_used
            story = _step(naive, optimised, call, tally, counts)
            if story:
                return Difference(call.signature.name, str(call), story)
            if story is None:
                break
    return None


def _sequence(
    function: Runnable, others: Sequence[Runnable], naive: Prototype, random: Random, tally: _Tally, used: int
) -> Iterator[DrawnCall]:
    there = {space: list(found.values()) for space, found in naive.instances.items()}
    able = [o for o in others if not o.signature.problem and not _without_instance(o.signature, naive)]
    if able and not used:
        other = random.choice(able)
        yield draw_call(other.signature, other.bounds, there, random, 1)
    for _ in range(1 if used else SEQUENCE):
        yield draw_call(function.signature, function.bounds, there, random, tally.small or used)


def _step(naive: Prototype, optimised: Prototype, call: DrawnCall, tally: _Tally, counts: bool) -> str | None:
    """Runs one call on both: a description of the difference, "" where they agree, None where the sequence must end."""
    naive.entered.clear()
    expected = naive.run(call)
    if expected.fault and expected.fault.reason is StopReason.WRONG:
        return f"with one register for each field: {expected.fault}"
    if expected.fault and expected.fault.reason is StopReason.UNDEFINED:
        if counts:
            tally.left_out = f"some calls have no meaning: {call}: {expected.fault}"
            tally.small = min(tally.small + 1, 2)
        return None
    found = optimised.run(call)
    as_written = _against_source(tally.written, call, expected)
    is_loose = tally.written is not None and tally.written.is_loose(naive.entered)
    story = ("" if is_loose else as_written) or difference_of(expected, found)
    tally.ran |= naive.entered
    if not story and counts:
        _count(tally, expected, found)
    is_over = expected.fault or (is_loose and as_written)
    return None if is_over and not story else story


def _against_source(written: Written | None, call: DrawnCall, naive: Outcome) -> str:
    """How the naive design differs from the source as it was written, or nothing."""
    if written is None:
        return ""
    result, fault, memory = written.run(call, naive.log, naive.fault is not None)
    if fault and fault.reason is StopReason.ENDLESS and naive.fault:
        return ""
    if fault:
        return str(fault)
    if naive.fault:
        return f"the source as written ends, and the design does not: {naive.fault}"
    if result != naive.result:
        return f"returns {naive.result} instead of {result}, as the source was written"
    return _final(memory, naive.memory or {})


def _count(tally: _Tally, expected: Outcome, found: Outcome) -> None:
    if expected.fault:
        tally.unfinished += 1
        tally.small = min(tally.small + 1, 2)  # most often a length that is too long to be gone through
        return
    tally.calls += 1
    tally.naive = _more(tally.naive, expected)
    tally.optimised = _more(tally.optimised, found)


def _more(counts: Counts, outcome: Outcome) -> Counts:
    return replace(
        counts, instructions=counts.instructions + outcome.instructions, accesses=counts.accesses + outcome.accesses
    )


def difference_of(expected: Outcome, found: Outcome) -> str:
    """How two outcomes of a call differ, or nothing. Calls that do not end are compared as far as they got."""
    endless = [o for o in (expected, found) if o.fault and o.fault.reason is StopReason.ENDLESS]
    if found.fault and found.fault.reason is not StopReason.ENDLESS:
        return f"faults: {found.fault}" + (f", after {found.events[-1]}" if found.events else "")
    if len(endless) == 1:
        who = "the optimised code" if found.fault else "the naive code"
        return f"{who} does not end" + (_events(expected.events, found.events) or "")
    story = _events(expected.events, found.events, cut=bool(endless))
    if story or endless:
        return story or disorder(expected.steps, found.steps, expected.certain)
    if expected.result != found.result:
        return f"returns {found.result} instead of {expected.result}"
    return _final(expected.final, found.final) or disorder(expected.steps, found.steps)


def _events(expected: Sequence[Event], found: Sequence[Event], cut: bool = False) -> str:
    for number, (want, got) in enumerate(zip(expected, found, strict=False), 1):
        if (want.kind, want.what, want.value) != (got.kind, got.what, got.value):
            return f"event {number} is a {got} instead of a {want}"
        if want.config != got.config:
            return f"at event {number}, {got}: {_config(want.config, got.config)}"
    if len(expected) == len(found) or cut:
        return ""
    longer, word = (expected, "missing") if len(expected) > len(found) else (found, "too many")
    return f"event {min(len(expected), len(found)) + 1} is {word}: {longer[min(len(expected), len(found))]}"


def _config(want: Mapping[tuple[str, str], tuple[int, int]], got: Mapping[tuple[str, str], tuple[int, int]]) -> str:
    key = min(key for key in {*want, *got} if want.get(key) != got.get(key))
    spelled = [f"{at[key][1]} (written)" if key in at else "the reset value" for at in (got, want)]
    if key in want and key in got and want[key][1] == got[key][1]:
        spelled = [f"{at[key][1]}, written {at[key][0]} times" for at in (got, want)]
    return f"{'.'.join(key)} holds {spelled[0]} instead of {spelled[1]}"


def _final(expected: Mapping[str, object], found: Mapping[str, object]) -> str:
    for key in sorted({*expected, *found}):
        want, got = expected.get(key), found.get(key)
        if want != got and not (key.startswith("variable ") and None in (want, got)):
            left, wanted = _first_difference(got, want), _first_difference(want, got)
            return f"leaves {key} {_short(*left)} instead of {_short(*wanted)}"
    return ""


def _first_difference(value: object, other: object) -> tuple[object, str]:
    """The first part of a value in which it differs from another, and which one that is."""
    place = ""
    while isinstance(value, tuple) and isinstance(other, tuple) and len(value) == len(other):
        index = next(index for index, (a, b) in enumerate(zip(value, other, strict=True)) if a != b)
        value, other, place = value[index], other[index], f"word {index}: "
    return value, place


def _short(value: object, place: str) -> str:
    text = place + (value.hex() if isinstance(value, bytes) else str(value))
    return text if len(text) < 60 else text[:57] + "…"


def _without_instance(signature: Signature, prototype: Prototype) -> str:
    for name, type_ in signature.parameters:
        for one in (type_, *(inner for _, inner in type_.inside)):
            if one.group is not None and not prototype.instances.get(one.group):
                return f"no device holds a '{one.group}' for parameter '{name}'"
    return ""


def _code(prototype: Prototype, name: str) -> int:
    return prototype.built.code.get(name, 0)
