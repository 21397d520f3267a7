"""Faults planted in plan files of applications: every value that a file holds, changed in every way that its type allows.

A loader must refuse what would go wrong, with a sentence. What it accepts must be harmless, and is never taken to be:
either the library that is printed is the same to the letter, or judges of the tests that know nothing of the product's
find nothing: bytes that are computed in random legal orders, and cells of buffers that are in use together.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from application_exact import ExactProblem
from application_judge import Interleaving
from edgewright.application.deploying import unjudged_deployment
from edgewright.application.joint import JointLayout
from edgewright.application.library import emit_application

Path_ = tuple[str | int, ...]  # keys and indices that lead to a value


@dataclass(frozen=True)
class PlantedFault:
    """A value of a file that was changed."""

    kind: str  # keys that lead to it, and how it was changed
    at: Path_
    change: Callable[[Any], Any]

    @property
    def where(self) -> str:
        return f"{self.kind} at {'.'.join(map(str, self.at))}"

    def planted(self, data: dict[str, Any]) -> dict[str, Any]:
        found = copy.deepcopy(data)
        inside: Any = found
        for key in self.at[:-1]:
            inside = inside[key]
        inside[self.at[-1]] = self.change(inside[self.at[-1]])
        return found


ORDERS, MOVES = 6, 60  # of interleavings in which what was accepted must do no harm


def planted_faults(data: dict[str, Any], rng: random.Random) -> Iterator[PlantedFault]:
    """One fault of each kind, at a random place of all that hold such a value."""
    found: dict[str, list[PlantedFault]] = {}
    for fault in _every(data["deployment"], ("deployment",)):
        found.setdefault(fault.kind, []).append(fault)
    for kind in sorted(found):
        yield rng.choice(found[kind])


def _every(value: Any, at: Path_) -> Iterator[PlantedFault]:
    kind = ".".join(str(key) if isinstance(key, str) else "#" for key in _generic(at))
    for name, change in _changes(value, at[-1]):
        yield PlantedFault(f"{kind}: {name}", at, change)
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        if key not in ("weights", "layouts", "notes", "tensors", "layers") or "plan" not in at:
            yield from _every(inner, (*at, key))


NAMED = ("views", "inputs", "outputs", "layouts", "weights")  # whose keys are names of the application's own


def _generic(at: Path_) -> Path_:
    """The path without names and positions."""
    return tuple(0 if isinstance(key, str) and at[n - 1] in NAMED else key for n, key in enumerate(at))


def _changes(value: Any, key: str | int) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    match value:
        case bool():
            yield "turned", lambda old: not old
        case int():
            yield "one more", lambda old: old + 1
            yield "one less", lambda old: old - 1
            yield "a word more", lambda old: old + 4
            yield "a word less", lambda old: old - 4
            yield "doubled", lambda old: 2 * old + 8
            yield "zero", lambda old: 0 if old else 12
        case float():
            yield "doubled", lambda old: 2 * old + 1
        case str():
            yield "misspelled", lambda old: old + "x"
            yield "empty", lambda old: ""
        case None:
            yield "given", lambda old: 1
            yield "named", lambda old: "a"
        case list():
            if value:
                yield "without the first", lambda old: old[1:]
                yield "without the last", lambda old: old[:-1]
                yield "the last twice", lambda old: [*old, old[-1]]
                yield "empty", lambda old: []
            if len(value) > 1 and value != value[::-1]:
                yield "reversed", lambda old: old[::-1]
        case dict():
            yield "without one", lambda old: dict(list(old.items())[1:])
            yield "missing", lambda old: None


def harm(original: JointLayout, loaded: JointLayout) -> str | None:
    """What is wrong with a layout that was loaded although its file was changed; None where nothing is."""
    if emit_application(loaded).files == emit_application(original).files:
        return None
    problem = ExactProblem(unjudged_deployment(loaded, loaded.plans), original.problem.plans, is_free=True)
    for message in problem.wrong():
        return message
    for order in range(ORDERS):
        for fault in Interleaving(loaded, order).run(MOVES):
            return fault.message
    return None
