"""Text for people: readable numbers, and untrusted text from files and models made safe for terminals, pages and C
comments."""

from __future__ import annotations

import re
from math import ceil

KIB = 1024
MIB = 1024 * KIB


def count(number: int) -> str:
    return f"{number:,}"


def size(number: int) -> str:
    return f"{number:,} B"


def rounded_size(number: int) -> str:
    """The size in a suitable unit: 32.5 KiB."""
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if number >= unit:
            return f"{number / unit:,.1f}".removesuffix(".0") + f" {name}"
    return size(number)


def rounded_count(number: int) -> str:
    """The number with three digits in a suitable unit: 2.66 M."""
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if (rounded := _three_digits(number / unit)) >= 1:
            return f"{rounded:,.12g} {name}"
    return str(number)


def duration(seconds: float) -> str:
    """A time with three digits in a suitable unit."""
    for factor, unit in ((1, "s"), (10**3, "ms"), (10**6, "us")):
        if (rounded := _three_digits(seconds * factor)) >= 1:
            return f"{rounded:,.12g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def three_digits(value: float) -> str:
    """The value with three digits, without an exponent if it is large: 8,950 or 0.0202."""
    return f"{_three_digits(value):,.12g}"


def _three_digits(value: float) -> float:
    """The value rounded to three digits before its unit is chosen: 999.9 thousandths become 1."""
    return float(f"{value:.3g}")


def plural(number: int, noun: str) -> str:
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def at_most_percent(part: int, whole: int) -> str:
    """The percentage rounded up, for use after "at most"."""
    return f"{ceil(1000 * part / whole) / 10:.1f} %" if whole else "–"


def stage_range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def printable(text: str) -> str:
    r"""The text with all invisible characters replaced.

    Control characters can steer a terminal, bidirectional ones disguise code, and XML does not allow \\x00.
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def printable_lines(text: str) -> str:
    """Like `printable`, for text of several lines; line breaks stay."""
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))


def abridged(text: str, word: int = 160, most: int = 3000) -> str:
    """The text with very long words cut in the middle, and its end cut if it is still too long."""
    text = re.sub(rf"\S{{{word + 1},}}", lambda found: shortened(found.group(), word), text)
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def shortened(name: str, room: int) -> str:
    """The name in at most `room` characters. The end is kept, because names in models differ there."""
    if len(name) <= room:
        return name
    head = (room - 1) // 3 if room >= 12 else 0
    return f"{name[:head]}…{name[len(name) - (room - 1 - head) :]}"
