"""Operators of model files that networks do not have, as layers that they do have: for the readers of both formats.

Each function adds layers through its reader and returns the last one, operator and inputs, which the reader adds under
the name of the file's output.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol, TypeVar

import numpy as np

from .operators import (
    Binary,
    BinaryKind,
    Compare,
    CompareKind,
    Dense,
    Gather,
    Op,
    Reduce,
    ReduceKind,
    Select,
    Transpose,
)
from .region import Perm, Shape, inverse
from .tensor import Array, DType

V = TypeVar("V")
Last = tuple[Op, list[V]]


class LayerAdder(Protocol[V]):
    """How a reader adds intermediate layers and constants to its network; `tag` ends their names."""

    def layer(self, op: Op, inputs: Sequence[V], tag: str, *, dtype: DType | None = None) -> V: ...
    def constant(self, tag: str, data: Array) -> V: ...
    def shape(self, value: V) -> Shape: ...
    def reshaped(self, value: V, shape: Shape, tag: str) -> V: ...
    def transposed(self, value: V, perm: Perm, tag: str) -> V: ...


def running_sums(to: LayerAdder[V], x: V, axis: int, *, exclusive: bool, backward: bool) -> Last[V]:
    """Running sums along an axis: each line times a triangle of ones."""
    count = to.shape(x)[axis]
    ones = np.tri(count, count, -1 if exclusive else 0, dtype=np.float32)
    return times_matrix(to, x, axis, np.ascontiguousarray(ones.T) if backward else ones, "sums")


def times_matrix(to: LayerAdder[V], x: V, axis: int, matrix: Array, tag: str) -> Last[V]:
    """Each line along the axis, times a constant matrix of outputs x inputs."""
    rank = len(to.shape(x))
    last = (*(i for i in range(rank) if i != axis), axis)
    lines = [to.transposed(x, last, f"{tag}/last"), to.constant(f"{tag}/matrix", matrix)]
    if axis == rank - 1:
        return Dense(), lines
    return Transpose(inverse(last)), [to.layer(Dense(), lines, tag)]


def is_index(to: LayerAdder[V], chosen: V, depth: int, axis: int, dtype: DType, *, from_end: bool) -> V:
    """Whether a counter along the axis, where `chosen` has size 1, equals the chosen index.

    With `from_end`, negative indices count from the end.
    """
    count = np.arange(depth, dtype=dtype.numpy).reshape((depth, *(1,) * (len(to.shape(chosen)) - axis - 1)))
    ends = [count, (count - depth).astype(dtype.numpy)] if from_end else [count]
    spots = [
        to.layer(Compare(CompareKind.EQUAL), [chosen, to.constant(f"count{i}", end)], f"is{i}", dtype=DType.BOOL)
        for i, end in enumerate(ends)
    ]
    return to.layer(Compare(CompareKind.OR), spots, "is", dtype=DType.BOOL) if from_end else spots[0]


def blocks_at(to: LayerAdder[V], x: V, indices: V, dtype: DType, *, from_end: bool) -> Last[V]:
    """The elements or blocks that rows of computed indices choose: indices over several axes are combined into one."""
    shape, depth = to.shape(x), to.shape(indices)[-1]
    if from_end:
        zero = to.constant("zero", np.array(0, dtype.numpy))
        is_back = to.layer(Compare(CompareKind.LESS), [indices, zero], "is_back", dtype=DType.BOOL)
        sizes = to.constant("sizes", np.array(shape[:depth], dtype.numpy))
        ahead = to.layer(Binary(BinaryKind.ADD), [indices, sizes], "ahead")
        indices = to.layer(Select(), [is_back, ahead, indices], "places", dtype=dtype)
    strides = np.array([prod(shape[i + 1 : depth]) for i in range(depth)], dtype.numpy)
    counted = to.layer(Binary(BinaryKind.MUL), [indices, to.constant("strides", strides)], "counted")
    total = to.layer(Reduce((len(to.shape(counted)) - 1,), False, ReduceKind.SUM), [counted], "total")
    return Gather(0), [to.reshaped(x, (prod(shape[:depth]), *shape[depth:]), "flat"), total]


def elements_at(to: LayerAdder[V], x: V, places: Array) -> V:
    """The elements at these row-major positions, in the order of `places`; their shape is left to the reader."""
    flat = to.reshaped(x, (prod(to.shape(x)),), "flat")
    return to.layer(Gather(0), [flat, to.constant("places", places.reshape(-1).astype(np.int32))], "picked")


def reversed_places(shape: Shape, time: int, batch: int, lengths: Array) -> Array:
    """Row-major positions with the first elements of each batch reversed along the time axis."""
    places = np.indices(shape)
    limits = lengths[places[batch]]
    places[time] = np.where(places[time] < limits, limits - 1 - places[time], places[time])
    return np.asarray(np.ravel_multi_index(tuple(places), shape))
