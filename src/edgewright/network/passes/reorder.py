"""How an operator changes when its operands' axes are reordered. `channels_last` decides on the order."""

from __future__ import annotations

from collections.abc import Sequence

from .. import operators as ops
from ..region import Perm, Shape, inverse


def identity(rank: int) -> Perm:
    return tuple(range(rank))


def compose(first: Perm, second: Perm) -> Perm:
    """One transposition for two: x.transpose(first).transpose(second)."""
    return tuple(first[i] for i in second)


def channels_last(rank: int) -> Perm:
    """From NCHW to NHWC, for any number of spatial axes."""
    return (0, *range(2, rank), 1)


def reordered(op: ops.Op, perm: Perm, shapes: Sequence[Shape], exact: bool) -> tuple[ops.Op, Perm] | None:
    """The operator on held operands and the perm of its held output; None if it depends on the order of axes.

    `exact`: rounding must not change. LiteRT sums stored values along several axes in its own way, and normalises along
    the last axis only.
    """
    if exact and (
        isinstance(op, ops.ArgMax | ops.Softmax | ops.LogSoftmax | ops.L2Normalize)
        or (isinstance(op, ops.Reduce) and len(op.axes) != 1)
    ):
        return None
    return op.reordered(perm, shapes)


Groups = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


def reshape_groups(x: Shape, y: Shape) -> Groups:
    """Which axes of x become which axes of y: the finest pairing of runs of axes of equal size.

    Axes of size 1 join the axes before them; leading ones form a separate group.

    >>> reshape_groups((1, 64, 38, 38), (1, 64, 19, 2, 19, 2))
    (((0,), (0,)), ((1,), (1,)), ((2,), (2, 3)), ((3,), (4, 5)))
    """
    groups: list[tuple[list[int], list[int]]] = [([], [])]
    i = j = 0
    while i < len(x) and x[i] == 1:
        groups[0][0].append(i)
        i += 1
    while j < len(y) and y[j] == 1:
        groups[0][1].append(j)
        j += 1
    while i < len(x) or j < len(y):
        left, right, have, want = [i], [j], x[i], y[j]
        i, j = i + 1, j + 1
        while have != want:
            if have < want:
                left.append(i)
                have, i = have * x[i], i + 1
            else:
                right.append(j)
                want, j = want * y[j], j + 1
        while i < len(x) and x[i] == 1:
            left.append(i)
            i += 1
        while j < len(y) and y[j] == 1:
            right.append(j)
            j += 1
        groups.append((left, right))
    return tuple((tuple(a), tuple(b)) for a, b in groups if a or b)


def reshape_held(perm: Perm, x: Shape, y: Shape) -> Perm | None:
    """The perm of y if x, held in another order, is reshaped as held; None if a group would be torn apart."""
    if 0 in x:
        return None  # nothing is held in any order
    groups = reshape_groups(x, y)
    place = {axis: i for i, axis in enumerate(a for a in inverse(perm) if x[a] > 1)}
    keyed: list[tuple[int, tuple[int, ...]]] = []
    for left, right in groups:
        places = [place[axis] for axis in left if x[axis] > 1]
        if places and places != list(range(places[0], places[0] + len(places))):
            return None
        keyed.append((places[0] if places else -1, right))
    order = [axis for _, right in sorted(keyed, key=lambda pair: pair[0]) for axis in right]
    return inverse(tuple(order))


def reshape_towards(wish: Perm, x: Shape, y: Shape) -> Perm | None:
    """How to transpose x so that reshaping it gives the elements of y.transpose(wish); None if no order does."""
    turned = reshape_held(inverse(wish), y, x)
    return None if turned is None else inverse(turned)
