"""TOML text to Board, with errors that name file and key; which file is asked for, `catalogue` finds out."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import ValidationError

from ..errors import BoardError
from .board import Board
from .sentences import sentence


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
