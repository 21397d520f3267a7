"""The boards that come with the package, and the one way to any board: `load_board`. Errors name file and key."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, TypeVar

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

from ..errors import BoardError, InputError
from .board import Board
from .sentences import sentence, suggestion
from .units import parse_frequency, parse_power, parse_rate, parse_size, parse_time


def load_board(path_or_name: str | Path) -> Board:
    """A board of the catalogue by its name, or one's own by the path of its .toml file."""
    path = Path(path_or_name)
    if isinstance(path_or_name, Path) or path.suffix == ".toml" or path.name != path_or_name:
        return read_board(path)
    for board in catalogue():
        if board.name == path_or_name:
            return board
    near = suggestion(path_or_name, board_names())
    known = near or "; expected one of " + ", ".join(board_names())
    raise BoardError(
        f'"{path_or_name[:60]}" is no board of the catalogue{known}; or give the path of a .toml file'
    )


@cache
def catalogue() -> tuple[Board, ...]:
    """Every board that comes with the package, by name."""
    folder = resources.files(__package__) / "boards"
    files = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    boards = (parse_board(file.read_text(encoding="utf-8"), file.name) for file in files)
    return tuple(sorted(boards, key=lambda board: board.name))


def boards_with(ram: int, flash: int, most: int = 3) -> tuple[str, ...]:
    """The smallest boards, by name, with so much RAM in one memory and so much flash; who has none has a disk."""
    fitting = [
        board
        for board in catalogue()
        if max(memory.usable for memory in board.ram) >= ram
        and (board.flash_size is None or board.flash_size >= flash)
    ]
    return tuple(board.name for board in sorted(fitting, key=lambda board: (board.ram_size, board.name))[:most])


def board_names() -> tuple[str, ...]:
    """The names that `load_board` knows."""
    return tuple(board.name for board in catalogue())


T = TypeVar("T")


class Entry(BaseModel):
    """Base of all pieces of a board: immutable, and a key that is not a field is an error.

    Each field's description completes the sentence "expected …" of an error message, and is the
    reference text of the documentation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


def _reads(parse: Callable[[object], T]) -> BeforeValidator:
    def validate(value: object) -> T:
        try:
            return parse(value)
        except InputError as error:  # pydantic adds the key to a ValueError only
            raise ValueError(str(error)) from error

    return BeforeValidator(validate)


def _size_or_zero(value: object) -> int:
    return 0 if value == 0 and not isinstance(value, bool) else parse_size(value)


Name = Annotated[str, StringConstraints(strict=True, max_length=64, pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Text = Annotated[str, StringConstraints(strict=True, max_length=500)]
Flag = StrictBool
Whole = StrictInt
Address = Annotated[StrictInt, Field(ge=0, lt=2**64)]
Bytes = Annotated[int, _reads(parse_size)]
BytesOrZero = Annotated[int, _reads(_size_or_zero)]
Hertz = Annotated[int, _reads(parse_frequency)]
BitsPerSecond = Annotated[int, _reads(parse_rate)]
Watts = Annotated[float, _reads(parse_power)]
Seconds = Annotated[float, _reads(parse_time)]


def read_board(path: Path) -> Board:
    """The board that a file describes."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        reason = getattr(error, "strerror", None) or str(error)
        raise BoardError(f"{path}: cannot be read: {reason}; expected a board file in TOML") from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BoardError(
            f"{path}: is not UTF-8 text (byte {error.start}); expected a board file in TOML"
        ) from error
    return parse_board(text, str(path))


def parse_board(text: str, where: str) -> Board:
    """The board that a TOML text describes; `where` names the text in errors."""
    try:
        tables = tomllib.loads(text)
    except RecursionError as error:
        raise BoardError(f"{where}: is nested too deeply; expected a board file in TOML") from error
    except ValueError as error:  # TOMLDecodeError is one; so is an integer of thousands of digits
        raise BoardError(f"{where}: is not TOML: {error}") from error
    try:
        return Board.model_validate(tables)
    except ValidationError as error:
        raise BoardError(f"{where}: {sentence(error, Board)}") from None
