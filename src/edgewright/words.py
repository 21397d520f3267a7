"""The old name of `text`, for the rooms that are under work."""

from .text import at_most_percent, plural, printable, size

__all__ = ["at_most_percent", "plural", "printable", "size"]
