"""Untrusted XML as a small tree with line numbers: what is not asked for is skipped, and no file can blow up.

Document types are refused outright: entities that expand to gigabytes or name other files are declared in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from ...errors import InputError

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
    """The root with those elements below it whose tags, and whose parents' tags, are known; `name` is for errors."""
    reader = _MarkupReader(name, known)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(f"{name}: is not well-formed XML ({error}); {_EXPECTED}") from None
    except (LookupError, ValueError) as error:  # an encoding that does not exist, or of several bytes a character
        raise InputError(f"{name}: its encoding cannot be read ({error}); save it as UTF-8") from None
    assert reader.root is not None  # a document without an element is not well-formed
    return reader.root


class _MarkupReader:
    """Follows the parser's events; holds the elements that are open."""

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
