"""Field types of files, and error messages with the key and the expected value.

People write TOML (`Entry`), we write JSON (`FileEntry`).
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StringConstraints,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from ..errors import EdgewrightError, InputError
from ..text import printable
from .units import parse_energy, parse_frequency, parse_mac_rate, parse_power, parse_rate, parse_size, parse_time, show

T = TypeVar("T")


class Entry(BaseModel):
    """Base of all tables in TOML files: immutable, without unknown keys.

    Each field's description completes the sentence "expected …" of an error message, and is the reference text of the
    documentation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(BaseModel):
    """An object of a JSON file: texts are not converted to numbers or vice versa, and unknown keys are errors."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


MOST = 1 << 60  # largest integer in a file; no intended file has a larger one
Count = Annotated[int, Field(ge=0, lt=MOST)]
Positive = Annotated[int, Field(ge=1, lt=MOST)]


def first_problem(error: ValidationError) -> str:
    """The first problem of a JSON file, with its location."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{printable(step)[:40]}" for step in first["loc"])
    is_unknown = first["type"] == "unexpected_keyword_argument"  # for a dataclass; an entry words it differently
    what = "extra inputs are not permitted" if is_unknown else first["msg"]
    return f"{where.removeprefix('.') or 'the file'}: {what[:1].lower()}{printable(what)[1:200]}"


E = TypeVar("E", bound=Entry)


def _reads(parse: Callable[[object], T]) -> BeforeValidator:
    def validate(value: object) -> T:
        try:
            return parse(value)
        except InputError as error:  # pydantic adds the key only to a ValueError
            raise ValueError(str(error)) from error

    return BeforeValidator(validate)


Name = Annotated[str, StringConstraints(strict=True, max_length=64, pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Text = Annotated[str, StringConstraints(strict=True, max_length=500)]
PathText = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1000)]
Flag = StrictBool
Whole = StrictInt
Address = Annotated[StrictInt, Field(ge=0, lt=2**64)]
Bytes = Annotated[int, _reads(parse_size)]
BytesOrZero = Annotated[int, _reads(partial(parse_size, or_zero=True))]
Hertz = Annotated[int, _reads(parse_frequency)]
BitsPerSecond = Annotated[int, _reads(parse_rate)]
MacsPerSecond = Annotated[float, _reads(parse_mac_rate)]
Watts = Annotated[float, _reads(parse_power)]
Seconds = Annotated[float, _reads(parse_time)]
SecondsOrZero = Annotated[float, _reads(partial(parse_time, or_zero=True))]
Joules = Annotated[float, _reads(parse_energy)]
JoulesOrZero = Annotated[float, _reads(partial(parse_energy, or_zero=True))]


Location = tuple[int | str, ...]


def suggestion(word: str, known: Iterable[str]) -> str:
    """ "; did you mean …?" for the nearest known word, or an empty text."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def read_toml(path: Path, root: type[E], thing: str, failure: type[EdgewrightError] = InputError) -> E:
    """The contents of a TOML file; an error names the file, the key and what was expected: `thing`, as in "a board
    file"."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise failure(f"{path}: is not UTF-8 text (byte {error.start}); expected {thing} in TOML") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        reason = getattr(error, "strerror", None) or str(error)
        raise failure(f"{path}: cannot be read: {reason}; expected {thing} in TOML") from error
    return parse_toml(text, str(path), root, thing, failure)


def parse_toml(text: str, where: str, root: type[E], thing: str, failure: type[EdgewrightError] = InputError) -> E:
    """Like `read_toml`, for a text that `where` names in errors."""
    try:
        return root.model_validate(tomllib.loads(text))
    except RecursionError as error:
        raise failure(f"{where}: is nested too deeply; expected {thing} in TOML") from error
    except ValidationError as error:
        raise failure(f"{where}: {sentence(error, root)}") from None
    except ValueError as error:  # TOMLDecodeError, or an integer of thousands of digits
        raise failure(f"{where}: is not TOML: {error}") from error


def sentence(error: ValidationError, root: type[Entry]) -> str:
    """A sentence on the first problem of a file whose tables are those of `root`: its key, and what was expected."""
    problems = error.errors(include_url=False)
    # A misspelt key is both unknown and, under its right name, missing: the former is more helpful.
    first = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    more = len(problems) - 1
    if first["type"] == "extra_forbidden" and more:
        misspelt = {p["loc"][:-1] for p in problems if p["type"] == "extra_forbidden"}
        more -= sum(p["type"] == "missing" and p["loc"][:-1] in misspelt for p in problems)
    tail = f" (and {more} more)" if more > 0 else ""
    return _describe(first, root) + tail


def _describe(problem: ErrorDetails, root: type[Entry]) -> str:
    location = problem["loc"]
    key = _dotted(location)
    context = problem.get("ctx", {})
    match problem["type"]:
        case "extra_forbidden":
            keys = tuple(_fields(_model_of(_field_at(location[:-1], root), root)))
            near = suggestion(str(location[-1]), keys)
            return f"{key} is not a key here{near or '; expected one of ' + ', '.join(keys)}"
        case "missing":
            return f"{key} is missing; expected {_expected(location, root)}"
        case "rule":
            return f"{context['key']} {context['problem']}"
        case "value_error":  # from `units`, which gives the expected value itself
            return f"{key}: {context['error']}"
        case "enum":
            near = suggestion(show(problem["input"]).strip('"'), _choices(_field_at(location, root)))
            return f"{key} is {show(problem['input'])}; expected {_expected(location, root)}{near}"
        case _:
            return f"{key} is {show(problem['input'])}; expected {_expected(location, root)}"


def _dotted(location: Location) -> str:
    """`memory[1].size` for ("memory", 1, "size"); the first entry is memory[0]."""
    dotted = ""
    for step in location:
        dotted += f"[{step}]" if isinstance(step, int) else f".{_bare(step)}"
    return dotted.removeprefix(".") or "the file"


def _bare(key: str) -> str:
    return key if key.isidentifier() and len(key) <= 40 else show(key)


def _field_at(location: Location, root: type[Entry]) -> FieldInfo | None:
    """The field at a location; None for the file itself."""
    field = None
    for step in location:
        is_free = field is not None and get_origin(field.annotation) is dict  # a table whose keys are names
        if isinstance(step, str) and not is_free:
            field = _fields(_model_of(field, root))[step]
    return field


def _expected(location: Location, root: type[Entry]) -> str:
    field = _field_at(location, root)
    return (field.description if field else None) or "a table of keys"


def _fields(model: type[Entry]) -> dict[str, FieldInfo]:
    """A model's fields by the keys of files."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_of(field: FieldInfo | None, root: type[Entry]) -> type[Entry]:
    if field is None:
        return root
    return next(kind for kind in _classes(field.annotation) if issubclass(kind, Entry))


def _choices(field: FieldInfo | None) -> tuple[str, ...]:
    enums = (kind for kind in _classes(field.annotation if field else None) if issubclass(kind, Enum))
    return tuple(str(member.value) for enum in enums for member in enum)


def _classes(annotation: object) -> Iterator[type]:
    """The classes inside an annotation: Memory in tuple[Memory, ...]."""
    if arguments := get_args(annotation):
        for argument in arguments:
            yield from _classes(argument)
    elif isinstance(annotation, type):
        yield annotation
