"""Compile errors that libclang reports for a driver's files, as refusals with what to try."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InputError
from .description import Place, Refusal

_MOST = 5  # one mistake often makes many
# Names that a driver may well have used for something else.
_KEYWORDS = {"ro", "wo", "w1c", "w1s", "fifo", "hw", "split", "clear_on_read", "pin", "bus", "bit", "assign"}


class NotC(InputError):
    """A source that does not compile; `refusals` has the first places."""

    def __init__(self, refusals: Sequence[Refusal], more: Sequence[str] = ()) -> None:
        self.refusals = tuple(dict.fromkeys(refusals))
        super().__init__("\n".join([*map(str, self.refusals), *more]))


def check_compiled(units: Sequence[Any], files: Mapping[str, bytes]) -> None:
    """Raises where libclang found errors: the first of each unit, as compilers write them, each with what to try."""
    found: list[Refusal] = []
    more: list[str] = []
    for unit in units:
        errors = [error for error in unit.diagnostics if error.severity >= error.Error]
        found += [_refusal(error, files) for error in errors[:_MOST]]
        more += [f"… and {len(errors) - _MOST} more errors in {unit.spelling}"] if len(errors) > _MOST else []
    if found:
        raise NotC(found, more)


def _refusal(error: Any, files: Mapping[str, bytes]) -> Refusal:
    at = error.location
    file = at.file.name if at.file else "command line"
    hint = _hint(error.spelling, _words(files.get(file, b""), at.line))
    return Refusal(Place(file, at.line, at.column), error.spelling, hint)


def _words(text: bytes, line: int) -> list[str]:
    lines = text.splitlines()
    return re.findall(r"\w+", lines[line - 1].decode(errors="replace")) if 0 < line <= len(lines) else []


def _hint(message: str, words: list[str]) -> str:
    if "file not found" in message:
        return "name its folder with -I"
    if "field has incomplete type" in message:
        return "a group cannot contain itself, and a group in a group is defined before it"
    if "'annotate' attribute" in message:
        return "reset_value, pin and stride take constants"
    if "compile-time constant" in message and {"make_device", "hal_make_device"}.intersection(words):
        return "where the address is known at run time only, write mapped_device(Group, name)"
    keywords = sorted(_KEYWORDS.intersection(words))
    if keywords and message.startswith("expected"):
        names = ", ".join(f"'{word}'" for word in keywords)
        return f"{names}: a keyword of the support header; with EDGEWRIGHT_HAL_PREFIXED defined it is hal_{keywords[0]}"
    return ""
