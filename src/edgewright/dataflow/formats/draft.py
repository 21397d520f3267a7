"""Builds a checked graph from a file's actors and channels, for any file format."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import ModelError
from ..graph import Actor, Channel, Graph, Rates, Time, quoted
from .series import Series

MOST_NUMBERS = 4_000_000  # rates and times in a graph, all expanded lists together
MOST_PARTS = 100_000  # actors and channels
MOST_LETTERS = 1000  # in a name, since messages and drawings show it
Shape = tuple[int, int]  # initial and repeated phases


@dataclass(frozen=True)
class ActorDraft:
    """An actor whose number of phases must still be derived from its lists."""

    name: str
    where: str
    times: Series[Time] | None = None
    shape: Shape | None = None  # if the file states it
    note: str = ""


@dataclass(frozen=True)
class ChannelDraft:
    """A channel whose lists may still be single numbers for all phases."""

    name: str
    where: str
    source: str
    target: str
    production: Series[int]
    consumption: Series[int]
    tokens: int = 0
    token_bytes: int = 1
    note: str = ""


def assembled(name: str, actors: Sequence[ActorDraft], channels: Sequence[ChannelDraft]) -> Graph:
    """The graph, after a check that every list fits the phases of its actor."""
    if not actors:
        raise ModelError("the graph has no actors: a graph needs at least one")
    if (parts := len(actors) + len(channels)) > MOST_PARTS:
        raise ModelError(f"the graph has {parts:,} actors and channels; at most {MOST_PARTS:,} are handled")
    for each in (*(actor.name for actor in actors), *(channel.name for channel in channels)):
        if len(each) > MOST_LETTERS:
            raise ModelError(f"the name {quoted(each)} is longer than {MOST_LETTERS:,} characters; shorten it")
    lists = _lists(actors, channels)
    shapes = {actor.name: _shape(actor, lists[actor.name]) for actor in actors}
    numbers = sum(sum(shape) * len(lists[actor]) for actor, shape in shapes.items())
    if numbers > MOST_NUMBERS:
        raise ModelError(f"its lists hold {numbers:,} rates and times; at most {MOST_NUMBERS:,} are handled")
    return Graph(
        name,
        tuple(_actor(draft, shapes[draft.name]) for draft in actors),
        tuple(_channel(draft, shapes) for draft in channels),
    )


def nearest(word: str, known: Iterable[str]) -> str:
    """ "; did you mean …?" for the most similar known word, or an empty text."""
    words = [name for name in list(known)[:1000] if len(name) < 100]  # the comparison is slow
    near = difflib.get_close_matches(word[:100], words, n=1)
    return f"; did you mean {quoted(near[0])}?" if near else ""


def _lists(
    actors: Sequence[ActorDraft], channels: Sequence[ChannelDraft]
) -> Mapping[str, list[Series[int] | Series[Time]]]:
    """The lists that must fit each actor's phases."""
    lists: dict[str, list[Series[int] | Series[Time]]] = {actor.name: [] for actor in actors}
    for actor in actors:
        if actor.times is not None:
            lists[actor.name].append(actor.times)
    for channel in channels:
        for end, name, series in (
            ("source", channel.source, channel.production),
            ("target", channel.target, channel.consumption),
        ):
            if name not in lists:
                raise ModelError(
                    f"{channel.where}: its {end} {quoted(name)} is not an actor of the graph{nearest(name, lists)}"
                )
            lists[name].append(series)
    return lists


def _shape(actor: ActorDraft, lists: Iterable[Series[int] | Series[Time]]) -> Shape:
    shape, said_by = actor.shape, actor.where
    for series in lists:
        if series.is_constant:
            continue
        if shape is None:
            shape, said_by = series.shape, series.where
        elif series.shape != shape:
            raise ModelError(
                f"actor {quoted(actor.name)} has {_phases(shape)} by {said_by}, but {_phases(series.shape)} by "
                f"{series.where}: make the lists equally long, or give one number for every phase"
            )
    return shape or (0, 1)


def _phases(shape: Shape) -> str:
    initial, again = shape
    return f"{initial:,} initial and {again:,} repeated phases" if initial else f"{again:,} phases"


def _actor(draft: ActorDraft, shape: Shape) -> Actor:
    times = None
    if draft.times is not None:
        initial, again = draft.times.fitted(shape)
        times = initial + again
    return Actor(draft.name, phases=shape[1], times=times, initial_phases=shape[0], note=draft.note)


def _channel(draft: ChannelDraft, shapes: Mapping[str, Shape]) -> Channel:
    return Channel(
        draft.name,
        draft.source,
        draft.target,
        _rates(draft.production, shapes[draft.source]),
        _rates(draft.consumption, shapes[draft.target]),
        tokens=draft.tokens,
        token_bytes=draft.token_bytes,
        note=draft.note,
    )


def _rates(series: Series[int], shape: Shape) -> Rates:
    initial, again = series.fitted(shape)
    return Rates(again, initial)
