"""The strategies of the papers, and ours, as divisions of the same units: what differs is which split goes where.

What a strategy leaves open (how many layers are fused, where it switches) is chosen as suits the goal best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property

from ..errors import Infeasible
from ..network import Network
from ..network.parts import demanded, given_outside
from .costs import DivisionCosts
from .division import Division, DivisionSegment, SegmentSplit
from .goal import ClusterGoal
from .hybrid import FoundDivision, best_division
from .paper.balanced import BalanceSettings, vertical_balanced
from .paper.layers import LayerKind, PaperLayer
from .paper.switch_point import best_switch
from .paper.vertical import VerticalProblem
from .paper.weights import WeightScheme, optimised_weights
from .units import LayerUnit

HYBRID = "hybrid"


def paper_layer(network: Network, units: Sequence[LayerUnit], number: int) -> PaperLayer:
    """A unit in values, as S and T count; its number is from 1."""
    unit, before = units[number - 1], units[number - 2].layers if number > 1 else ()
    outputs = given_outside(network, set(unit.layers))
    demand = demanded(network, set(unit.layers), outputs, {})
    made = {network.by_name[name].output for name in unit.layers}
    reads = {name: region for name, region in demand.wanted.items() if name not in made}
    weights = sum(region.size for region in demand.constants.values())
    only_here = {network.by_name[name].output for name in before} - given_outside(
        network, {*before, *unit.layers}
    ).keys()
    return PaperLayer(
        number,
        unit.layers[0],
        LayerKind.CONVOLUTION if weights else LayerKind.OTHER,
        sum(region.size for region in reads.values()),
        sum(region.size for region in outputs.values()),
        weights,
        unit.work,
        number - 1 if len(reads) == 1 and reads.keys() <= only_here else None,
    )


class Strategies:
    """Every strategy for one network on one cluster."""

    def __init__(self, costs: DivisionCosts, goal: ClusterGoal) -> None:
        self.costs, self.goal = costs, goal
        self.units = costs.sketcher.units
        self.devices = tuple(device.name for device in costs.cluster.devices)

    @cached_property
    def table(self) -> Mapping[str, Callable[[], FoundDivision]]:
        return {**self._others, HYBRID: self._hybrid}

    @cached_property
    def _others(self) -> Mapping[str, Callable[[], FoundDivision]]:
        """The strategies of the papers, each searched once."""
        return {
            "data": self._best_of(self._data()),
            "ffmt": self._best_of(self._ffmt()),
            "sequential": self._best_of(self._sequential()),
            "horizontal": self._best_of([self._horizontal()]),
            "vertical": self._best_of(self._vertical()),
            "deepthings": self._best_of(self._deepthings()),
            "switch": self._best_of(self._switch()),
        }

    def _hybrid(self) -> FoundDivision:
        """The search, which begins from what the others find as well."""
        found: list[Division] = []
        for search in self._others.values():
            with suppress(Infeasible):
                found.append(search().division)
        return best_division(self.costs, self.goal, found)

    def _best_of(self, divisions: Iterable[Division]) -> Callable[[], FoundDivision]:
        @cache
        def found() -> FoundDivision:
            tried = [
                FoundDivision(self.costs, division, cost)
                for division in divisions
                if (cost := self.costs.cost(division)) is not None
            ]
            if not tried:
                raise Infeasible("this network cannot be divided like that")
            return min(tried, key=lambda each: self.goal.score(each.costs, each.cost))

        return found

    @cached_property
    def layers(self) -> tuple[PaperLayer, ...]:
        network = self.costs.network
        return tuple(paper_layer(network, self.units, number) for number in range(1, len(self.units) + 1))

    def _segment(self, number: int, split: SegmentSplit, stop: int | None = None) -> DivisionSegment:
        """Units as one segment on all devices, or on the gateway where they cannot be split so."""
        segment = DivisionSegment(number, stop or number + 1, split, self.devices)
        if split is not SegmentSplit.WHOLE and self.costs.sketcher.sketch(segment) is not None:
            return segment
        return DivisionSegment(number, stop or number + 1, SegmentSplit.WHOLE, (self.costs.cluster.gateway,))

    def _all(self, split: SegmentSplit) -> list[DivisionSegment]:
        return [self._segment(number, split) for number in range(len(self.units))]

    def _data(self) -> Iterator[Division]:
        """Rows of every layer, halos exchanged; every device has all weights of what it shares in."""
        yield tuple(self._all(SegmentSplit.ROWS))

    def _ffmt(self) -> Iterator[Division]:
        """Rows of groups of fused layers, halos computed again (S 5.3.3); groups of so many units."""
        alone = self._all(SegmentSplit.ROWS)
        for length in range(2, len(alone) + 1):
            found: list[DivisionSegment] = []
            for segment in alone:
                last = found[-1] if found else None
                joined = last and segment.split is SegmentSplit.ROWS and last.split is SegmentSplit.ROWS
                if last and joined and last.stop - last.first < length:
                    other = self._segment(last.first, SegmentSplit.ROWS, segment.stop)
                    if other.split is SegmentSplit.ROWS:
                        found[-1] = other
                        continue
                found.append(segment)
            yield tuple(found)

    def _horizontal(self) -> Division:
        """Weights of every layer over all devices: fan-out everywhere (S 5.3.4)."""
        return tuple(self._all(SegmentSplit.CHANNELS))

    def _sequential(self) -> Iterator[Division]:
        """Consecutive layers on each device (S 5.3.2): cuts that even out memory, work, or both."""
        memory = [layer.values for layer in self.layers]
        work = [unit.work for unit in self.units]
        total = sum(memory), sum(work)
        for part in range(5):
            share = part / 4
            costs = [share * a / total[0] + (1 - share) * b / total[1] for a, b in zip(memory, work, strict=True)]
            yield self._on_devices(even_runs(costs, len(self.devices)))

    def _vertical(self) -> Iterator[Division]:
        """Whole layers on devices, not necessarily consecutive ones (T 4): memory evened out, or memory and work."""
        for share in (1.0, 0.5):
            memory, work = sum(layer.values for layer in self.layers), sum(unit.work for unit in self.units)
            pairs = zip(self.layers, self.units, strict=True)
            costs = [round(1e6 * (share * a.values / memory + (1 - share) * b.work / work)) for a, b in pairs]
            settings = BalanceSettings(rounds=20, steps=20_000)
            yield self._on_devices(
                vertical_balanced(VerticalProblem(tuple(costs), len(self.devices)), settings).devices
            )

    def _on_devices(self, places: Sequence[int]) -> Division:
        """Whole units on the devices of these numbers; neighbours on one device are one segment."""
        found: list[DivisionSegment] = []
        for number, place in enumerate(places):
            device = (self.devices[place],)
            if found and found[-1].devices == device:
                found[-1] = DivisionSegment(found[-1].first, number + 1, SegmentSplit.WHOLE, device)
            else:
                found.append(DivisionSegment(number, number + 1, SegmentSplit.WHOLE, device))
        return tuple(found)

    def _deepthings(self) -> Iterator[Division]:
        """Tiles of the first layers, fused, on all devices; the rest on the gateway (DeepThings, S 2)."""
        for stop in range(1, len(self.units) + 1):
            first = self._segment(0, SegmentSplit.TILES, stop)
            if first.split is SegmentSplit.WHOLE:
                return
            rest = () if stop == len(self.units) else (self._segment(stop, SegmentSplit.WHOLE, len(self.units)),)
            yield (first, *rest)

    def _switch(self) -> Iterator[Division]:
        """Features before S's switch point (5.12 to 5.15), then weights as sends least (5.17 to 5.21)."""
        first = best_switch(self.layers, len(self.devices)).first
        rows = [self._segment(number, SegmentSplit.ROWS) for number in range(first)]
        yield (*rows, *self.by_weights(first))

    def by_weights(self, first: int) -> Iterator[DivisionSegment]:
        """Units from the first one on, by S's optimised weight partitioning."""
        layers = self.layers[first:]
        schemes = optimised_weights(layers, len(self.devices)).schemes if layers else ()
        number = first
        while number < len(self.units):
            scheme = schemes[number - first]
            if scheme is WeightScheme.PAIR_FIRST:
                pair = DivisionSegment(number, number + 2, SegmentSplit.SUMS, self.devices)
                if self.costs.sketcher.sketch(pair) is not None:
                    yield pair
                    number += 2
                    continue
            split = SegmentSplit.SUMS if scheme is WeightScheme.FAN_IN else SegmentSplit.CHANNELS
            segment = self._segment(number, split)
            yield segment if segment.split is split else self._segment(number, SegmentSplit.CHANNELS)
            number += 1


def even_runs(costs: Sequence[float], count: int) -> list[int]:
    """The run of each of a row of costs, in at most so many runs, the largest sum of which is small."""
    low, high = max(costs), sum(costs)
    for _ in range(60):
        middle = (low + high) / 2
        if _runs_within(costs, middle)[-1] < count:
            high = middle
        else:
            low = middle
    return _runs_within(costs, high)


def _runs_within(costs: Sequence[float], most: float) -> list[int]:
    found, number, total = [], 0, 0.0
    for cost in costs:
        if total and total + cost > most:
            number, total = number + 1, 0.0
        total += cost
        found.append(number)
    return found
