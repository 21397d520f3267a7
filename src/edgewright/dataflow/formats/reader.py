"""A dataflow graph from a file: SDF3 XML or JSON, recognised by its first characters."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import InputError
from ...files import read_file
from ..graph import Graph
from .sdf3 import parse_sdf3
from .text import from_json

MOST_BYTES = 16 << 20  # the graph of a CNN with hundreds of layers takes about 1 MiB
_TRY = "give the path of an SDF3 XML file or of a graph in JSON"
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def read_graph(path: Path | str) -> Graph:
    """The graph in an SDF3 XML file, or in a JSON file."""
    return parse_graph(read_file(path, _TRY, MOST_BYTES + 1), str(path))


def parse_graph(data: bytes, name: str) -> Graph:
    """The graph in the bytes of such a file; `name` is the file's, for errors."""
    if len(data) > MOST_BYTES:
        raise InputError(
            f"'{name}' is larger than {MOST_BYTES >> 20} MiB, the most that is read; "
            "shorten its lists: 1,1,1 may be written 3*1"
        )
    if not data.strip():
        raise InputError(f"'{name}' is empty; {_TRY}")
    match _first(data):
        case b"<":
            return parse_sdf3(data, name)
        case b"{" | b"[":
            return from_json(_values(data, name), name)
        case _:
            raise InputError(f"'{name}' is neither XML nor JSON; give an SDF3 XML file or a graph in JSON")


def _first(data: bytes) -> bytes:
    """The first significant byte: in UTF-16 a zero may precede it."""
    for bom in _BOMS:
        data = data.removeprefix(bom)
    return data[:1000].lstrip(b" \t\r\n\0")[:1]


def _values(data: bytes, name: str) -> object:
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except RecursionError:
        raise InputError(f"{name}: is nested too deeply; expected a graph in JSON") from None
    except ValueError as error:  # of JSON, of UTF-8, or a number of thousands of digits
        raise InputError(f"{name}: is not JSON in UTF-8: {error}") from None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number")
