"""Loop nests over a region, and index expressions over their variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from ...program.index import AffineExpr, IndexExpr, TableExpr
from ..module import Module
from ..strided_tensor import StridedTensor
from .source import CWriter, Expr, offset, plus, times

Bounds = Sequence[tuple[Expr, Expr]]


def is_single(low: Expr, high: Expr) -> bool:
    """Whether there is one index, wherever loops stand."""
    return plus(low, 1) == high


@contextmanager
def loops(c: CWriter, bounds: Bounds, prefix: str = "i", backward: bool = False) -> Iterator[tuple[Expr, ...]]:
    """One loop per axis, row-major (or in exactly the reverse order); gives the index along each axis.

    An axis with one index has no loop.
    """
    with ExitStack() as stack:
        indices: list[Expr] = []
        for axis, (low, high) in enumerate(bounds):
            if is_single(low, high):
                indices.append(low)
                continue
            i = f"{prefix}{axis}"
            head = (
                f"for (int32_t {i} = {plus(high, -1)}; {i} >= {low}; {i}--)"
                if backward
                else f"for (int32_t {i} = {low}; {i} < {high}; {i}++)"
            )
            stack.enter_context(c.block(head))
            indices.append(i)
        yield tuple(indices)


@contextmanager
def elements(
    c: CWriter, bounds: Bounds, places: Sequence[StridedTensor], backward: bool = False
) -> Iterator[tuple[tuple[Expr, ...], tuple[Expr, ...]]]:
    """Loops over a region, with neighbouring axes joined where all places allow it.

    Gives (offset of the element in each place, index along each joined axis). Places of a lower rank than the region
    are broadcast against it.
    """
    spans, strides, windows = joined_axes(list(bounds), [place.broadcast(len(bounds)) for place in places])
    with loops(c, spans, backward=backward) as indices:
        yield tuple(offset(indices, *way) for way in zip(strides, windows, strict=True)), indices


def joined_axes(
    bounds: Bounds, places: Sequence[StridedTensor]
) -> tuple[list[tuple[Expr, Expr]], list[list[int]], list[tuple[int, int] | None]]:
    """Axes merged from the inside: the inner one must be whole in every place, and lie densely in the outer one."""
    spans: list[tuple[Expr, Expr]] = []
    strides: list[list[int]] = [[] for _ in places]
    windows: list[tuple[int, int] | None] = [None] * len(places)
    for axis, bound in enumerate(bounds):
        steps = [place.strides[axis] for place in places]
        rolling = [bool(place.window) and place.window[0] == axis for place in places]  # type: ignore[index]
        previous_rolls = any(w is not None and w[0] == len(spans) - 1 for w in windows)
        size = bound[1] if bound[0] == 0 and isinstance(bound[1], int) else None
        if (
            spans
            and size is not None
            and not any(rolling)
            and not previous_rolls
            and all(isinstance(b, int) for b in spans[-1])
            and all(strides[w][-1] == step * size for w, step in enumerate(steps))
        ):
            low, high = spans[-1]
            assert isinstance(low, int) and isinstance(high, int)
            spans[-1] = (low * size, high * size)
            for w, step in enumerate(steps):
                strides[w][-1] = step
            continue
        spans.append(bound)
        for w, step in enumerate(steps):
            strides[w].append(step)
            if rolling[w]:
                windows[w] = (len(spans) - 1, places[w].window[1])  # type: ignore[index]
    return spans, strides, windows


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
