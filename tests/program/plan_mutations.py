"""Plan files with one or two things changed: what a slip of the hand, a bad merge or somebody's idea may do to them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from edgewright.program.plan import FORMAT
from edgewright.program.plan_file import parsed

_ODD = (
    None,
    True,
    -1,
    0,
    1,
    3,
    1 << 31,
    1 << 62,
    10**30,
    0.5,
    float("nan"),
    "",
    "x",
    [],
    {},
    [[]],
    {"op": "Clamp"},
)
# Remarks and figures that nothing depends on: changing them shows nothing.
_IDLE = ("method", "notes", "savings", "searched", "plain")


# Parts of a file that decide something, as often as they are worth a try.
_PARTS = (
    *("buffers", "views", "stages") * 3,
    *("selections", "selections", "free", "packed", "target", "options", "network", "all"),
)


def mutated(random: Random, data: dict[str, Any]) -> dict[str, Any]:
    """The plan with one to three things changed, most of them small; its figures mostly as they now should be."""
    changed = copy.deepcopy(data)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        _change(random, changed)
    return _with_own_figures(changed) if random.random() < 0.75 else changed


def _with_own_figures(data: dict[str, Any]) -> dict[str, Any]:
    """The plan with the figures that its parts come to, so that the parts are judged; as it is where there are none."""
    try:
        found = parsed(json.dumps(data), FORMAT).build()
        own = {"peak_bytes": sum(found.arenas.values()), "bound_bytes": 0, "order": list(found.order)}
        return {**data, **own, "optimal": False, "macs": found.macs}
    except Exception:  # whoever reads the plan must say what is wrong
        return data


def _change(random: Random, data: dict[str, Any]) -> None:
    part = random.choice(_PARTS)
    chosen = data if part == "all" else {part: data[part]}
    places = [place for place in _places(chosen) if not set(place[1]) & set(_IDLE)]
    if not places:
        return
    holder, path = random.choice(places)
    key = path[-1]
    value = holder[key]
    if random.random() < 0.25:
        _exchange(random, (holder, key), [(other, where[-1]) for other, where in places])
        return
    match value:
        case bool():
            holder[key] = not value
        case int():
            holder[key] = _number(random, value, places)
        case str():
            texts = [h[p[-1]] for h, p in places if isinstance(h[p[-1]], str)]
            holder[key] = random.choice((*texts, *texts, "forward", "backward", "channels", "x"))
        case list() if value:
            _shuffle(random, value)
        case dict() if value:
            del value[random.choice(list(value))]
        case _:
            holder[key] = random.choice(_ODD)
    if random.random() < 0.05:
        holder[key] = random.choice(_ODD)


def _exchange(random: Random, one: tuple[Any, Any], places: list[tuple[Any, Any]]) -> None:
    """Two values of the same kind in each other's place: offsets, names, lists of strides, whole entries."""
    (holder, key), value = one, one[0][one[1]]
    alike = [(h, k) for h, k in places if type(h[k]) is type(value) and (isinstance(k, int) or k == key)]
    other, where = random.choice(alike or [one])
    holder[key], other[where] = copy.deepcopy(other[where]), copy.deepcopy(value)


def _number(random: Random, value: int, places: list[tuple[Any, tuple[Any, ...]]]) -> int:
    others = [h[p[-1]] for h, p in places if type(h[p[-1]]) is int]
    near = (value + 1, value - 1, value + 4, value - 4, value + 8, value * 2, value // 2, 0, 1, -value)
    return random.choice((*near, random.choice(others), random.choice(others)))


def _shuffle(random: Random, values: list[Any]) -> None:
    at, to = random.randrange(len(values)), random.randrange(len(values))
    match random.randrange(6):
        case 0:
            del values[at]
        case 1:
            values.insert(to, copy.deepcopy(values[at]))
        case 2:
            values.reverse()
        case 3:
            random.shuffle(values)
        case _:
            values[at], values[to] = values[to], values[at]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every place of nested lists and objects: what holds it, and the way to it."""
    keys = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    for key in keys:
        yield value, (*path, key)
        yield from _places(value[key], (*path, key))
