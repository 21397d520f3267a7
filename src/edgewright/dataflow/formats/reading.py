"""A dataflow graph from a file: SDF3 XML or JSON, told by its content."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import InputError
from ..graph import Graph
from .content import check_size, content
from .sdf3 import parse_sdf3
from .text import from_json

_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def read_graph(path: Path | str) -> Graph:
    """The graph in an SDF3 XML file, or in a JSON file."""
    return parse_graph(content(path), str(path))


def parse_graph(data: bytes, name: str) -> Graph:
    """The graph in the bytes of such a file; `name` is the file's, for errors."""
    check_size(data, name)
    match _first(data):
        case b"<":
            return parse_sdf3(data, name)
        case b"{" | b"[":
            return from_json(_values(data, name), name)
        case _:
            raise InputError(f"'{name}' is neither XML nor JSON; give an SDF3 XML file or a graph in JSON")


def _first(data: bytes) -> bytes:
    """The first byte that says something: in UTF-16 a zero may come before it."""
    for bom in _BOMS:
        data = data.removeprefix(bom)
    return data[:1000].lstrip(b" \t\r\n\0")[:1]


def _values(data: bytes, name: str) -> object:
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except RecursionError:
        raise InputError(f"{name}: is nested too deeply; expected a graph in JSON") from None
    except (
        ValueError
    ) as error:  # JSONDecodeError and UnicodeDecodeError are; so is a number of thousands of digits
        raise InputError(f"{name}: is not JSON in UTF-8: {error}") from None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number")
