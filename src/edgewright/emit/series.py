"""Numbers that change from turn to turn of a loop, as C: on a line over its counter, or looked up in a table."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import gcd

from ..kernels.module import Module
from ..kernels.printing.source import plus
from .static import INTEGERS, define

Values = tuple[int, ...]
SPREAD = 1 << 31  # between the values of a series that may be computed: their differences are int32_t as well
LINE, LOOKUP = 4, 8  # bytes of code, about: a product and a sum; a load, with the address of its table


class Series:
    """The expressions of some series in one loop. What runs in parallel is looked up in one table."""

    def __init__(self, unit: Module, counter: str, series: Iterable[Values]) -> None:
        self._unit, self._counter = unit, counter
        self._alike: dict[Values, set[Values]] = {}
        for values in series:
            if not is_line(values):
                self._alike.setdefault(shape(values), set()).add(values)

    def expression(self, values: Values) -> str:
        """C of type int32_t (or int): the value at the counter."""
        if is_line(values):
            return _scaled(self._counter, values[1] - values[0], values[0])
        form = shape(values)
        if len(self._alike[form]) == 1:
            return self._looked_up(values)
        at = next(i for i, value in enumerate(form) if value)
        return _scaled(self._looked_up(form), (values[at] - values[0]) // form[at], values[0])

    def _looked_up(self, values: Values) -> str:
        body = f"{{{', '.join(map(str, values))}}}"
        return f"{define(self._unit, 't', integer_type(values), (len(values),), body)}[{self._counter}]"


def is_line(values: Values) -> bool:
    """Whether each value is as far from the last as that one from the one before."""
    steps = {b - a for a, b in pairwise(values)}
    return len(steps) <= 1 and max(values) - min(values) < SPREAD


def shape(values: Values) -> Values:
    """The series from 0 and in its smallest steps: what those have in common that differ by a factor and an offset."""
    if max(values) - min(values) >= SPREAD:
        return values
    moved = [value - values[0] for value in values]
    step = gcd(*moved) or 1
    rising = next((value for value in moved if value), 1) > 0
    return tuple(value // (step if rising else -step) for value in moved)


def cost(series: Iterable[Values]) -> int:
    """About how many bytes of flash it takes to have these numbers in a loop instead of constants."""
    total = 0
    tables: set[Values] = set()
    for values in set(series):
        if all(value == values[0] for value in values):
            continue
        total += LINE
        if not is_line(values) and shape(values) not in tables:
            tables.add(shape(values))
            total += LOOKUP - LINE + INTEGERS[integer_type(shape(values))] * len(values)
    return total


def breaks(values: Values) -> set[int]:
    """Where a loop may be cut so that the series is on a line on either side."""
    cuts = set()
    for at in range(1, len(values) - 1):
        if values[at + 1] - values[at] != values[at] - values[at - 1]:
            cuts |= {at, at + 1}
    return cuts


def integer_type(values: Iterable[int]) -> str:
    """The smallest type that holds them."""
    least = max(value if value >= 0 else -value - 1 for value in values)
    return next(ctype for ctype, size in INTEGERS.items() if least < 1 << (8 * size - 1))


def _scaled(base: str, factor: int, start: int) -> str:
    return str(plus(base if factor == 1 else f"{base} * {factor}", start))
