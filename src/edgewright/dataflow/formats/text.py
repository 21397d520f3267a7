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

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from ...errors import ModelError
from ...platform.schema import Entry, sentence
from ...platform.units import show
from ..graph import Actor, Channel, Graph, Rates, quoted
from .draft import ActorDraft, ChannelDraft, Shape, assembled
from .series import MOST, MOST_PHASES, rates, spelt, times


def to_json(graph: Graph) -> dict[str, object]:
    """The graph as values for `json.dumps`."""
    return {
        "name": graph.name,
        "actors": [_actor_json(actor) for actor in graph.actors],
        "channels": [_channel_json(channel) for channel in graph.channels],
    }


def from_json(value: object, name: str) -> Graph:
    """The graph in JSON values; `name` is the file's, for errors and for a graph without a name."""
    try:
        entry = _GraphEntry.model_validate(value)
        actors = [actor.drafted(f"actors[{i}]") for i, actor in enumerate(entry.actors)]
        channels = [channel.drafted(f"channels[{i}]") for i, channel in enumerate(entry.channels)]
        return assembled(Path(name).stem if entry.name is None else entry.name, actors, channels)
    except ValidationError as error:
        raise ModelError(f"{name}: {sentence(error, _GraphEntry)}") from None
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


def _spelt(value: object) -> str:
    """A list of rates or times as text: given as text, as a number, or as numbers."""
    if isinstance(value, str):
        return value
    items: Sequence[object] = value if isinstance(value, list | tuple) else [value]
    if len(items) > MOST_PHASES:
        raise ValueError(f"{len(items):,} phases; at most {MOST_PHASES:,} are handled")
    return ",".join(map(_item, items))


def _item(item: object) -> str:
    if isinstance(item, str) and not set(",;*") & set(item):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool) and abs(item) <= MOST:
        return repr(item)  # the shortest decimal of this number: 0.1 is a tenth
    raise ValueError(f"holds {show(item)}; expected numbers from 0 to 2^53, or a text such as 3*1,0")


def _whole_characters(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{quoted(text)} holds half a character (a lone surrogate); rename it")
    return text


Text = Annotated[StrictStr, AfterValidator(_whole_characters)]
Numbers = Annotated[str, BeforeValidator(_spelt)]
Whole = Annotated[StrictInt, Field(ge=0, le=MOST)]


class _ActorEntry(Entry):
    name: Text = Field(description="a text")
    phases: Whole | None = Field(default=None, description="a whole number from 0 to 2^53")
    initial_phases: Whole | None = Field(default=None, description="a whole number from 0 to 2^53")
    times: Numbers | None = Field(default=None, description="numbers, or a text such as 3*1,0")
    note: Text = Field(default="", description="a text")

    def drafted(self, place: str) -> ActorDraft:
        where = f"{place}, actor {quoted(self.name)}"
        given = None if self.times is None else times(self.times, f"'times' of {where}")
        return ActorDraft(self.name, f"its 'phases' ({place})", given, self._shape(where), self.note)

    def _shape(self, where: str) -> Shape | None:
        if self.phases is None:
            if self.initial_phases is not None:
                raise ModelError(f"{where} has 'initial_phases' but no 'phases'; give both, or neither")
            return None
        initial, again = self.initial_phases or 0, self.phases
        if not 0 < again <= initial + again <= MOST_PHASES:
            raise ModelError(
                f"{where} has {initial + again:,} phases; expected 1 to {MOST_PHASES:,}, one of them repeated"
            )
        return initial, again


class _ChannelEntry(Entry):
    name: Text = Field(description="a text")
    source: Text = Field(description="the name of an actor")
    target: Text = Field(description="the name of an actor")
    production: Numbers = Field(description="numbers, or a text such as 3*1,0")
    consumption: Numbers = Field(description="numbers, or a text such as 3*1,0")
    tokens: Whole = Field(default=0, description="a whole number from 0 to 2^53")
    token_bytes: Whole = Field(default=1, description="a whole number from 0 to 2^53")
    note: Text = Field(default="", description="a text")

    def drafted(self, place: str) -> ChannelDraft:
        where = f"{place}, channel {quoted(self.name)}"
        ends = (self.source, self.target)
        produced = rates(self.production, f"'production' of {where}")
        consumed = rates(self.consumption, f"'consumption' of {where}")
        return ChannelDraft(self.name, where, *ends, produced, consumed, self.tokens, self.token_bytes, self.note)


class _GraphEntry(Entry):
    model_config = ConfigDict(extra="ignore")
    name: Text | None = Field(default=None, description="a text")
    actors: list[_ActorEntry] = Field(description="objects in a list")
    channels: list[_ChannelEntry] = Field(description="objects in a list")
