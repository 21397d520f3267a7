"""The extra cost of running layers in parts, by which routes are compared.

A layer's price is independent of its fusion group's bounds: it assumes rolling windows, and the largest tile size for
all tiles. The plan made from a route is estimated again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ..kernels.cost.call_context import AMPLE, CallContext
from ..kernels.cost.estimate import Costs
from ..network import Interval, Layer, Network, Region
from ..program import ROWS, Sweep

ROOM = 1 << 17  # bytes of scratch that a kernel may use
WORTH = 0.98  # of the instructions without scratch; scratch must save more than this

Parts = tuple[tuple[int, tuple[Interval, ...]], ...]  # axes, and the part of a layer that each tile computes along them


class Prices:
    """Extra instructions of a network's layers in parts, and the scratch that minimises them."""

    def __init__(self, network: Network, costs: Costs) -> None:
        self.network, self.costs = network, costs
        self.by_rows = lru_cache(None)(self._by_rows)
        self.shared = lru_cache(None)(self._shared)
        self.tight = lru_cache(None)(self._tight)
        self._ideal = lru_cache(None)(self._whole)

    def _by_rows(self, name: str, is_summing: bool) -> tuple[int, int, int]:
        """Extra instructions of the layer row by row: without scratch, with scratch, and the bytes of that scratch."""
        layer = self.network.by_name[name]

        def cost(room: int) -> float:
            context = CallContext(room=room, is_circular=True)
            if is_summing:
                return self._summed(layer, ((ROWS, self._single_rows(layer)),), context)
            shape = self.network.tensors[layer.output].shape
            return self.costs.parts(name, (1, 1, *shape[2:]), context)

        return self._with_room(name, cost)

    def _tight(self, name: str) -> tuple[int, int, int]:
        """Like `by_rows`, for the whole layer if its output does not overlap its input."""
        return self._with_room(name, lambda room: self._whole(name, CallContext(room=room)))

    def _shared(self, name: str, in_planes: bool) -> int:
        """Extra instructions of the whole layer if its output overlaps its input."""
        context = CallContext(room=0, is_shared=True, sweep=Sweep.CHANNELS if in_planes else Sweep.FORWARD)
        return round(self._whole(name, context) - self._ideal(name))

    def tiles(self, layer: Layer, parts: Parts, by_rows: bool, is_summing: bool) -> int:
        """Extra instructions of the layer in tiles; zero if the estimate is below that of the whole layer."""
        context = CallContext(is_circular=by_rows)
        if is_summing:
            cost = self._summed(layer, parts, context)
        else:
            shape = self.network.tensors[layer.output].shape
            bounds = list(Region.whole(shape).bounds)
            count = 1.0
            for axis, intervals in parts:
                bounds[axis], times = _largest(intervals)
                count *= times
            if by_rows and len(shape) == 4:
                count *= bounds[ROWS][1] - bounds[ROWS][0]
                middle = sum(bounds[ROWS]) // 2
                bounds[ROWS] = (middle, middle + 1)
            cost = count * self.costs.region(layer.name, Region(tuple(bounds)), context)
        return max(0, round(cost - self._ideal(layer.name)))

    def _summed(self, layer: Layer, parts: Parts, context: CallContext) -> float:
        """Instructions of a layer that sums its input part by part."""
        shape = self.network.tensors[layer.output].shape
        bounds, count = list(Region.whole(self.network.shapes(layer)[0]).bounds), 1.0
        for axis, intervals in parts:
            bounds[axis], times = _largest(intervals)
            count *= times
        share = self.costs.region(layer.name, Region.whole(shape), context, Region(tuple(bounds)))
        return count * share + self.costs.finish(layer.name)

    def _single_rows(self, layer: Layer) -> tuple[Interval, ...]:
        return tuple((row, row + 1) for row in range(self.network.shapes(layer)[0][ROWS]))

    def _whole(self, name: str, context: CallContext | None = None) -> float:
        shape = self.network.tensors[self.network.by_name[name].output].shape
        return self.costs.region(name, Region.whole(shape), context)

    def _with_room(self, name: str, cost: Callable[[int], float]) -> tuple[int, int, int]:
        none, ample, ideal = cost(0), cost(AMPLE), self._ideal(name)
        if ample > WORTH * none:
            return round(none - ideal), round(none - ideal), 0
        low, high = 0, ROOM
        while high - low > 8:
            middle = (low + high) // 2
            low, high = (low, middle) if cost(middle) <= ample + 0.1 * (none - ample) else (middle, high)
        return round(none - ideal), round(cost(high) - ideal), -(-high // 8) * 8


def _largest(intervals: tuple[Interval, ...]) -> tuple[Interval, float]:
    """The largest part, and the number of such parts that all parts amount to."""
    largest = max(intervals, key=lambda part: part[1] - part[0])
    size = max(1, largest[1] - largest[0])
    return largest, sum(max(0, b - a) for a, b in intervals) / size
