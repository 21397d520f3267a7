"""Facts about libclang cursors that its Python binding does not provide: operators, spans, constants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ctypes import byref, c_int, c_longlong, c_uint, c_ulonglong, c_void_p
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from ...errors import EdgewrightError
from ...text import printable
from .description import Place, Span

try:
    from clang import cindex as cindex
except ImportError as error:
    raise EdgewrightError("drivers are read with libclang: pip install 'edgewright[hal]'") from error

Cursor = Any
KINDS = cindex.CursorKind
# Nodes that stand for what is inside them.
TRANSPARENT = (KINDS.UNEXPOSED_EXPR, KINDS.PAREN_EXPR)


@cache
def _library() -> Any:
    """libclang with the questions about operators that its Python side lacks."""
    library = cindex.conf.lib
    for name in ("Binary", "Unary"):
        question = getattr(library, f"clang_getCursor{name}OperatorKind")
        question.argtypes, question.restype = [cindex.Cursor], c_int
        spelling = getattr(library, f"clang_get{name}OperatorKindSpelling")
        spelling.argtypes, spelling.restype = [c_int], cindex._CXString
        spelling.errcheck = cindex._CXString.from_result
    for name, result in _EVALUATION.items():
        question = getattr(library, f"clang_{name}")
        question.argtypes = [cindex.Cursor] if name == "Cursor_Evaluate" else [c_void_p]
        question.restype = result
    return library


_EVALUATION = {
    "Cursor_Evaluate": c_void_p,
    "EvalResult_getKind": c_int,
    "EvalResult_isUnsignedInt": c_uint,
    "EvalResult_getAsUnsigned": c_ulonglong,
    "EvalResult_getAsLongLong": c_longlong,
    "EvalResult_dispose": None,
}


def constant(cursor: Cursor) -> int | None:
    """The value of an expression that is an integer constant."""
    library = _library()
    if not (answer := library.clang_Cursor_Evaluate(cursor)):
        return None
    try:
        if library.clang_EvalResult_getKind(answer) != 1:  # CXEval_Int
            return None
        unsigned = library.clang_EvalResult_isUnsignedInt(answer)
        as_what = "Unsigned" if unsigned else "LongLong"
        return int(getattr(library, f"clang_EvalResult_getAs{as_what}")(answer))
    finally:
        library.clang_EvalResult_dispose(answer)


def binary_operator(cursor: Cursor) -> str:
    """The operator of a binary expression or a compound assignment: "+", "&&", "=", "|="."""
    library = _library()
    return str(library.clang_getBinaryOperatorKindSpelling(library.clang_getCursorBinaryOperatorKind(cursor)))


_UNARY = {1: "x++", 2: "x--", 3: "++x", 4: "--x"}  # libclang spells both sides "++"


def unary_operator(cursor: Cursor) -> str:
    """The operator of a unary expression; "x++" follows its operand, "++x" precedes it."""
    library = _library()
    kind = library.clang_getCursorUnaryOperatorKind(cursor)
    return _UNARY.get(kind) or str(library.clang_getUnaryOperatorKindSpelling(kind))


def span(cursor: Cursor) -> Span:
    """The bytes of its file that a cursor covers; of a macro, those of its use with all arguments."""
    start, end = cursor.extent.start, cursor.extent.end
    first, last = int(start.offset), int(end.offset)
    if last != written_at(end):
        # libclang puts the end of what a macro's argument ends with at the beginning of the macro's use.
        last = _uses(cursor.translation_unit).get((str(end.file), last), last)
    return first, last


def is_in_argument(cursor: Cursor) -> bool:
    """Whether the name that a cursor is about is written in the argument of a macro."""
    return written_at(cursor.location) != int(cursor.location.offset)


def written_span(cursor: Cursor, in_argument: bool) -> Span:
    """The bytes of its file that a cursor is written in; of part of an argument, those within the macro's use."""
    if not in_argument:
        return span(cursor)
    last = written_at(cursor.extent.end)
    return written_at(cursor.extent.start), _uses(cursor.translation_unit).get(
        (str(cursor.extent.end.file), last), last
    )


def written_at(location: Any) -> int:
    """The position at which a location's text is written: inside the macro's arguments, not at the macro's name."""
    offset = c_uint()
    cindex.conf.lib.clang_getFileLocation(location, None, None, None, byref(offset))
    return offset.value


_USES: WeakKeyDictionary[Any, dict[tuple[str, int], int]] = WeakKeyDictionary()


def _uses(unit: Any) -> dict[tuple[str, int], int]:
    """Where each use of a macro ends, by file and beginning; of nested ones the outermost."""
    if unit not in _USES:
        ends: dict[tuple[str, int], int] = {}
        for cursor in top_level(unit):
            if cursor.kind is KINDS.MACRO_INSTANTIATION:
                key = str(cursor.extent.start.file), int(cursor.extent.start.offset)
                ends[key] = max(ends.get(key, 0), int(cursor.extent.end.offset))
        _USES[unit] = ends
    return _USES[unit]


def variable(declaration: Cursor) -> str:
    """A name for a variable that is unique in the function, even where an inner scope reuses the spelling."""
    name = str(declaration.spelling)
    if declaration.linkage in (cindex.LinkageKind.EXTERNAL, cindex.LinkageKind.INTERNAL):
        return name
    return f"{name}@{declaration.location.offset}"


def is_variable(cursor: Cursor) -> bool:
    """Whether an expression names a variable or a parameter."""
    named = cursor.referenced if cursor.kind is KINDS.DECL_REF_EXPR else None
    return named is not None and named.kind in (KINDS.VAR_DECL, KINDS.PARM_DECL)


def spelling(name: str) -> str:
    """How a variable is spelled in the source."""
    return name.partition("@")[0]


def attributes(cursor: Cursor, text: bytes) -> list[str]:
    """The text of attributes that libclang does not know by name: of `weak`, `interrupt`, `cleanup` and the like."""
    return [
        text[slice(*span(child))].decode(errors="replace")
        for child in children(cursor)
        if child.kind is KINDS.UNEXPOSED_ATTR
    ]


def is_volatile(cursor: Cursor) -> bool:
    """Whether each access to an expression counts: its type is volatile, also by another name, or atomic."""
    kind = cursor.type.get_canonical()
    return bool(kind.is_volatile_qualified()) or kind.kind is cindex.TypeKind.ATOMIC


def place(cursor: Cursor) -> Place:
    location = cursor.location
    return Place(location.file.name if location.file else "", location.line, location.column)


def children(cursor: Cursor) -> list[Cursor]:
    """The nodes directly below, asked of libclang only once: every pass over the tree sees the same objects."""
    found: list[Cursor] | None = getattr(cursor, "_below", None)
    if found is None:
        found = cursor._below = list(cursor.get_children())
    return found


def top_level(unit: Any) -> list[Cursor]:
    """The nodes directly below a unit, the same objects each time."""
    found: list[Cursor] | None = getattr(unit, "_below", None)
    if found is None:
        found = unit._below = list(unit.cursor.get_children())
    return found


def expressions(cursor: Cursor) -> list[Cursor]:
    """The expressions directly below."""
    return [child for child in children(cursor) if child.kind.is_expression()]


def bare(cursor: Cursor) -> Cursor:
    """The expression without parentheses and implicit conversions around it."""
    while (inside := converted(cursor)) is not None:
        cursor = inside
    return cursor


def converted(cursor: Cursor) -> Cursor | None:
    """The expression that parentheses or an implicit conversion stand around; None for every other node.

    libclang has one kind for conversions and for all that it does not know, such as va_arg: a conversion has no text of
    its own.
    """
    inside = expressions(cursor) if cursor.kind in TRANSPARENT else []
    if len(inside) != 1:
        return None
    whole, inner = cursor.extent, inside[0].extent
    is_same_text = (whole.begin_int_data, whole.end_int_data) == (inner.begin_int_data, inner.end_int_data)
    return inside[0] if is_same_text or cursor.kind is KINDS.PAREN_EXPR else None


def walk(cursor: Cursor) -> Iterator[Cursor]:
    """The cursor and all below it, in the order of the source."""
    waiting = [cursor]
    while waiting:  # not by recursion: a sum of a thousand terms is a thousand levels deep
        cursor = waiting.pop()
        yield cursor
        waiting.extend(reversed(children(cursor)))


def group_of(kind: Any) -> str | None:
    """The struct that a type (or what it points to) is, by name."""
    kind = kind.get_canonical()
    while kind.kind in (cindex.TypeKind.POINTER, cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.INCOMPLETEARRAY):
        inner = kind.get_pointee() if kind.kind is cindex.TypeKind.POINTER else kind.element_type
        kind = inner.get_canonical()
    if kind.kind is not cindex.TypeKind.RECORD:
        return None
    return str(kind.get_declaration().spelling) or None


def notes(cursor: Cursor) -> list[tuple[str, list[Cursor]]]:
    """The attributes that the support header gave a declaration, each with its arguments."""
    found = [child for child in children(cursor) if child.kind is KINDS.ANNOTATE_ATTR]
    mine = [child for child in found if child.spelling.startswith(_NOTE)]
    return [(child.spelling.removeprefix(_NOTE), children(child)) for child in mine]


_NOTE = "edgewright:"


def remark(cursor: Cursor) -> str:
    """What the comment above or behind a declaration says, as one line that may stand in another comment."""
    said = re.sub(r"^[ \t]*(?:/[/*]+!?<?|\*+(?!/))|\*+/|[-=*#_]{3,}", " ", cursor.raw_comment or "", flags=re.MULTILINE)
    line = " ".join(printable(re.sub(r"[@\\]brief\b|\s", " ", said)).split()).replace("/*", "/ *")
    return line if len(line) <= _REMARK else f"{line[: _REMARK - 1].rstrip()}…"


_REMARK = 240  # characters


def is_group(cursor: Cursor) -> bool:
    """Whether a declaration defines a bit field group."""
    is_definition = cursor.kind is KINDS.STRUCT_DECL and cursor.is_definition()
    return is_definition and any(name == "group" for name, _ in notes(cursor))


def is_function(cursor: Cursor) -> bool:
    """Whether a declaration defines a function."""
    return cursor.kind is KINDS.FUNCTION_DECL and bool(cursor.is_definition())


def is_device(cursor: Cursor) -> bool:
    return cursor.kind is KINDS.VAR_DECL and any(name == "device" for name, _ in notes(cursor))
