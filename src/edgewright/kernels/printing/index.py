"""Numbers that depend on loops, in C."""

from __future__ import annotations

from collections.abc import Mapping

from ...program.index import AffineExpr, IndexExpr, TableExpr
from ..module import Module
from .source import Expr, plus, times


def printed(module: Module, expr: IndexExpr, names: Mapping[str, Expr] | None = None) -> Expr:
    """C of the number; `names` says what loops are called, where not by their own name."""
    match expr:
        case AffineExpr(base, terms, within):
            given = names or {}
            line = plus(*(times(given.get(name, name), step) for name, step in terms), base)
            if within is None:
                return line
            if not names and base >= within[0] and all(step > 0 for _, step in terms):  # loops begin at 0
                return f"ew_min({line}, {within[1]})"
            return f"ew_between({within[0]}, {line}, {within[1]})"
        case TableExpr(values, name):
            return module.one_number(values, (names or {}).get(name, name))
        case _:
            return expr
