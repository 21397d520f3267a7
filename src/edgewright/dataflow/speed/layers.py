"""An order of firings in which each comes after those of the same iteration that it waits for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def layers(source: Ints, is_now: NDArray[np.bool_]) -> Sequence[Ints]:
    """The nodes in layers, such that edges which are now lead from one layer to a later one.

    Nodes on cycles of such edges, and what follows from them, come last, together.
    """
    slots, nodes = source.shape
    ends = np.broadcast_to(np.arange(nodes), (slots, nodes))[is_now]
    starts = source[is_now]
    by_start = np.argsort(starts, kind="stable")
    onwards = ends[by_start]
    first = np.searchsorted(starts[by_start], np.arange(nodes + 1))
    waiting = np.bincount(ends, minlength=nodes)
    layer = np.flatnonzero(waiting == 0)
    found = []
    while layer.size:
        found.append(layer)
        waiting[layer] = -1
        reached, edges = np.unique(onwards[_ranges(first[layer], first[layer + 1])], return_counts=True)
        waiting[reached] -= edges
        layer = reached[waiting[reached] == 0]
    rest = np.flatnonzero(waiting > 0)
    return [*found, rest] if rest.size else found


def _ranges(first: Ints, last: Ints) -> Ints:
    """The numbers from each first up to its last, one range after the other."""
    lengths = last - first
    skipped = np.repeat(first - np.cumsum(lengths) + lengths, lengths)
    return skipped + np.arange(int(lengths.sum()))
