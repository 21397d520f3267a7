"""Names that the C of a deployment's library declares, which must differ between its parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...errors import InputError

# Macros, types, functions, arrays: the word that a line at the left margin declares.
_DECLARED = re.compile(
    r"^#define (\w+)|^typedef [^;]*\(\*(\w+)\)|^\} (\w+);|^(?!typedef|return)\w[\w ]*[ *](\w+)[([;]", re.M
)


@dataclass(frozen=True)
class LibraryNames:
    """What the C of a deployment calls the library and its parts."""

    library: str  # prefix of the files and functions that are for all parts
    parts: Mapping[str, str]  # prefix of the files and functions of each part
    keys: Mapping[str, str] = field(default_factory=dict)  # where the user names a part, a buffer or the library ("")

    def key(self, name: str) -> str:
        """What an error asks the user to change."""
        return self.keys.get(name, f"the C name of '{name}'" if name else "the name of the library")


@dataclass(frozen=True, slots=True)
class NamedPiece:
    """C whose names follow from one name that the user gives."""

    key: str
    header: str
    source: str = ""  # of a C file: what it declares for itself alone


def check_names(pieces: Iterable[NamedPiece]) -> None:
    """Raises an error where two headers declare one name, or a C file one of a header's; it names the later key."""
    taken: dict[str, str] = {}
    for piece in pieces:
        public = _declared(piece.header)
        own = _declared("\n".join(line for line in piece.source.splitlines() if line.startswith("static")))
        for name in sorted((public | own) & taken.keys()):
            raise InputError(
                f'{piece.key}: the C library would declare "{name}" twice, here and for {taken[name]}; '
                f"write another {piece.key}"
            )
        taken |= dict.fromkeys(public, piece.key)


def _declared(text: str) -> set[str]:
    return {word for words in _DECLARED.findall(text) for word in words if word}
