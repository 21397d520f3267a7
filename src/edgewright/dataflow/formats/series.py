"""Lists of rates and times as text: `1,1,1`, or shorter `3*1`; phases that happen once come before a semicolon:
`2,0;3*1`.

SDF3 and Kiter share the first two forms; the semicolon is Kiter's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, groupby, repeat
from typing import Generic, TypeVar

from ...errors import ModelError
from ..graph import Time, quoted

# The largest number in a file: beyond it other tools lose digits, and a typing error is likelier.
MOST = 2**53
MOST_PHASES = 1_000_000  # of one actor
_WHOLE = re.compile(r"[0-9]{1,16}")
_DECIMAL = re.compile(r"[0-9]{1,16}(\.[0-9]{1,16})?([eE][+-]?[0-9]{1,2})?|[0-9]{1,16}/[0-9]{1,16}")

Number = TypeVar("Number", bound=Time)
Runs = tuple[tuple[int, Number], ...]  # how often, and what


@dataclass(frozen=True)
class Series(Generic[Number]):
    """Numbers by firing, in runs of equal ones: a malicious list stays as short as its text."""

    cycle: Runs[Number]
    initial: Runs[Number]
    where: str

    @cached_property
    def shape(self) -> tuple[int, int]:
        """The numbers of initial and repeated phases of the list."""
        return _length(self.initial), _length(self.cycle)

    @property
    def is_constant(self) -> bool:
        """Whether a single number stands for every phase."""
        return self.shape == (0, 1)

    def fitted(self, shape: tuple[int, int]) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
        """The initial and the repeated numbers for an actor of that shape, expanded."""
        if self.is_constant:
            value = self.cycle[0][1]
            return (value,) * shape[0], (value,) * shape[1]
        return _spread(self.initial), _spread(self.cycle)


def rates(text: str, where: str) -> Series[int]:
    """Parses a list of rates."""
    return _series(text, where, _rate, "a whole number from 0 to 2^53")


def times(text: str, where: str) -> Series[Time]:
    """Parses a list of execution times: integers, decimals or fractions such as 3/4."""
    return _series(text, where, _time, "a time such as 3, 0.25 or 3/4")


def whole(text: str, where: str) -> int:
    """Parses a single integer."""
    value = _rate(text.strip())
    if value is None:
        raise ModelError(f"{where} is {quoted(text)}; expected a whole number from 0 to 2^53")
    return value


def check_phases(phases: int, where: str) -> None:
    if phases > MOST_PHASES:
        raise ModelError(f"{where}: {phases:,} phases; at most {MOST_PHASES:,} are handled")


def spelt(cycle: Iterable[Time], initial: Iterable[Time] = (), comma: str = ",") -> str:
    """The shortest text of a list in these forms."""
    first, again = _spelt(initial, comma), _spelt(cycle, comma)
    return f"{first};{comma[1:]}{again}" if first else again


def spelt_time(time: Time) -> str:
    """The number in full: an integer, a finite decimal, or a fraction."""
    if isinstance(time, int):
        return str(time)
    value = Fraction(time)
    if value.denominator == 1:
        return str(value.numerator)
    places = next((n for n in range(1, 17) if 10**n % value.denominator == 0), None)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    digits = str(value.numerator * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{digits[:-places]}.{digits[-places:]}"


def _series(text: str, where: str, number: Callable[[str], Number | None], wanted: str) -> Series[Number]:
    parts = text.split(";")
    if len(parts) > 2:
        raise ModelError(f"{where}: {quoted(text)} has more than one ';': it parts initial phases from the others")
    check_phases(text.count(",") + len(parts), where)  # a lower bound, checked before the work of parsing them
    runs = [_runs(part, where, number, wanted) for part in parts]
    series = Series(runs[-1], runs[0] if len(runs) == 2 else (), where)
    check_phases(sum(series.shape), where)
    return series


def _runs(part: str, where: str, number: Callable[[str], Number | None], wanted: str) -> Runs[Number]:
    runs = []
    for item in part.split(","):
        parsed = _run(item, number)
        if parsed is None:
            raise ModelError(
                f"{where}: {quoted(item)} is not {wanted}; write lists as 1,0,2, as 3*1 for 1,1,1, "
                "and with phases that happen once before a semicolon: 1;3"
            )
        runs.append(parsed)
    return tuple(runs)


@lru_cache(4096)  # long lists repeat few numbers: equal runs are one object
def _run(item: str, number: Callable[[str], Number | None]) -> tuple[int, Number] | None:
    """Count and value: (3, 1) for 3*1, (1, 1) for 1."""
    count, star, text = item.partition("*")
    times, value = (_rate(count.strip()), number(text.strip())) if star else (1, number(item.strip()))
    return None if not times or value is None else (times, value)


def _rate(text: str) -> int | None:
    return value if _WHOLE.fullmatch(text) and (value := int(text)) <= MOST else None


def _time(text: str) -> Time | None:
    if not _DECIMAL.fullmatch(text):
        return None
    try:
        value = Fraction(text)
    except ZeroDivisionError:
        return None
    if value > MOST or value.denominator > 10**16:
        return None
    return value.numerator if value.denominator == 1 else value


def _length(runs: Runs[Number]) -> int:
    return sum(count for count, _ in runs)


def _spread(runs: Runs[Number]) -> tuple[Number, ...]:
    return tuple(chain.from_iterable(repeat(value, count) for count, value in runs))


def _spelt(values: Iterable[Time], comma: str) -> str:
    return comma.join(_run_text(spelt_time(value), len(list(run)), comma) for value, run in groupby(values))


def _run_text(value: str, count: int, comma: str) -> str:
    """Two equal numbers are written out, which is as short."""
    return f"{count}*{value}" if count > 2 else comma.join([value] * count)
