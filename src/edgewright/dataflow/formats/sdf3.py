"""Reads SDF3's XML, the exchange format for SDF and CSDF graphs; `sdf3_text` writes it.

Files are untrusted: they become a small tree with line numbers, and unknown elements are skipped. Document types are
refused, since they can declare entities that expand to gigabytes or read other files.

Times are those of an actor's default processor: the last one marked so, as in SDF3 itself, else the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from ...errors import InputError, ModelError
from ..graph import Graph, Time, quoted
from .draft import ActorDraft, ChannelDraft, Shape, assembled, nearest
from .series import MOST_PHASES, Series, rates, times, whole

_MOST_DEPTH = 64
_MOST_ELEMENTS = 250_000
_EXPECTED = "expected an SDF3 file"


@dataclass(slots=True)
class Element:
    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def each(self, *tags: str) -> Iterator[Element]:
        return (child for child in self.children if child.tag in tags)


def tree(data: bytes, name: str, known: Collection[str]) -> Element:
    """The root with the known elements below it; `name` is for errors."""
    reader = _MarkupReader(name, known)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(f"{name}: is not well-formed XML ({error}); {_EXPECTED}") from None
    except (LookupError, ValueError) as error:  # an unknown encoding, or one of several bytes per character
        raise InputError(f"{name}: its encoding cannot be read ({error}); save it as UTF-8") from None
    assert reader.root is not None  # a document without an element is not well-formed
    return reader.root


class _MarkupReader:
    """Follows the parser's events; holds the open elements."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        self.name = name
        self.known = known
        self.root: Element | None = None
        self.open: list[Element | None] = []  # None: skipped
        self.elements = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.doctype

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.elements += 1
        if self.elements > _MOST_ELEMENTS or len(self.open) >= _MOST_DEPTH:
            raise InputError(
                f"{self.name}: has more than {_MOST_ELEMENTS:,} elements or more than {_MOST_DEPTH} inside each other "
                f"(line {self.parser.CurrentLineNumber}); {_EXPECTED}"
            )
        element = Element(tag.rpartition(":")[2], attributes, self.parser.CurrentLineNumber)
        parent = self.open[-1] if self.open else None
        if self.root is None:
            self.root = element
        elif parent is None or element.tag not in self.known:
            self.open.append(None)
            return
        else:
            parent.children.append(element)
        self.open.append(element)

    def end(self, _tag: str) -> None:
        self.open.pop()

    def doctype(self, *_: object) -> None:
        raise InputError(
            f"{self.name}: declares a document type (line {self.parser.CurrentLineNumber}), which SDF3 files do not "
            "need and hostile files use; remove the <!DOCTYPE …> lines"
        )


_GRAPHS = ("csdf", "sdf")
_PROPERTIES = ("csdfProperties", "sdfProperties")
_DETAILS = ("actorProperties", "processor", "executionTime", "channelProperties", "tokenSize")
_KNOWN = frozenset((*_GRAPHS, *_PROPERTIES, *_DETAILS, "applicationGraph", "actor", "port", "channel"))
_TYPE = {"src": "out", "dst": "in"}
_A = {"actor": "an actor", "channel": "a channel"}


@dataclass(frozen=True)
class _Sdf3Port:
    direction: str
    rates: Series[int]
    where: str


Ports = Mapping[str, Mapping[str, _Sdf3Port]]  # by actor and name


def parse_sdf3(data: bytes, name: str) -> Graph:
    """The graph in the bytes of an SDF3 file; `name` is the file's, for errors."""
    root = tree(data, name, _KNOWN)
    try:
        application, graph = _found(root)
        return _graph(application, graph, Path(name).stem)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from None


def _found(root: Element) -> tuple[Element, Element]:
    """The application, and the graph inside it."""
    if root.tag != "sdf3":
        raise InputError(f"is XML, but not SDF3: its root is <{quoted(root.tag)[1:-1]}>, not <sdf3>")
    applications = list(root.each("applicationGraph"))
    graphs = [(application, graph) for application in applications for graph in application.each(*_GRAPHS)]
    if not graphs:
        kind = quoted(root.attributes.get("type", ""))
        raise InputError(
            f"holds no graph that can be read: expected <sdf> or <csdf> in an <applicationGraph> (its type is {kind})"
        )
    if len(graphs) > 1:
        raise InputError(f"holds {len(graphs)} graphs: keep one, and put the others into files of their own")
    return graphs[0]


def _graph(application: Element, graph: Element, otherwise: str) -> Graph:
    name = graph.attributes.get("name", application.attributes.get("name", otherwise))
    actors, channels = _named(graph, "actor"), _named(graph, "channel")
    processors = _properties(application, "actor", actors)
    sizes = _properties(application, "channel", channels)
    ports = {
        actor: {name: _port(name, port, element) for name, port in _named(element, "port").items()}
        for actor, element in actors.items()
    }
    drafts = [_channel(name, element, ports, sizes.get(name)) for name, element in channels.items()]
    _check_used(ports, channels.values())
    return assembled(name, [_actor(*named, processors.get(named[0])) for named in actors.items()], drafts)


def _named(parent: Element, tag: str) -> Mapping[str, Element]:
    """The children with that tag by name."""
    elements: dict[str, Element] = {}
    for child in parent.each(tag):
        name = _required(child, "name")
        if name in elements:
            lines = f"lines {elements[name].line} and {child.line}"
            raise ModelError(f"{tag} {quoted(name)} is there twice ({lines}): give each {tag} a name of its own")
        elements[name] = child
    return elements


def _properties(application: Element, kind: str, known: Collection[str]) -> Mapping[str, Element]:
    """The file's properties of actors, or of channels, by name."""
    elements: dict[str, Element] = {}
    for properties in (each for group in application.each(*_PROPERTIES) for each in group.each(f"{kind}Properties")):
        name = _required(properties, kind)
        if name not in known:
            raise ModelError(
                f"{_place(properties)}: {quoted(name)} is not {_A[kind]} of the graph{nearest(name, known)}"
            )
        if name in elements:
            raise ModelError(f"{_place(properties)}: {kind} {quoted(name)} is described a second time; keep one")
        elements[name] = properties
    return elements


def _port(name: str, port: Element, actor: Element) -> _Sdf3Port:
    direction = _required(port, "type")
    if direction not in _TYPE.values():
        raise ModelError(f"{_place(port)}: a port's type is in or out, not {quoted(direction)}")
    where = f"port {quoted(name)} of actor {quoted(actor.attributes['name'])} (line {port.line})"
    return _Sdf3Port(direction, rates(_required(port, "rate"), where), where)


def _actor(name: str, element: Element, properties: Element | None) -> ActorDraft:
    return ActorDraft(
        name,
        f"its 'phases' (line {element.line})",
        _times(name, properties) if properties else None,
        _shape(element),
        element.attributes.get("note", ""),
    )


def _shape(actor: Element) -> Shape | None:
    """The number of phases where `sdf3_text` had no list that shows it."""
    text = actor.attributes.get("phases")
    if text is None:
        return None
    initial, _, again = text.rpartition(";")
    where = f"'phases' of {_place(actor)}"
    shape = whole(initial or "0", where), whole(again, where)
    if not 0 < shape[1] <= sum(shape) <= MOST_PHASES:
        raise ModelError(f"{where} is {quoted(text)}; expected 1 to {MOST_PHASES:,} phases")
    return shape


def _times(name: str, properties: Element) -> Series[Time] | None:
    processors = list(properties.each("processor"))
    marked = [each for each in processors if each.attributes.get("default", "false") not in ("false", "0")]
    for time in (time for processor in marked[-1:] or processors[:1] for time in processor.each("executionTime")):
        return times(_required(time, "time"), f"the execution times of actor {quoted(name)} (line {time.line})")
    return None


def _channel(name: str, element: Element, ports: Ports, properties: Element | None) -> ChannelDraft:
    where = f"channel {quoted(name)} (line {element.line})"
    sizes = [size for size in (properties.each("tokenSize") if properties else ()) if "sz" in size.attributes]
    return ChannelDraft(
        name,
        where,
        _required(element, "srcActor"),
        _required(element, "dstActor"),
        _end(element, "src", ports, where).rates,
        _end(element, "dst", ports, where).rates,
        tokens=_whole(element, "initialTokens", 0),
        token_bytes=_whole(sizes[0], "sz", 1) if sizes else _whole(element, "size", 1),
        note=element.attributes.get("note", ""),
    )


def _end(channel: Element, end: str, ports: Ports, where: str) -> _Sdf3Port:
    """The port at one end of a channel."""
    actor, name = _required(channel, f"{end}Actor"), _required(channel, f"{end}Port")
    if actor not in ports:
        raise ModelError(f"{where}: {end}Actor {quoted(actor)} is not an actor of the graph{nearest(actor, ports)}")
    if name not in ports[actor]:
        raise ModelError(f"{where}: actor {quoted(actor)} has no port {quoted(name)}{nearest(name, ports[actor])}")
    port = ports[actor][name]
    if port.direction != _TYPE[end]:
        raise ModelError(f"{where}: its {end}Port is {port.where}; it must be of type {_TYPE[end]}")
    return port


def _check_used(ports: Ports, channels: Iterable[Element]) -> None:
    """Raises an error unless every port belongs to one channel."""
    users: dict[tuple[str, str], Element] = {}
    for channel in channels:
        for end in ("src", "dst"):
            key = channel.attributes[f"{end}Actor"], channel.attributes[f"{end}Port"]
            if key in users:
                lines = f"lines {users[key].line} and {channel.line}"
                raise ModelError(f"two channels use {ports[key[0]][key[1]].where} ({lines}); give each its own port")
            users[key] = channel
    for actor, named in ports.items():
        for name, port in named.items():
            if (actor, name) not in users:
                raise ModelError(f"no channel uses {port.where}; add the channel, or remove the port")


def _whole(element: Element, key: str, otherwise: int) -> int:
    text = element.attributes.get(key)
    return otherwise if text is None else whole(text, f"'{key}' of {_place(element)}")


def _required(element: Element, key: str) -> str:
    if key not in element.attributes:
        raise ModelError(f"{_place(element)} has no attribute '{key}'; add {key}=\"…\"")
    return element.attributes[key]


def _place(element: Element) -> str:
    return f"<{element.tag}> in line {element.line}"
