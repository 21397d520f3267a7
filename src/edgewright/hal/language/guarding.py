"""Files that no driver is made of, told from their bytes: libclang ends the process on what is nested too deeply."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import InputError

_LARGEST = 2 << 20  # bytes of a file: far beyond any driver, and read within seconds
_APART = re.compile(rb"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_OPERATORS = 1000  # between two of ; { } , : about 2000 unary ones are too many for libclang
_STATEMENTS = 4000  # that may nest in each other; about 10000 are too many


def read_text(path: Path) -> bytes:
    """The bytes of a file that can be C source."""
    try:
        content = path.read_bytes()
        content.decode()
    except UnicodeDecodeError as error:
        at = content[: error.start].count(b"\n") + 1
        raise InputError(f"{path}:{at}: not UTF-8 text; is this a C file? Convert it, say with iconv") from error
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from error
    if len(content) > _LARGEST:
        raise InputError(f"'{path}' has {len(content)} bytes; driver sources of up to {_LARGEST} are read")
    if b"\0" in content:
        raise InputError(f"'{path}' is binary, not C source")
    _check_nesting(path, content)
    return content


def _check_nesting(path: Path, content: bytes) -> None:
    code = _APART.sub(lambda found: b" " + b"\n" * found[0].count(b"\n"), content)
    if len(re.findall(rb"\b(?:if|else|for|while|do)\b", code)) > _STATEMENTS:
        raise InputError(f"'{path}' has more than {_STATEMENTS} branches and loops; give it in several files")
    for piece in re.finditer(rb"[^;{},]{1000,}", code):
        if len(re.findall(rb"[-+*/%&|^!~<>=?:)]", piece[0])) > _OPERATORS:
            line = code[: piece.end()].count(b"\n") + 1
            raise InputError(f"{path}:{line}: more than {_OPERATORS} operators in one expression; simplify it")
