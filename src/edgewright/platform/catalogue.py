"""The bundled boards, and `load_board`, which finds any board."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from ..errors import BoardError
from .board import Board
from .schema import parse_toml, read_toml, suggestion


def load_board(path_or_name: str | Path) -> Board:
    """A bundled board by its name, or a board file by the path of its .toml file."""
    path = Path(path_or_name)
    if isinstance(path_or_name, Path) or path.suffix == ".toml" or path.name != path_or_name:
        return read_board(path)
    for board in catalogue():
        if board.name == path_or_name:
            return board
    near = suggestion(path_or_name, board_names())
    known = near or "; expected one of " + ", ".join(board_names())
    raise BoardError(f'"{path_or_name[:60]}" is no board of the catalogue{known}; or give the path of a .toml file')


@cache
def catalogue() -> tuple[Board, ...]:
    """All bundled boards, by name."""
    folder = resources.files(__package__) / "boards"
    files = (file for file in folder.iterdir() if file.name.endswith(".toml"))
    boards = (parse_board(file.read_text(encoding="utf-8"), file.name) for file in files)
    return tuple(sorted(boards, key=lambda board: board.name))


def boards_with(ram: int, flash: int, most: int = 3) -> tuple[str, ...]:
    """The names of the smallest boards with this much RAM in one memory and this much flash; boards without flash have
    a disk."""
    fitting = [
        board
        for board in catalogue()
        if max(memory.usable for memory in board.ram) >= ram and (board.flash_size is None or board.flash_size >= flash)
    ]
    return tuple(board.name for board in sorted(fitting, key=lambda board: (board.ram_size, board.name))[:most])


def board_names() -> tuple[str, ...]:
    """The names that `load_board` knows."""
    return tuple(board.name for board in catalogue())


def read_board(path: Path) -> Board:
    """The board in a file."""
    return read_toml(path, Board, "a board file", BoardError)


def parse_board(text: str, where: str) -> Board:
    """The board in a TOML text; `where` names the text in errors."""
    return parse_toml(text, where, Board, "a board file", BoardError)
