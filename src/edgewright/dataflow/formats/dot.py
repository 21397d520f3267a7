"""A graph in Graphviz format: actors as boxes, rates at the ends of channels, initial tokens as dots."""

from __future__ import annotations

from itertools import groupby, islice

from ...text import plural, printable, shortened
from ..graph import Actor, Channel, Graph, Rates
from .series import spelt

_MOST_DOTS = 4
_MOST_RUNS = 6  # of a list of rates in a label


def dot(graph: Graph) -> str:
    """The text of a DOT file. Nodes are numbered, because escaped names may be equal."""
    number = {actor.name: index for index, actor in enumerate(graph.actors)}
    lines = [
        f"digraph {_quoted(graph.name)} {{",
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
        *(f"  n{index} [{_actor(actor)}];" for index, actor in enumerate(graph.actors)),
        *(f"  n{number[c.source]} -> n{number[c.target]} [{_channel(c)}];" for c in graph.channels),
        "}",
    ]
    return "\n".join(lines) + "\n"


def short(rates: Rates) -> str:
    """The rates in brief: 1, [3*128, 0] or [2; 3*1], abbreviated if long."""
    if not rates.initial and len(rates.cycle) == 1:
        return str(rates.cycle[0])
    initial, cycle = _cut(rates.initial), _cut(rates.cycle)
    return f"[{initial}; {cycle}]" if initial else f"[{cycle}]"


def _cut(values: tuple[int, ...]) -> str:
    """The first runs of equal numbers."""
    runs = [tuple(run) for _, run in islice(groupby(values), _MOST_RUNS)]
    kept = sum(map(len, runs))
    return spelt(values[:kept], comma=", ") + (", …" if kept < len(values) else "")


def _actor(actor: Actor) -> str:
    lines = [shortened(printable(actor.name), 60)]
    if actor.note:
        lines.append(shortened(printable(actor.note), 60))
    if actor.initial_phases:
        lines.append(f"{actor.initial_phases:,} + {plural(actor.phases, 'phase')}")
    elif actor.phases > 1:
        lines.append(plural(actor.phases, "phase"))
    return "label=" + _lines(lines)


def _channel(channel: Channel) -> str:
    texts = {
        "label": _tokens(channel.tokens),
        "taillabel": short(channel.production),
        "headlabel": short(channel.consumption),
        "tooltip": f"{channel.name} {channel.note}".strip(),
    }
    return ", ".join(f"{key}={_quoted(text)}" for key, text in texts.items() if text)


def _tokens(tokens: int) -> str:
    return "●" * tokens if tokens <= _MOST_DOTS else f"{tokens:,} ●"


def _lines(lines: list[str]) -> str:
    r"""One label of several lines; DOT uses \
     inside quotes."""
    return '"' + r"\n".join(_escaped(line) for line in lines) + '"'


def _quoted(text: str) -> str:
    return f'"{_escaped(printable(text))}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
