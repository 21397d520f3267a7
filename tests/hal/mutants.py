"""Faults planted into the analysis, the rewriter and the HAL of drivers, and whether verification finds them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from edgewright.errors import EdgewrightError
from edgewright.hal import design_flow, layout_choice, merge
from edgewright.hal.analysis import conflicts, evaluation, flow_builder, members, paths
from edgewright.hal.analysis.functions import Assigned, Barrier
from edgewright.hal.design_flow import analyse
from edgewright.hal.generate import generate, read_functions, rewriter, space_registers, temporaries, write_functions
from edgewright.hal.language.cursors import KINDS
from edgewright.hal.layout import judge, rules
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.verify import verify

Patch = tuple[object, str, Callable[..., Any]]  # where, what, and what takes its place
Faults = Mapping[str, tuple[Patch, ...]]


def _without(*reasons: str) -> Patch:
    """Barriers of some kinds are not seen."""
    right = flow_builder.FlowBuilder.add

    def add(self: Any, event: Any) -> None:
        if not (isinstance(event, Barrier) and any(reason in event.reason for reason in reasons)):
            right(self, event)

    return flow_builder.FlowBuilder, "add", add


def _without_assignments() -> Patch:
    right = flow_builder.FlowBuilder.add

    def add(self: Any, event: Any) -> None:
        if not isinstance(event, Assigned):
            right(self, event)

    return flow_builder.FlowBuilder, "add", add


def _passing(name: str, *reasons: str) -> Patch:
    """A judge that overlooks some reasons."""
    right = getattr(conflicts.Conflicts, name)

    def judged(self: Any, *given: Any) -> str | None:
        found = right(self, *given)
        return None if found is not None and any(reason in found for reason in reasons) else found

    return conflicts.Conflicts, name, judged


def _always(where: Any, name: str, value: Any) -> Patch:
    return where, name, lambda *given, **named: value


def _steps_unused() -> Patch:
    """What n++ gives is never taken for used."""
    right = evaluation.Evaluator._is_unused

    def is_unused(self: Any, cursor: Any) -> bool:
        return bool(right(self, cursor)) or cursor.kind is KINDS.UNARY_OPERATOR

    return evaluation.Evaluator, "_is_unused", is_unused


def _one_more() -> Patch:
    right = rewriter.Rewriter._value
    return rewriter.Rewriter, "_value", lambda self, accesses: f"({right(self, accesses)}) + 1u"


def _reversed_values() -> Patch:
    right = rewriter.Rewriter._merged_write

    def written(self: Any, merge: Any, value: str) -> str:
        text = right(self, merge, value)
        head, _, rest = text.partition("(")
        first, *values = rest.removesuffix(")").split(", ")
        return f"{head}({', '.join([first, *reversed(values)])})" if len(values) == 2 else text

    return rewriter.Rewriter, "_merged_write", written


def _one_off(where: Any, name: str, more: str) -> Patch:
    """A function that gives back C, with something added to it."""
    right = getattr(where, name)
    return where, name, lambda *given: f"({right(*given)} {more})"


def _first_slot_only() -> Patch:
    """What a register holds beside the first of several slots is written as it was."""
    right = write_functions._term

    def term(placement: Any, call: Any, register: Any, piece: Any) -> str:
        return right(placement, call, register, piece) if call.slots[0] == piece.slot else "0u"

    return write_functions, "_term", term


def _faults_of_analysis() -> Faults:
    judge, path = conflicts.Conflicts, paths.Paths
    return {
        "calls are no barriers": (_without("a call of"),),
        "calls through pointers are no barriers": (_without("through a function pointer"),),
        "assembly is no barrier": (_without("inline assembly"),),
        "volatile accesses are no barriers": (_without("volatile or atomic"),),
        "what is unknown is no barrier": (_without("not standard C", "with an effect", "without one of its parts"),),
        "lines of #if are no barriers": (_without("a line of #if", "text that may"),),
        "reads that flush are no barriers": (_without("not used"),),
        "assignments are not seen": (_without_assignments(),),
        "what follows may not happen": (_always(path, "is_always_after", True),),
        "loops are one": (_always(path, "loop", None),),
        "conditions are one": (_always(path, "guard", ()), _always(path, "is_always_after", True)),
        "loops and conditions are one": (
            *(_always(path, "loop", None), _always(path, "guard", ())),
            *(_always(path, "is_always_after", True), _always(path, "is_always_before", True)),
        ),
        "devices change places": (_always(judge, "_may_be_reordered", True),),
        "reads pass writes": (_passing("stops_read", "may depend on it"),),
        "accesses pass others of their field": (
            _passing("stops_read", "is written in between"),
            _passing("stops_write", "in between (line"),
        ),
        "writes of a field become one": (_always(judge, "same_field", None),),
        "side effects are not seen": (_always(judge, "is_never_merged", False),),
        "nothing is the same field": (_always(conflicts, "may_alias", False), _always(merge, "may_alias", False)),
        "fields keep what they were assigned": (_always(judge, "alters", False),),
        "accesses overtake others": (
            _always(merge, "_overtakes", False),
            _always(merge, "_passes_its_statement", False),
        ),
        "values have no effect": (_always(members, "_is_pure", True),),
        "values wait": (_always(temporaries, "can_wait", True), _always(rewriter, "can_wait", True)),
    }  # fmt: skip


def _faults_of_the_rewriter() -> Faults:
    """Faults that change almost every driver."""
    return {
        "values are mixed up": (_reversed_values(),),
        "steps are used as they are": (_steps_unused(),),
        "the first element": (_always(rewriter.Rewriter, "_index", "0u"),),
        "values are one too large": (_one_more(),),
    }


def _faults_of_registers() -> Faults:
    """Faults of layouts, which nobody judges then, and of the HAL's functions."""
    unjudged = (_always(design_flow, "faults", []), _always(layout_choice, "faults", []))
    return {
        "anything shares a register": (
            *(_always(rules.Rules, "pair", True), _always(rules.Rules, "splits", False)),
            *(_always(judge, "_space_faults", ()), *unjudged),
        ),
        "hardware may be written over": (_always(rules.Rules, "frail", False), *unjudged),
        "nothing is put back": (_always(write_functions, "_kept", 0), _always(write_functions, "_needs_mask", False)),
        "a merged write loses a field": (_first_slot_only(),),
        "what was there stays": (_always(write_functions, "_and_mask", 0xFFFFFFFF),),
        "values reach the next field": (_always(write_functions, "_needs_mask", False),),
        "reads bring the next field": (_always(read_functions, "_needs_mask", False),),
        "written one bit too high": (_one_off(write_functions, "shift_amount", "+ 1u"),),
        "read one bit too low": (_one_off(read_functions, "shift_amount", "+ 1u"),),
        "written to the next register": (_one_off(write_functions, "address", "+ 1"),),
        "read from the next register": (_one_off(read_functions, "address", "+ 1"),),
        "critical sections are left out": (_always(space_registers.SpaceRegisters, "is_shared", False),),
        "snapshots serve whatever follows": (_always(conflicts.Conflicts, "_is_served", True),),
        "snapshots reach across writes": (_always(conflicts.Conflicts, "_stops_in_snapshot", None),),
    }


@dataclass(frozen=True, slots=True)
class Mutant:
    """A driver of which a fault changed the generated code."""

    fault: str
    driver: str
    story: str  # what verification says, or the error that ended it; empty: it was not found


@contextmanager
def _planted(patches: Iterable[Patch]) -> Iterator[None]:
    with ExitStack() as stack:
        for where, name, wrong in patches:
            stack.enter_context(mock.patch.object(where, name, wrong))
        yield


def mutants_of_code(drivers: Mapping[str, str], folder: Path, most: int) -> Iterator[Mutant]:
    """Every driver with up to `most` of the faults of analysis and rewriter that change its code."""
    return _mutants(drivers, folder, most, _faults_of_analysis(), _faults_of_the_rewriter())


def mutants_of_registers(drivers: Mapping[str, str], folder: Path, most: int) -> Iterator[Mutant]:
    """Every driver with up to `most` of the faults of layouts and HAL functions that change its code."""
    return _mutants(drivers, folder, most, _faults_of_registers(), {})


def _mutants(drivers: Mapping[str, str], folder: Path, most: int, faults: Faults, frequent: Faults) -> Iterator[Mutant]:
    """Other faults for each driver; those that change almost all of them come last."""
    path = folder / "driver.c"
    for number, (driver, text) in enumerate(drivers.items()):
        path.write_text(text)
        right = _generated(path)
        names = list(faults)
        start, planted = number % len(names), 0
        for fault in (*names[start:], *names[:start], *frequent):
            if planted == most:
                break
            with _planted({**faults, **frequent}[fault]):
                story = _story(path, right)
            if story is not None:
                planted += 1
                yield Mutant(fault, driver, story)


def _story(path: Path, right: tuple[str, ...]) -> str | None:
    """What becomes of the fault that is planted; None where it changes nothing."""
    try:
        if _generated(path) == right:
            return None
        analysis = analyse([path])
        found = verify(analysis, chosen_design(analysis, "paper"), calls=8, measure=False)
    except (EdgewrightError, AssertionError, LookupError, ValueError) as error:
        return f"ends with {type(error).__name__}"
    return str(found.differences[0]) if found.differences else "" if found.is_equal else "not compared"


def _generated(path: Path) -> tuple[str, ...]:
    """The driver, and the functions of the HAL that it calls."""
    files = generate(chosen_design(analyse([path]), "paper"), "driver")
    called = set(re.findall(r"HAL_\w+", files[path.name]))
    parts = re.split(r"\n(?=static )", files["driver_hal.h"])
    return files[path.name], *(part for part in parts if called & set(re.findall(r"HAL_\w+(?=\()", part.split("{")[0])))
