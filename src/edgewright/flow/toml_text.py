"""TOML from tables of texts, numbers, lists and tables, as `tomllib` reads it back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(data: Mapping[str, Any]) -> str:
    """The tables as a file: keys first, then tables, then lists of tables. Empty ones and None are left out."""
    return "\n".join(_lines(data)) + "\n"


def _lines(data: Mapping[str, Any]) -> Iterator[str]:
    for key, value in data.items():
        if not isinstance(value, Mapping) and not _is_tables(value) and value is not None:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from ("", f"[{_key(key)}]", *_entries(value))
        elif _is_tables(value):
            for table in value:
                yield from ("", f"[[{_key(key)}]]", *_entries(table))


def _entries(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)


def _value(value: Any) -> str:
    match value:
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case Mapping():
            inside = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
            return f"{{{inside}}}"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case bool():
            return "true" if value else "false"
    return repr(value)
