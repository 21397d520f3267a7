"""Graphs as JSON, in a format of our own.

    {"name": "example",
     "actors": [{"name": "a", "phases": 3, "times": "2*1,3/4", "note": "a layer"}],
     "channels": [{"name": "c", "source": "a", "target": "a", "production": "3*1", "consumption": "0,0,3",
                   "tokens": 3, "token_bytes": 4, "note": "its state"}]}

Rates and times are lists as in SDF3: `3*1` is 1,1,1; what stands before a semicolon happens once (`2,0;3*1`); a single
number holds for every phase. A JSON number or a JSON list does as well. Times may be decimals or fractions. Only
names, ends and rates must be there; phases are read off the lists where `phases` and `initial_phases` do not say them.
Other keys beside `actors` and `channels` are left alone: a report may put the graph among its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import ModelError
from ..graph import Actor, Channel, Graph, Rates, Time, quoted
from .draft import ActorDraft, ChannelDraft, Shape, assembled, check_parts, nearest
from .series import MOST, MOST_PHASES, Series, check_phases, rates, spelt, times

_ACTOR = ("name", "phases", "initial_phases", "times", "note")
_CHANNEL = ("name", "source", "target", "production", "consumption", "tokens", "token_bytes", "note")


def to_json(graph: Graph) -> dict[str, object]:
    """The graph as values that `json.dumps` takes."""
    return {
        "name": graph.name,
        "actors": [_actor_json(actor) for actor in graph.actors],
        "channels": [_channel_json(channel) for channel in graph.channels],
    }


def from_json(value: object, name: str) -> Graph:
    """The graph that JSON values describe; `name` is the file's, for errors and for a graph that has none."""
    try:
        table = _table(value, "the graph")
        title = _text(table.get("name", Path(name).stem), "the graph's 'name'")
        actors = [_actor(each, f"actors[{i}]") for i, each in enumerate(_list(table, "actors"))]
        channels = [_channel(each, f"channels[{i}]") for i, each in enumerate(_list(table, "channels"))]
        return assembled(title, actors, channels)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None


def _actor_json(actor: Actor) -> dict[str, object]:
    entry: dict[str, object] = {"name": actor.name, "phases": actor.phases}
    first = actor.initial_phases
    if first:
        entry["initial_phases"] = first
    if actor.times is not None:
        entry["times"] = spelt(actor.times[first:], actor.times[:first])
    return entry | _note(actor.note)


def _channel_json(channel: Channel) -> dict[str, object]:
    return {
        "name": channel.name,
        "source": channel.source,
        "target": channel.target,
        "production": _rates(channel.production),
        "consumption": _rates(channel.consumption),
        "tokens": channel.tokens,
        "token_bytes": channel.token_bytes,
    } | _note(channel.note)


def _rates(rates: Rates) -> str:
    return spelt(rates.cycle, rates.initial)


def _note(note: str) -> dict[str, object]:
    return {"note": note} if note else {}


def _actor(value: object, where: str) -> ActorDraft:
    table = _known(_table(value, where), _ACTOR, where)
    named = f"{where}, actor {quoted(_text(_needed(table, 'name', where), where + '.name'))}"
    return ActorDraft(
        str(table["name"]),
        f"its 'phases' ({where})",
        _times(table["times"], f"'times' of {named}") if table.get("times") is not None else None,
        _shape(table, named),
        _text(table.get("note", ""), f"'note' of {named}"),
    )


def _shape(table: Mapping[str, object], where: str) -> Shape | None:
    if "phases" not in table:
        if "initial_phases" in table:
            raise ModelError(f"{where} has 'initial_phases' but no 'phases'; give both, or neither")
        return None
    initial = _whole(table.get("initial_phases", 0), f"'initial_phases' of {where}")
    again = _whole(table["phases"], f"'phases' of {where}")
    if not 0 < again <= initial + again <= MOST_PHASES:
        raise ModelError(f"{where} has {initial + again:,} phases; expected 1 to {MOST_PHASES:,}, one of them repeated")
    return initial, again


def _channel(value: object, where: str) -> ChannelDraft:
    table = _known(_table(value, where), _CHANNEL, where)
    name = _text(_needed(table, "name", where), f"{where}.name")
    named = f"{where}, channel {quoted(name)}"
    return ChannelDraft(
        name,
        named,
        _text(_needed(table, "source", named), f"'source' of {named}"),
        _text(_needed(table, "target", named), f"'target' of {named}"),
        _series(_needed(table, "production", named), f"'production' of {named}"),
        _series(_needed(table, "consumption", named), f"'consumption' of {named}"),
        tokens=_whole(table.get("tokens", 0), f"'tokens' of {named}"),
        token_bytes=_whole(table.get("token_bytes", 1), f"'token_bytes' of {named}"),
        note=_text(table.get("note", ""), f"'note' of {named}"),
    )


def _series(value: object, where: str) -> Series[int]:
    return rates(_spelt(value, where), where)


def _times(value: object, where: str) -> Series[Time]:
    return times(_spelt(value, where), where)


def _spelt(value: object, where: str) -> str:
    """A list, given as text, as a number or as numbers, as text."""
    if isinstance(value, str):
        return value
    items: Sequence[object] = value if isinstance(value, list | tuple) else [value]
    check_phases(len(items), where)
    return ",".join(_item(item, where) for item in items)


def _item(item: object, where: str) -> str:
    if isinstance(item, str) and not set(",;*") & set(item):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool) and abs(item) <= MOST:
        return repr(item)  # the shortest decimal that is this number: 0.1 means a tenth
    raise ModelError(f"{where} holds {_shown(item)}; expected numbers from 0 to 2^53, or a text such as 3*1,0")


def _table(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ModelError(f"{where} is {_shown(value)}; expected an object with keys")
    return value


def _list(table: Mapping[str, object], key: str) -> Sequence[object]:
    value = table.get(key)
    if not isinstance(value, list | tuple):
        raise ModelError(f"the graph's '{key}' is {_shown(value)}; expected a list of objects")
    check_parts(len(value))
    return value


def _known(table: Mapping[str, object], keys: Sequence[str], where: str) -> Mapping[str, object]:
    for key in table:
        if key not in keys:
            raise ModelError(f"{where}: {quoted(str(key))} is not a key here{nearest(str(key), keys)}")
    return table


def _needed(table: Mapping[str, object], key: str, where: str) -> object:
    if key not in table:
        raise ModelError(f"{where} has no '{key}'")
    return table[key]


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ModelError(f"{where} is {_shown(value)}; expected a text")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ModelError(f"{where} is {quoted(value)}, which holds half a character (a lone surrogate); rename it")
    return value


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise ModelError(f"{where} is {_shown(value)}; expected a whole number from 0 to 2^53")
    return value


def _shown(value: object) -> str:
    """The value in a few characters; of big ones the kind."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 10**20):
        return str(value)
    return {int: "a huge number", list: "a list", dict: "an object"}.get(type(value), type(value).__name__)
