"""Faults planted in plan files of applications: every value of a file, changed in every way that its type allows.

A loader must refuse what would go wrong, with a sentence. What it accepts must be harmless, and is never taken to be:
either the library that is printed is the same to the letter, or judges of the tests that know nothing of the product's
find nothing: bytes that are computed in random legal orders, and cells of buffers that are in use together.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from edgewright.application.draft import Application
from edgewright.application.library import emit_application
from edgewright.memory.joint.layout import JointLayout
from tests.application.exact import ExactProblem
from tests.application.judge import Interleaving

Keys = tuple[str | int, ...]  # keys and indices that lead to a value


Change = Callable[[Any], Any]
ORDERS, MOVES = 6, 60  # of interleavings in which what was accepted must do no harm


@dataclass(frozen=True)
class PlantedFault:
    """Values of a file that are changed."""

    kind: str  # keys that lead to the first, and how it is changed
    changes: tuple[tuple[Keys, Change], ...]

    @property
    def where(self) -> str:
        return f"{self.kind} at {'.'.join(map(str, self.changes[0][0]))}"

    def planted(self, data: dict[str, Any]) -> dict[str, Any]:
        found = copy.deepcopy(data)
        for keys, change in self.changes:
            inside: Any = found
            for key in keys[:-1]:
                inside = inside[key]
            inside[keys[-1]] = change(inside[keys[-1]])
        return found


def planted_faults(data: dict[str, Any], rng: random.Random) -> Iterator[PlantedFault]:
    """One fault of each kind, at a random one of the places for it."""
    found: dict[str, list[PlantedFault]] = {}
    for fault in (*_single(data["deployment"], ("deployment",)), *_addresses(data), *_functions(data)):
        found.setdefault(fault.kind, []).append(fault)
    for kind in sorted(found):
        yield rng.choice(found[kind])


def _single(value: Any, at: Keys) -> Iterator[PlantedFault]:
    """Every value below these keys, changed alone."""
    kind = ".".join(key if isinstance(key, str) else "#" for key in _generic(at))
    for name, change in _changes(value):
        if change(value) != value:
            yield PlantedFault(f"{kind}: {name}", ((at, change),))
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from _single(inner, (*at, key))


NAMED = ("views", "inputs", "outputs", "layouts", "weights", "rows", "columns")  # whose keys are the application's own


def _generic(at: Keys) -> Keys:
    """The path without names and positions."""
    return tuple(0 if isinstance(key, str) and at[n - 1] in NAMED else key for n, key in enumerate(at))


def _addresses(data: dict[str, Any]) -> Iterator[PlantedFault]:
    """Buffers, slots and the firmware's own where something else lies, or where that begins or ends."""
    things: list[tuple[str, Keys, int, int]] = []
    for n, part in enumerate(data["deployment"]["parts"]):
        for m, own in enumerate(part["plan"]["buffers"]):
            at = ("deployment", "parts", n, "plan", "buffers", m, "offset")
            things.append(("buffer", at, own["offset"], own["size"]))
    sizes = {own["name"]: own["bytes"] for own in data["deployment"]["buffers"]}
    for n, (_, arena) in enumerate(data["deployment"]["arenas"]):
        for m, (_, starts) in enumerate(arena["slots"]):
            for k, start in enumerate(starts):
                things.append(("slot", ("deployment", "arenas", n, 1, "slots", m, 1, k), start, 0))
        for name, start in arena["buffers"].items():
            things.append(("firmware", ("deployment", "arenas", n, 1, "buffers", name), start, sizes[name]))
    for (kind, at, here, size), (other, there, start, others) in permutations(things, 2):
        whose = "own" if at[:3] == there[:3] else "other"
        for name, to in (("on", start), ("into", start + others - 4), ("under", start + 4 - size)):
            if to >= 0 and to != here:
                yield PlantedFault(f"{kind} {name} a {whose} {other}", ((at, lambda _, to=to: to),))
        if here != start:
            changes = ((at, lambda _, to=start: to), (there, lambda _, to=here: to))
            yield PlantedFault(f"{kind} swapped with a {whose} {other}", changes)


def _functions(data: dict[str, Any]) -> Iterator[PlantedFault]:
    """Layers that compute something else, said alike by a part and by its plan."""
    for n, part in enumerate(data["deployment"]["parts"]):
        networks = [("deployment", "parts", n, *keys, "network", "layers") for keys in ((), ("plan",))]
        for m, layer in enumerate(part["network"]["layers"]):
            pads = layer["op"].get("pads")
            if pads and any(pads):
                changes = tuple(((*keys, m, "op", "pads"), _shifted) for keys in networks)
                yield PlantedFault("padding on the other side", changes)
            if len(set(layer["inputs"])) > 1:
                changes = tuple(((*keys, m, "inputs"), lambda old: old[::-1]) for keys in networks)
                yield PlantedFault("inputs reversed", changes)


def _shifted(pads: list[int]) -> list[int]:
    """The padding in front, and none behind."""
    half = len(pads) // 2
    return [a + b for a, b in zip(pads[:half], pads[half:], strict=True)] + [0] * half


def _changes(value: Any) -> Iterator[tuple[str, Change]]:
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


def harm(app: Application, original: JointLayout, loaded: JointLayout) -> str | None:
    """What is wrong with a layout that was loaded although its file was changed; None where nothing is."""
    if emit_application(app, loaded).files == emit_application(app, original).files:
        return None
    problem = ExactProblem(loaded.deployment, original.problem.plans, is_free=True)
    for message in problem.wrong():
        return message
    for order in range(ORDERS):
        for fault in Interleaving(loaded, order).run(MOVES):
            return fault.message
    return None
