"""What libclang found wrong with a driver's files, and what to try."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MOST = 5  # one mistake often makes many
# Names that a driver may well have used for something else.
_KEYWORDS = {"ro", "wo", "w1c", "w1s", "fifo", "hw", "split", "clear_on_read", "pin", "bus", "bit"}


def complaints(unit: Any, files: Mapping[str, bytes]) -> list[str]:
    """The first errors of a unit, as compilers write them, each with what to try."""
    errors = [found for found in unit.diagnostics if found.severity >= found.Error]
    lines = [_line(error, files) for error in errors[:_MOST]]
    rest = len(errors) - _MOST
    return [*lines, f"… and {rest} more errors in {unit.spelling}"] if rest > 0 else lines


def _line(error: Any, files: Mapping[str, bytes]) -> str:
    at = error.location
    file = at.file.name if at.file else "command line"
    hint = _hint(error.spelling, _words(files.get(file, b""), at.line))
    return f"{file}:{at.line}:{at.column}: {error.spelling}" + (f"; {hint}" if hint else "")


def _words(text: bytes, line: int) -> list[str]:
    lines = text.splitlines()
    return re.findall(r"\w+", lines[line - 1].decode(errors="replace")) if 0 < line <= len(lines) else []


def _hint(message: str, words: list[str]) -> str:
    if "file not found" in message:
        return "name its folder with -I"
    if "field has incomplete type" in message:
        return "a group cannot contain itself, and a group in a group is defined before it"
    if "'annotate' attribute" in message:
        return "reset_value and pin take constants"
    keywords = sorted(_KEYWORDS.intersection(words))
    if keywords and message.startswith("expected"):
        names = ", ".join(f"'{word}'" for word in keywords)
        return f"{names}: a keyword of the support header; with EDGEWRIGHT_HAL_PREFIXED defined it is hal_{keywords[0]}"
    return ""
