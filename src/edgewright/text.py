"""Text for people: numbers as they read them; and text from files and models, which are untrusted, as it may be shown
on a terminal, on a page, in a comment of C."""

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
    """The size in the unit that suits it: 32.5 KiB."""
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if number >= unit:
            return f"{number / unit:,.1f}".removesuffix(".0") + f" {name}"
    return size(number)


def rounded_count(number: int) -> str:
    """The number with three digits, in the unit that suits it: 2.66 M."""
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if (rounded := _three_digits(number / unit)) >= 1:
            return f"{rounded:,.12g} {name}"
    return str(number)


def duration(seconds: float) -> str:
    """A time with three digits, in the unit that suits it."""
    for factor, unit in ((1, "s"), (10**3, "ms"), (10**6, "us")):
        if (rounded := _three_digits(seconds * factor)) >= 1:
            return f"{rounded:,.12g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def three_digits(value: float) -> str:
    """The value with three digits, without an exponent where it is large: 8,950 or 0.0202."""
    return f"{_three_digits(value):,.12g}"


def _three_digits(value: float) -> float:
    """The value rounded to three digits, which decides about its unit: 999.9 of a thousandth are 1."""
    return float(f"{value:.3g}")


def plural(number: int, noun: str) -> str:
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def at_most_percent(part: int, whole: int) -> str:
    """The percentage rounded up: the number after "at most" must hold."""
    return f"{ceil(1000 * part / whole) / 10:.1f} %" if whole else "–"


def stage_range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def printable(text: str) -> str:
    """The text with everything that is no visible character replaced.

    Control characters steer a terminal, those that change the direction of writing make code read as what it is not,
    and XML knows no \\x00.
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def printable_lines(text: str) -> str:
    """The same for text of several lines, which stay lines."""
    return "\n".join(printable(line.expandtabs()) for line in text.split("\n"))


def abridged(text: str, word: int = 160, most: int = 3000) -> str:
    """The text with the middle left out of words that nobody would read, and its end if it is still too long."""
    text = re.sub(rf"\S{{{word + 1},}}", lambda found: shortened(found.group(), word), text)
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def shortened(name: str, room: int) -> str:
    """The name in at most `room` characters; the end stays longest, since names in models differ there."""
    if len(name) <= room:
        return name
    head = (room - 1) // 3 if room >= 12 else 0
    return f"{name[:head]}…{name[len(name) - (room - 1 - head) :]}"
