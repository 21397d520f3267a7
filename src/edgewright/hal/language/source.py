"""The files of a driver as libclang reads them; what its statements mean is left to others."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os.path import isdir
from pathlib import Path
from typing import Any

from ...errors import EdgewrightError, InputError
from .cursors import KINDS, Cursor, children, cindex, is_device, is_function, is_group, span, top_level, walk
from .description import Span
from .desugar import desugar, has_literal
from .diagnostics import check_compiled
from .lexical import blanked, past_semicolon
from .macros import Macros, macros_of

HEADER = Path(__file__).parent.parent / "include" / "edgewright_hal.h"
STANDARD = HEADER.parent / "standard"
# The 32-bit world of microcontrollers, with nothing of the machine that the tool runs on.
_WORLD = ("-xc", "--target=riscv32-unknown-elf", "-ffreestanding", "-nostdinc", "-std=gnu11", "-w", "-ferror-limit=0")
_COMMENTS = "-fparse-all-comments"  # also those that are not written for Doxygen
_OURS = ("-DEDGEWRIGHT_HAL_ANALYSIS", "-isystem", str(HEADER.parent), "-isystem", str(STANDARD))
_KEEP_GOING = 0x200  # CXTranslationUnit_KeepGoing, which the Python side does not name
_DEEPEST = 250  # levels of nesting; whoever walks the tree by recursion needs a few frames for each


@dataclass(frozen=True)
class Source:
    """A driver's own files (not the system's), and where in them groups and devices are defined."""

    main: tuple[Path, ...]  # the files given
    files: Mapping[str, bytes]  # by path as written in places: what main files are made of, headers included
    units: tuple[Any, ...]  # clang.cindex.TranslationUnit, one for each main file
    definitions: Mapping[str, tuple[Span, ...]]  # group definitions and make_device lines (with semicolon), by file
    cursors: tuple[Cursor, ...] = ()  # their declarations, each once though several units may include it
    again: tuple[Cursor, ...] = ()  # definitions of functions that a further unit includes
    written: Mapping[str, bytes] = field(default_factory=dict)  # the files, `assign` not yet split
    found: Mapping[str, str] = field(default_factory=dict)  # headers in folders of -I, by their paths below these
    macros: Macros = field(default_factory=lambda: Macros(frozenset(), {}, {}, {}))

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """All names in the driver's files: a macro may use one that no function shows."""
        return frozenset(re.findall(r"[A-Za-z_]\w*", " ".join(text.decode() for text in self.files.values())))


def read_source(paths: Sequence[Path], includes: Sequence[Path] = (), defines: Sequence[str] = ()) -> Source:
    """A driver's files, parsed without a single error: libclang drops what it could not parse, and says nothing."""
    main = tuple(dict.fromkeys(map(Path, paths)))
    if not main:
        raise InputError("no driver source given; name at least one C file")
    for folder in includes:
        if not isdir(folder):
            raise InputError(f"'{folder}', given for includes, is no folder")
    files = {str(path): read_text(path) for path in main}
    flags = [*(f"-I{path}" for path in includes), *(f"-D{define}" for define in defines)]
    units = tuple(_parse(path, flags) for path in main)
    for unit in units:
        files |= {name: read_text(Path(name)) for name in _headers(unit) if name not in files}
    texts = desugar(units, files, HEADER.name)
    # Compilers copy literals in pieces of their own choice, so that a struct in memory says nothing about fields.
    written = {name: texts[name] if has_literal(text) else text for name, text in files.items()}
    if changed := {name: text.decode() for name, text in texts.items() if text != files[name]}:
        files, units = texts, tuple(_parse(path, flags, changed) for path in main)
    check_compiled(units, files)
    cursors, again = _declarations(units, files)
    _check(main, cursors)
    macros = macros_of(units, files)
    return Source(
        main, files, units, _definitions(cursors, files), cursors, again, written, _found(units, includes), macros
    )


def _declarations(units: Sequence[Any], files: Container[str]) -> tuple[tuple[Cursor, ...], tuple[Cursor, ...]]:
    """The declarations in the driver's files, and functions that other units see there too."""
    seen = set()
    first, again = [], []
    for cursor in (cursor for unit in units for cursor in top_level(unit)):
        if cursor.kind.is_declaration() and (file := _file(cursor)) in files:
            key = file, *span(cursor), cursor.kind, cursor.spelling
            if key not in seen:
                seen.add(key)
                first.append(cursor)
            elif is_function(cursor):
                again.append(cursor)
    return tuple(first), tuple(again)


def _parse(path: Path, flags: Sequence[str], texts: Mapping[str, str] | None = None) -> Any:
    """The unit of a file, of these texts where they are given.

    The support header goes in front where the file does not include it itself.
    """
    unit = _unit(path, flags, texts)
    if any(Path(included.include.name).name == HEADER.name for included in unit.get_includes()):
        return unit
    return _unit(path, [*flags, "-include", str(HEADER)], texts)


def _unit(path: Path, flags: Sequence[str], texts: Mapping[str, str] | None) -> Any:
    given = list((texts or {}).items())
    options = _KEEP_GOING | cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
    try:
        return cindex.Index.create().parse(str(path), [*_WORLD, _COMMENTS, *flags, *_OURS], given, options)
    except cindex.LibclangError as error:
        raise EdgewrightError(f"libclang cannot be loaded; pip install 'edgewright[hal]' ({error})") from error
    except UnicodeEncodeError as error:
        text = error.object.encode(errors="replace").decode()
        raise InputError(f"'{text}' is no text in UTF-8, and libclang takes no other names") from error
    except cindex.TranslationUnitLoadError as error:
        raise InputError(f"libclang cannot parse '{path}'; does a compiler accept it?") from error


def _headers(unit: Any) -> list[str]:
    """The driver's own headers: neither ours nor a system's."""
    included = [entry.include for entry in unit.get_includes()]
    names = [file.name for file in included if not _is_system(unit, file)]
    return [name for name in dict.fromkeys(names) if Path(name).name != HEADER.name]


def _found(units: Sequence[Any], includes: Sequence[Path]) -> dict[str, str]:
    """The headers that a folder for includes leads to, and no path from the file that includes them."""
    paths: dict[str, str] = {}
    for entry in (entry for unit in units for entry in unit.get_includes()):
        file = Path(entry.include.name)
        for folder in includes:
            below = file.relative_to(folder) if file.is_relative_to(folder) else None
            if below is not None and Path(entry.source.name).parent / below != file:
                paths.setdefault(str(file), below.as_posix())
                break
    return paths


def _is_system(unit: Any, file: Any) -> bool:
    last = max(Path(file.name).stat().st_size - 1, 0)  # a pragma makes it one from there on
    location = cindex.SourceLocation.from_offset(unit, file, last)
    return STANDARD in Path(file.name).parents or bool(location.is_in_system_header)


def _check(main: Sequence[Path], cursors: Sequence[Cursor]) -> None:
    """Raises where there is nothing to lay out, or nothing that could tell how."""
    names = ", ".join(map(str, main))
    if not any(is_group(inner) for cursor in cursors for inner in walk(cursor)):
        raise InputError(f"{names}: no bit field group; describe the peripheral with bfGroup Name {{ … }};")
    if not any(map(is_function, cursors)):
        raise InputError(f"{names}: no function; the layout follows from the code that accesses the fields")
    for cursor in cursors:
        _check_depth(cursor)


def _check_depth(top: Cursor) -> None:
    waiting = [(top, 0)]
    while waiting:
        cursor, depth = waiting.pop()
        if depth > _DEEPEST:
            at = cursor.location
            raise InputError(f"{at.file}:{at.line}:{at.column}: nested more than {_DEEPEST} deep; simplify it")
        waiting += [(child, depth + 1) for child in children(cursor)]


def _definitions(cursors: Sequence[Cursor], files: Mapping[str, bytes]) -> dict[str, tuple[Span, ...]]:
    """Where groups, devices and buses are declared, each with its semicolon, by file."""
    found: dict[str, list[Span]] = {}
    for cursor in cursors:
        is_said = any(named_device(cursor, word) for word in (MAPPED, UNORDERED, IN_MEMORY, BUS_WIDTH))
        if is_group(cursor) or is_device(cursor) or is_said:
            start, end = span(cursor)
            file = _file(cursor)
            found.setdefault(file, []).append((start, past_semicolon(files[file], end)))
    return {file: tuple(sorted(set(spans))) for file, spans in found.items()}


def named_device(cursor: Cursor, word: str) -> str | None:
    """The device that a declaration names, if one of the words for devices becomes it: unordered(...), bus(...)."""
    first = next(iter(children(cursor)), None)
    if cursor.kind is not KINDS.ENUM_DECL or first is None or not first.spelling.startswith(word):
        return None
    return str(first.spelling).removeprefix(word)


MAPPED, UNORDERED, IN_MEMORY = "edgewright_mapped_", "edgewright_unordered_", "edgewright_in_memory_"
BUS_WIDTH = "edgewright_bus_width_of_"  # followed by the narrowest access


def _file(cursor: Cursor) -> str:
    start = cursor.extent.start.file
    return str(start.name) if start else ""


_LARGEST = 2 << 20  # bytes of a file: far beyond any driver, and read within seconds
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
    code = blanked(content)
    if len(re.findall(rb"\b(?:if|else|for|while|do)\b", code)) > _STATEMENTS:
        raise InputError(f"'{path}' has more than {_STATEMENTS} branches and loops; give it in several files")
    for piece in re.finditer(rb"[^;{},]{1000,}", code):
        if len(re.findall(rb"[-+*/%&|^!~<>=?:)]", piece[0])) > _OPERATORS:
            line = code[: piece.end()].count(b"\n") + 1
            raise InputError(f"{path}:{line}: more than {_OPERATORS} operators in one expression; simplify it")
