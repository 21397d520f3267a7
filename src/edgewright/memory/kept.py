"""What is kept of a tensor inside a stretch: a few rows that roll, the tile at hand, or all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from ..network import Network, Shape
from ..program import ROWS, View
from .views import Place


@dataclass(frozen=True)
class Kept:
    """Of a root: how many indices along each axis, and when, counted in the steps of the stretch's body."""

    shape: Shape
    bytes: int
    rolls: bool = False  # rows: index i is found at i mod n
    tiled: tuple[int, ...] = ()  # axes along which it is just the tile at hand
    slots: tuple[int, int] | None = None  # first and last; None for always


def kept(
    network: Network, root: str, sizes: Mapping[int, int], tiled: tuple[int, ...], slots: tuple[int, int] | None
) -> Kept:
    """What is kept of a root with these extents along some axes."""
    tensor = network.tensors[root]
    shape = tuple(min(sizes.get(axis, size), size) for axis, size in enumerate(tensor.shape))
    rolls = ROWS in sizes and ROWS not in tiled and shape[ROWS] < tensor.shape[ROWS]
    return Kept(shape, prod(shape) * tensor.dtype.bytes, rolls, tiled, slots)


def is_aligned(network: Network, name: str, place: Place, axes: tuple[int, ...]) -> bool:
    """Whether indices along these axes mean the same in the tensor and in its root, so that one cut suits both."""
    tensor, root = network.tensors[name], network.tensors[place.root]
    for axis in axes:
        if axis >= len(root.shape) or (root.shape[axis] > 1 and not _has_axis(network, name, place, axis)):
            return False
        if place.offset >= root.strides[axis] * (1 if axis < len(root.shape) - 1 else root.shape[-1]):
            return False
    rest = sum(
        (n - 1) * s
        for n, s in zip(tensor.shape, place.strides, strict=True)
        if n > 1 and s < root.strides[min(axes)]
    )
    return place.offset + rest + tensor.dtype.bytes <= root.strides[min(axes)] or min(axes) == len(root.shape) - 1


def _has_axis(network: Network, name: str, place: Place, axis: int) -> bool:
    """Whether the tensor has the root's axis, as long and with the same steps."""
    tensor, root = network.tensors[name], network.tensors[place.root]
    steps = list(zip(tensor.shape, place.strides, strict=True))
    return (root.shape[axis], root.strides[axis]) in steps


def view_of(network: Network, name: str, place: Place, kept: Kept) -> View:
    """Where the tensor lies in what is kept of its root."""
    tensor, root = network.tensors[name], network.tensors[place.root]
    size = tensor.dtype.bytes
    dense = [size * prod(kept.shape[axis + 1 :]) for axis in range(len(kept.shape))]
    new = {old: now for n, old, now in zip(root.shape, root.strides, dense, strict=True) if n > 1}
    strides = tuple(new.get(s, s) if n > 1 else s for n, s in zip(tensor.shape, place.strides, strict=True))
    window = (ROWS, kept.shape[ROWS]) if kept.rolls else None
    behind = len(root.shape) - len(tensor.shape)
    tiled = tuple(axis - behind for axis in kept.tiled if axis >= behind)
    return View(place.root, place.offset, strides, window, tiled)
