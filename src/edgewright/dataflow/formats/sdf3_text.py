"""Writes a graph as SDF3's XML without loss.

SDF3 and Kiter ignore unknown attributes, so notes, and the phases of an actor without lists, are our own attributes.
Both tools expect integer times: others are written exactly all the same, as 0.25 or, if the decimals do not end, as
1/3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import quoteattr

from ...errors import ModelError
from ..graph import Actor, Channel, Graph, Rates, quoted
from .series import spelt

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def sdf3(graph: Graph) -> str:
    """The text of an SDF3 file with the graph."""
    ports = _ports(graph)
    kind = "sdf" if graph.is_sdf else "csdf"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<sdf3 type="{kind}" version="1.0">',
        f" <applicationGraph{_attributes(name=graph.name)}>",
        f"  <{kind}{_attributes(name=graph.name, type=graph.name)}>",
        *(line for actor in graph.actors for line in _actor(actor, ports[actor.name])),
        *(_channel(index, channel) for index, channel in enumerate(graph.channels)),
        f"  </{kind}>",
        f"  <{kind}Properties>",
        *(_times(actor) for actor in graph.actors if actor.times is not None),
        *(_size(channel) for channel in graph.channels),
        f"  </{kind}Properties>",
        " </applicationGraph>",
        "</sdf3>",
    ]
    return "\n".join(lines) + "\n"


def _ports(graph: Graph) -> Mapping[str, list[str]]:
    """The ports of each actor, numbered by their channels."""
    ports: dict[str, list[str]] = {actor.name: [] for actor in graph.actors}
    for index, channel in enumerate(graph.channels):
        ports[channel.source].append(_port(f"o{index}", "out", channel.production))
        ports[channel.target].append(_port(f"i{index}", "in", channel.consumption))
    return ports


def _port(name: str, direction: str, rates: Rates) -> str:
    return f"    <port{_attributes(name=name, type=direction, rate=spelt(rates.cycle, rates.initial))}/>"


def _actor(actor: Actor, ports: Sequence[str]) -> Iterator[str]:
    phases = "" if ports or actor.times is not None else f"{actor.initial_phases};{actor.phases}"
    yield f"   <actor{_attributes(name=actor.name, type=actor.name)}{_optional(phases=phases, note=actor.note)}>"
    yield from ports
    yield "   </actor>"


def _channel(index: int, channel: Channel) -> str:
    ends = _attributes(
        name=channel.name,
        srcActor=channel.source,
        srcPort=f"o{index}",
        dstActor=channel.target,
        dstPort=f"i{index}",
        size=str(channel.token_bytes),
        initialTokens=str(channel.tokens),
    )
    return f"   <channel{ends}{_optional(note=channel.note)}/>"


def _times(actor: Actor) -> str:
    assert actor.times is not None
    first = actor.initial_phases
    time = _attributes(time=spelt(actor.times[first:], actor.times[:first]))
    processor = f'<processor type="processor" default="true"><executionTime{time}/></processor>'
    return f"   <actorProperties{_attributes(actor=actor.name)}>{processor}</actorProperties>"


def _size(channel: Channel) -> str:
    size = f"<tokenSize{_attributes(sz=str(channel.token_bytes))}/>"
    return f"   <channelProperties{_attributes(channel=channel.name)}>{size}</channelProperties>"


def _optional(**texts: str) -> str:
    return _attributes(**{key: text for key, text in texts.items() if text})


def _attributes(**texts: str) -> str:
    return "".join(f" {key}={_quoted(text)}" for key, text in texts.items())


def _quoted(text: str) -> str:
    bad = _NOT_XML.search(text)
    if bad:
        raise ModelError(
            f"{quoted(text)} has the character U+{ord(bad[0]):04X}, which XML cannot hold; rename it, or write JSON"
        )
    return quoteattr(text)
