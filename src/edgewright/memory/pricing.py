"""Divides an order of layers into stages: whole layers, and fusion groups that run row by row (M 4).

A stage needs the tensors that cross it, its inputs and outputs, and the windows between its layers. The peak is the
largest over all stages, so the best stages are a shortest path with `max` in place of `+`; among the paths with that
peak, the one with the least streaming is taken, since a streamed layer reads its weights again for every row.

The execution of a group is determined by its last layers. So one trace per end gives the windows for all its
beginnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from ..network import Layer
from ..program import COLUMNS, ROWS, FusionSchedule, sums_bytes
from ..program.legal import can_stream, can_sum
from ..progress import tell
from .footprint import inner_roots
from .in_place import waiting_sources
from .layout.problem import align_up
from .overlap import Distance, most_shared, plane_scratch
from .problems import PlanningProblem
from .step_sizes import NARROW, weights_read

STEP_COST = 2000  # a step costs as much as reading this many bytes of weights
NEAR = 32  # layers; how far a group may reach beyond layers that need too much whole


StageKey = tuple[int, int, FusionSchedule | None]  # its layers in the order, and how they run


@dataclass(frozen=True)
class Candidate:
    """Layers [first, last) of the order as one stage."""

    first: int
    last: int
    memory: int
    effort: int  # beyond whole layers: weights read again and steps, in bytes
    schedule: FusionSchedule | None = None  # None for a whole layer
    macs: int = 0  # recomputed
    scratch: int = 0  # scratch for kernels, part of the memory
    no_overlap: bool = False  # a whole layer that shares no memory with its input

    @property
    def key(self) -> StageKey:
        return self.first, self.last, self.schedule


def _clusters(heavy: Sequence[int]) -> list[tuple[int, int]]:
    """The ranges in which groups that cover these layers may begin and end; close ranges are merged."""
    clusters: list[tuple[int, int]] = []
    for at in heavy:
        begin, end = max(0, at - NEAR), at + 1 + NEAR
        if clusters and begin <= clusters[-1][1]:
            clusters[-1] = (clusters[-1][0], end)
        else:
            clusters.append((begin, end))
    return clusters


class Pricer:
    """An order of whole layers with all ways to divide it into stages."""

    def __init__(self, problem: PlanningProblem, order: Sequence[int]) -> None:
        self.problem, self.network, self.views = problem, problem.network, problem.views
        self.layers = [problem.nodes[step].layers[0] for step in order]
        self.names = [layer.name for layer in self.layers]
        self.spans = problem.lifetimes(order)
        self.fits = [can_stream(self.network, layer, self.views.free) for layer in self.layers]
        step_at = {step: at for at, step in enumerate(order)}
        self.shared: dict[int, int] = {}  # bytes that a whole layer's output shares with its input
        for (step, x, y), safe in problem.pairs.items():
            at = step_at[step]
            if self.spans[x][1] == at == self.spans[y][0]:
                size = most_shared(problem.stores[x].size, problem.stores[y].size, safe, problem.alignment)
                self.shared[at] = max(size, self.shared.get(at, 0))
        # By end: the start of the longest traced group, all groups, and a lower bound for longer ones.
        self._known: dict[int, tuple[int, list[Candidate], int]] = {}

    def best(self, known: int | None = None) -> list[Candidate]:
        """The stages with the least peak and, among those, the least effort.

        Only layers that need more than the best peak so far must be in a group; as the peak falls, more do.
        """
        wholes = [[self.whole(at)] for at in range(len(self.layers))]
        arriving, peak = wholes, self.least_peak(wholes)
        while True:
            limit = min(peak, known or peak)
            arriving = self.arriving(wholes, limit)
            least = self.least_peak(arriving)
            if least >= peak:
                return self.easiest(arriving, peak)
            peak = least

    def arriving(
        self, wholes: Sequence[list[Candidate]], limit: int, heavy: int | None = None, reach: int | None = None
    ) -> list[list[Candidate]]:
        """For each layer the stages that end with it: the layer itself, and groups that stay within the limit.

        Groups are sought around layers that need `heavy` bytes whole, and extended until they need more than `reach` in
        any case (by default the limit).
        """
        arriving = [[*whole] for whole in wholes]
        least = limit if heavy is None else heavy
        for begin, end in _clusters([at for at, (whole,) in enumerate(wholes) if whole.memory >= least]):
            for last in range(begin + 1, min(end, len(wholes)) + 1):
                tell("pricing layers by rows", last / len(wholes))
                if self.fits[last - 1] or can_sum(self.network, self.layers[last - 1]):
                    arriving[last - 1] += self.streamed_groups(last, limit, begin, limit if reach is None else reach)
        return arriving

    @staticmethod
    def least_peak(arriving: Sequence[Sequence[Candidate]]) -> int:
        """The least peak of any sequence of stages from the first layer to the last."""
        peaks = [0]
        for cuts in arriving:
            peaks.append(min(max(peaks[cut.first], cut.memory) for cut in cuts))
        return peaks[-1]

    def easiest(self, arriving: Sequence[Sequence[Candidate]], peak: int) -> list[Candidate]:
        """The cheapest sequence of stages that all stay within the peak."""
        effort: list[float] = [0.0]
        taken: list[Candidate | None] = [None]
        for cuts in arriving:
            within = [cut for cut in cuts if cut.memory <= peak]
            best = min(within, key=lambda cut: effort[cut.first] + cut.effort, default=None)
            effort.append(effort[best.first] + best.effort if best else float("inf"))
            taken.append(best)
        stages: list[Candidate] = []
        at = len(arriving)
        while at:
            cut = taken[at]
            assert cut is not None
            stages.append(cut)
            at = cut.first
        return stages[::-1]

    def whole(self, at: int) -> Candidate:
        saved = max(self.shared.get(at, 0), self._saved_by_planes(at))
        return Candidate(at, at + 1, self._alive(at) - saved, 0)

    def _alive(self, at: int) -> int:
        """Bytes in memory while the layer runs whole."""
        alive = [root for root, (first, last) in self.spans.items() if first <= at <= last]
        return sum(self.problem.stores[root].size for root in alive)

    def _saved_by_planes(self, at: int) -> int:
        """Bytes saved by a depthwise layer that works in place, channel by channel."""
        layer = self.layers[at]
        x, y = layer.inputs[0], layer.output
        if not self.problem.techniques.planes or not self.fits[at] or x in self.network.constants:
            return 0
        if self.views.places[x].root != x or self.spans[x][1] != at:
            return 0
        kept = x in (*self.network.inputs, *self.network.outputs)
        scratch = None if kept else plane_scratch(self.network, layer, x, self.problem.alignment)
        return 0 if scratch is None or y not in self.problem.stores else max(0, self.size(y) - scratch)

    @cached_property
    def crossing(self) -> list[int]:
        """Bytes that are live across each cut."""
        change = [0] * (len(self.layers) + 2)
        for root, (first, last) in self.spans.items():
            change[first + 1] += self.problem.stores[root].size
            change[last + 1] -= self.problem.stores[root].size
        return list(accumulate(change))

    def streamed_groups(self, last: int, limit: int, earliest: int, reach: int) -> list[Candidate]:
        """The groups that end right before `last` and stay within the limit.

        The trace is extended until its lower bound exceeds `reach`: the memory inside only grows.
        """
        begin = last - 1  # the last layer may only accumulate sums
        while begin > earliest and self.fits[begin - 1]:
            begin -= 1
        first, cuts, least = self._known.get(last, (last, [], 0))
        length = 8
        while first > begin and least <= reach:
            first = min(first, max(begin, last - length))
            cuts, least = self._traced(first, last)
            length *= 2
        self._known[last] = first, cuts, least
        return [cut for cut in cuts if cut.memory <= limit]

    def _traced(self, begin: int, last: int) -> tuple[list[Candidate], int]:
        """The groups within [begin, last) that end at `last`, and a lower bound for longer ones."""
        names = self.names[begin:last]
        schedule = FusionSchedule(tuple(names), streamed=True)
        trace = self.problem.row_windows(schedule.layers)
        rolling = inner_roots(self.network, self.views, names)
        memory = least = self.crossing[last] + self.sums(last - 1)  # live after the group
        handed: dict[int, int] = {}  # bytes passed on inside each chain
        effort, groups = 0, []
        trailing = self.trailing(trace.lags, begin, last)
        for first in range(last - 1, begin - 1, -1):
            # A tensor whose last read is inside comes from outside unless its writer is inside too.
            memory += sum(self.size(root) for root in self.dying[first])
            for root in self.born[first]:
                if root in rolling and self.spans[root][1] < last:
                    memory -= self.size(root)
                    if root in trace.passing:
                        chain = trace.passing[root]
                        handed[chain] = handed.get(chain, 0) + self.narrow(root)
                        continue
                    window = trace.window(root, rolling[root], self.problem.alignment) - self._overwritten.get(root, 0)
                    memory += window
                    least += window
            effort += self.effort_by_rows(first)
            needed = memory + max(handed.values(), default=0) - trailing[first - begin]
            groups.append(
                Candidate(first, last, needed, effort, replace(schedule, layers=tuple(self.names[first:last])))
            )
        return groups, least

    @cached_property
    def _overwritten(self) -> Mapping[str, int]:
        """Bytes of a row that the windows of these roots do not need, because the result overwrites it."""
        bytes_of, unit = {}, self.problem.alignment
        looked_into = {self.views.places[self.network.by_name[name].output].root for name in self.views.free}
        for layer in self.layers if self.problem.techniques.in_place else ():
            for name in waiting_sources(self.network, layer)[:1]:
                tensor = self.network.tensors[name]
                if self.views.places[name].root == name not in looked_into:
                    bytes_of[name] = tensor.bytes // tensor.shape[ROWS] // unit * unit
        return bytes_of

    def effort_by_rows(self, at: int) -> int:
        """The extra cost of running this layer row by row instead of whole."""
        layer = self.layers[at]
        return (self._rows(layer) - 1) * (weights_read(self.network, layer) + STEP_COST)

    def _rows(self, layer: Layer) -> int:
        """The number of rows of the layer: of the first image it reads at run time, else of its output."""
        shapes = [self.network.tensors[name].shape for name in (*self.network.activations(layer), layer.output)]
        return next((shape[ROWS] for shape in shapes if len(shape) == 4), 1)

    def narrow(self, root: str) -> int:
        """Bytes of a few pixels of a row."""
        tensor = self.network.tensors[root]
        if len(tensor.shape) != 4:
            return tensor.bytes
        columns = tensor.shape[COLUMNS]
        return align_up(min(columns, NARROW) * (tensor.bytes // (tensor.shape[1] * columns)), self.problem.alignment)

    def sums(self, at: int) -> int:
        """Bytes of the running sums, if this layer has any."""
        layer = self.layers[at]
        needed = sums_bytes(self.network, layer) if can_sum(self.network, layer) else 0
        return align_up(needed, self.problem.alignment)

    def size(self, root: str) -> int:
        return self.problem.stores[root].size

    @cached_property
    def dying(self) -> list[list[str]]:
        """For each layer the roots whose last use is there."""
        stores = self.problem.stores
        return self._grouped((last, root) for root, (_, last) in self.spans.items() if not stores[root].is_output)

    @cached_property
    def born(self) -> list[list[str]]:
        """For each layer the roots whose first use is there."""
        stores = self.problem.stores
        return self._grouped((first, root) for root, (first, _) in self.spans.items() if not stores[root].is_input)

    def _grouped(self, roots: Iterable[tuple[int, str]]) -> list[list[str]]:
        grouped: list[list[str]] = [[] for _ in self.layers]
        for at, root in roots:
            grouped[at].append(root)
        return grouped

    @cached_property
    def _partial(self) -> set[str]:
        """Buffers whose tensors do not fill them; nothing overlaps these."""
        return {place.root for name, place in self.views.places.items() if self.problem.filled(name) is None}

    def trailing(self, lags: Mapping[tuple[str, str], int], begin: int, last: int) -> list[int]:
        """For each group from `begin` or later to `last`, the most bytes that an output can share with an input (X, Y)
        that dies in it."""
        best = [0] * (last - begin)
        for (x, y), lag in lags.items() if self.problem.techniques.overlap else ():
            store, (born, dead) = self.problem.stores[x], self.spans[x]
            if store.is_output or dead >= last or x == y or x in self._partial or y in self._partial:
                continue
            earliest = begin if store.is_input else max(begin, born + 1)
            latest = min(dead, self.spans[y][0])
            if earliest <= latest:
                safe = Distance(lag, self.size(x))
                size = most_shared(self.size(x), self.size(y), safe, self.problem.alignment)
                for at in range(earliest - begin, latest - begin + 1):
                    best[at] = max(best[at], size)
        return best
