"""Index expressions over loop variables: constants, affine expressions (perhaps clamped), and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..network import Interval


@dataclass(frozen=True, slots=True)
class AffineExpr:
    """base + step * variable + ..., clamped to the interval `within`, whose ends are included."""

    base: int
    terms: tuple[tuple[str, int], ...]
    within: Interval | None = None


@dataclass(frozen=True, slots=True)
class TableExpr:
    """One value for each iteration of a loop, if no affine expression fits."""

    values: tuple[int, ...]
    variable: str


IndexExpr = int | AffineExpr | TableExpr
Bounds = tuple[tuple[IndexExpr, IndexExpr], ...]  # half-open along each axis


def variable(name: str) -> AffineExpr:
    """The variable itself."""
    return AffineExpr(0, ((name, 1),))


def value(expr: IndexExpr, at: Mapping[str, int]) -> int:
    """The value of the expression in the iteration `at`."""
    match expr:
        case AffineExpr(base, terms, within):
            address = base + sum(step * at[name] for name, step in terms)
            return address if within is None else min(max(address, within[0]), within[1])
        case TableExpr(values, name):
            return values[at[name]]
        case _:
            return expr


def variables(expr: IndexExpr) -> Iterator[str]:
    """The loop variables that the expression depends on."""
    if isinstance(expr, AffineExpr):
        yield from (name for name, _ in expr.terms)
    elif isinstance(expr, TableExpr):
        yield expr.variable


def scaled(expr: IndexExpr, factor: int) -> IndexExpr:
    """The expression multiplied by a constant."""
    match expr:
        case AffineExpr(base, terms, within):
            ends = within and sorted(end * factor for end in within)
            steps = tuple((name, step * factor) for name, step in terms)
            return AffineExpr(base * factor, steps, (ends[0], ends[1]) if ends else None)
        case TableExpr(values, name):
            return TableExpr(tuple(number * factor for number in values), name)
        case _:
            return expr * factor


def tabled(expr: IndexExpr, counts: Mapping[str, int]) -> IndexExpr:
    """The expression as a table if it depends on one of these loop variables alone; `counts` are their iterations."""
    names = dict.fromkeys(variables(expr))
    if len(names) != 1 or not names.keys() <= counts.keys():
        return expr
    (name,) = names
    return TableExpr(tuple(value(expr, {name: at}) for at in range(counts[name])), name)


def fit(values: Sequence[int], name: str) -> IndexExpr:
    """The simplest expression that has these values where variable `name` is 0, 1, ...

    >>> fit([3, 3, 3], "i"), fit([0, 3, 7, 9], "i")
    (3, AffineExpr(base=-1, terms=(('i', 4),), within=(0, 9)))
    """
    if len(set(values)) == 1:
        return values[0]
    low, high = min(values), max(values)
    for step in sorted({b - a for a, b in pairwise(values)} - {0}, key=abs, reverse=True):
        for base in sorted({values[0], *(values[at] - step * at for at in (1, len(values) - 1))}):
            line = [base + step * at for at in range(len(values))]
            if line == list(values):
                return AffineExpr(base, ((name, step),))
            if [min(max(v, low), high) for v in line] == list(values):
                return AffineExpr(base, ((name, step),), (low, high))
    return TableExpr(tuple(values), name)
