"""Text from files and models, which are untrusted, as it may be shown: on a terminal, on a page, in a comment of C."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with everything that is no visible character replaced.

    Control characters steer a terminal, those that change the direction of writing make code read as what it is not,
    and XML knows no \\x00.
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def printable_lines(text: str) -> str:
    """The same for text of several lines, which stay lines."""
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))


def shortened(name: str, room: int) -> str:
    """The name in at most `room` characters; the end stays longest, since names in models differ there."""
    if len(name) <= room:
        return name
    head = (room - 1) // 3 if room >= 12 else 0
    return f"{name[:head]}…{name[len(name) - (room - 1 - head) :]}"
