"""Boards: processors, memories, links and power, read from TOML; a catalogue of real ones."""

from .board import Board, Link, LinkKind, Memory, Power
from .catalogue import board_names, boards_with, catalogue, load_board, parse_board, read_board
from .processor import Feature, Processor, ProcessorKind
from .units import (
    format_frequency,
    format_size,
    parse_energy,
    parse_frequency,
    parse_power,
    parse_rate,
    parse_size,
    parse_time,
)

__all__ = [
    "Board", "Feature", "Link", "LinkKind", "Memory", "Power", "Processor", "ProcessorKind", "board_names",
    "boards_with", "catalogue", "format_frequency", "format_size",
    "load_board", "parse_board", "parse_energy", "parse_frequency", "parse_power", "parse_rate", "parse_size",
    "parse_time", "read_board",
]  # fmt: skip
