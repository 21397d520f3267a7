"""Which layers run row by row: the cuts of an order into stages that need the least memory, at no extra MACs (M 4).

A stage is one whole layer, or a stretch of layers that pass rows on to each other. Its memory is what lies across it,
what comes in and goes out whole, and the windows between its layers. The peak is the largest over all stages, so the
best cuts are a shortest path with `max` in place of `+`; among the paths with that peak, the one that streams least is
taken, since a layer that is streamed reads its weights again for every row.

How a stretch runs is decided by its last layers alone. So one trace per end gives the windows of all its beginnings.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import InputError
from ..network import Layer, Network
from ..network.operators import Concat, Reshape, Slice
from ..program import rows_needed, sums_bytes
from .layout.problem import align_up
from .overlap import Distance, most_shared
from .problems import Techniques, Work
from .stretch import NARROW, Trace, accumulates, inner_roots, stream_of, streamable, weights_read
from .views import Views
from .ways import COLUMNS, Way, body_of

STEP_COST = 2000  # bytes of weights that a step costs as much as reading
NEAR = 32  # layers by which a stretch may reach beyond those that need too much as a whole


@dataclass(frozen=True)
class Cut:
    """Layers [first, last) of the order as one stage."""

    first: int
    last: int
    memory: int
    effort: int  # weights read again and steps made, in bytes
    is_stretch: bool


def stretches(work: Work, order: Sequence[int], known: int | None = None) -> tuple[Way, ...]:
    """The groups of layers for which going row by row saves most; `known` is a peak that can be had anyway."""
    cuts = Cuts(work, order)
    return tuple(Way(tuple(cuts.names[cut.first : cut.last])) for cut in cuts.best(known) if cut.is_stretch)


def runs(work: Work, order: Sequence[int], names: Collection[str]) -> tuple[Way, ...]:
    """These layers, those that stand side by side in the order together."""
    found: list[list[str]] = [[]]
    for step in order:
        layer = work.tasks[step].layers[0]
        if layer.name not in names:
            found.append([])
        elif streamable(work.network, layer, work.views.free):
            found[-1].append(layer.name)
        elif accumulates(work.network, layer):
            found[-1].append(layer.name)
            found.append([])  # what reads the sums waits until they are complete
        else:
            raise InputError(
                f"layer '{layer.name}' cannot run row by row: that takes one image, read from top to bottom"
            )
    return tuple(Way(tuple(group)) for group in found if group)


def waists(network: Network, views: Views) -> frozenset[str]:
    """The tensors that alone lie across some cut, but inside a larger buffer that is filled later.

    A stretch could end there cheaply if the tensor waited outside and were copied, row by row, into the larger one.
    """
    places = views.places
    open_ends: set[str] = set()  # tensors made so far that are still to be read
    left = {name: len(readers) for name, readers in network.readers.items()}
    found = set()
    for layer in network.layers:
        for name in network.activations(layer):
            left[name] -= 1
            if not left[name]:
                open_ends.discard(name)
        if left[layer.output]:
            open_ends.add(layer.output)
        root = places[layer.output].root
        if open_ends == {layer.output} and network.tensors[root].bytes > network.tensors[layer.output].bytes:
            found.add(layer.output)
    return frozenset(found)


def _clusters(heavy: Sequence[int]) -> list[tuple[int, int]]:
    """Where stretches that cover these layers may begin and end; those close to each other are one cluster."""
    found: list[tuple[int, int]] = []
    for at in heavy:
        begin, end = max(0, at - NEAR), at + 1 + NEAR
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


class Cuts:
    """An order of whole layers, with all ways to cut it into stages."""

    def __init__(self, work: Work, order: Sequence[int]) -> None:
        self.work, self.network, self.views = work, work.network, work.views
        self.layers = [work.tasks[step].layers[0] for step in order]
        self.names = [layer.name for layer in self.layers]
        self.spans = work.lifetimes(order)
        self.fits = [streamable(self.network, layer, self.views.free) for layer in self.layers]
        step_at = {step: at for at, step in enumerate(order)}
        self.shared: dict[int, int] = {}  # bytes that a whole layer's output shares with its input
        for (step, x, y), safe in work.pairs.items():
            at = step_at[step]
            if self.spans[x][1] == at == self.spans[y][0]:
                size = most_shared(work.stores[x].size, work.stores[y].size, safe, work.alignment)
                self.shared[at] = max(size, self.shared.get(at, 0))
        # By end: where the longest traced stretch begins, all of them, and what longer ones cannot do without.
        self._known: dict[int, tuple[int, list[Cut], int]] = {}

    def best(self, known: int | None = None) -> list[Cut]:
        """The stages with the least peak, and among those the least effort.

        Only layers that need more than the best peak so far have to be inside a stretch; as the peak sinks, more do.
        """
        wholes = [[self._whole(at)] for at in range(len(self.layers))]
        arriving, peak = wholes, self._peak(wholes)
        while True:
            limit = min(peak, known or peak)
            arriving = self._arriving(wholes, limit)
            found = self._peak(arriving)
            if found >= peak:
                return self._easiest(arriving, peak)
            peak = found

    def _arriving(self, wholes: Sequence[list[Cut]], limit: int) -> list[list[Cut]]:
        """For each layer the stages that end with it: itself, and stretches that stay within the limit."""
        arriving = [[*whole] for whole in wholes]
        for begin, end in _clusters([at for at, (whole,) in enumerate(wholes) if whole.memory >= limit]):
            for last in range(begin + 1, min(end, len(wholes)) + 1):
                if self.fits[last - 1] or accumulates(self.network, self.layers[last - 1]):
                    arriving[last - 1] += self._stretches(last, limit, begin)
        return arriving

    @staticmethod
    def _peak(arriving: Sequence[Sequence[Cut]]) -> int:
        """The least peak of a way through."""
        peaks = [0]
        for cuts in arriving:
            peaks.append(min(max(peaks[cut.first], cut.memory) for cut in cuts))
        return peaks[-1]

    def _easiest(self, arriving: Sequence[Sequence[Cut]], peak: int) -> list[Cut]:
        """The cheapest way through cuts that stay within the peak."""
        effort: list[float] = [0.0]
        taken: list[Cut | None] = [None]
        for cuts in arriving:
            within = [cut for cut in cuts if cut.memory <= peak]
            best = min(within, key=lambda cut: effort[cut.first] + cut.effort, default=None)
            effort.append(effort[best.first] + best.effort if best else float("inf"))
            taken.append(best)
        found: list[Cut] = []
        at = len(arriving)
        while at:
            cut = taken[at]
            assert cut is not None
            found.append(cut)
            at = cut.first
        return found[::-1]

    def _whole(self, at: int) -> Cut:
        alive = [root for root, (first, last) in self.spans.items() if first <= at <= last]
        memory = sum(self.work.stores[root].size for root in alive) - self.shared.get(at, 0)
        return Cut(at, at + 1, memory, 0, False)

    @cached_property
    def _crossing(self) -> list[int]:
        """Bytes that lie across each cut."""
        change = [0] * (len(self.layers) + 2)
        for root, (first, last) in self.spans.items():
            change[first + 1] += self.work.stores[root].size
            change[last + 1] -= self.work.stores[root].size
        found = [0]
        for value in change[1:]:
            found.append(found[-1] + value)
        return found

    def _stretches(self, last: int, limit: int, earliest: int) -> list[Cut]:
        """The stretches that end right before `last` and stay within the limit.

        The trace is made longer until what must lie in it is too much: what is kept inside only grows.
        """
        begin = last - 1  # the last layer itself may do no more than keep sums
        while begin > earliest and self.fits[begin - 1]:
            begin -= 1
        first, cuts, least = self._known.get(last, (last, [], 0))
        length = 8
        while first > begin and least <= limit:
            first = min(first, max(begin, last - length))
            cuts, least = self._traced(first, last)
            length *= 2
        self._known[last] = first, cuts, least
        return [cut for cut in cuts if cut.memory <= limit]

    def _traced(self, begin: int, last: int) -> tuple[list[Cut], int]:
        """The stretches within [begin, last) that end with it, and what a longer one cannot do without."""
        names = self.names[begin:last]
        stream = stream_of(body_of(self.network, Way(tuple(names)), self.views.free))
        assert stream is not None
        trace = Trace(self.network, self.views, stream)
        rolling = inner_roots(self.network, self.views, names)
        memory = least = self._crossing[last] + self._sums(last - 1)  # behind the stretch, written by it or before
        handed: dict[int, int] = {}  # bytes of what each unit hands on inside
        effort, found = 0, []
        for first in range(last - 1, begin - 1, -1):
            layer = self.layers[first]
            # What is read for the last time inside comes from outside as long as its writer is not inside too.
            memory += sum(self._size(root) for root in self._dying[first])
            for root in self._born[first]:
                if root in rolling and self.spans[root][1] < last:
                    memory -= self._size(root)
                    if root in trace.passing:
                        unit = trace.passing[root]
                        handed[unit] = handed.get(unit, 0) + self._narrow(root)
                        continue
                    window = trace.window(root, rolling[root], self.work.alignment)
                    memory += window
                    least += window
            rows = self.network.tensors[layer.inputs[0]].shape[1]
            effort += (rows - 1) * (weights_read(self.network, layer) + STEP_COST)
            needed = memory + max(handed.values(), default=0) - self._trailing(trace, first, last)
            found.append(Cut(first, last, needed, effort, True))
        return found, least

    def _narrow(self, root: str) -> int:
        """Bytes of a few pixels of a row."""
        tensor = self.network.tensors[root]
        if len(tensor.shape) != 4:
            return tensor.bytes
        columns = tensor.shape[COLUMNS]
        return align_up(min(columns, NARROW) * (tensor.bytes // (tensor.shape[1] * columns)), self.work.alignment)

    def _sums(self, at: int) -> int:
        """Bytes of running sums, should this layer keep any."""
        layer = self.layers[at]
        return 0 if self.fits[at] else align_up(sums_bytes(self.network, layer), self.work.alignment)

    def _size(self, root: str) -> int:
        return self.work.stores[root].size

    @cached_property
    def _dying(self) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in self.layers]
        for root, (_, last) in self.spans.items():
            if not self.work.stores[root].is_output:
                found[last].append(root)
        return found

    @cached_property
    def _born(self) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in self.layers]
        for root, (first, _) in self.spans.items():
            if not self.work.stores[root].is_input:
                found[first].append(root)
        return found

    @cached_property
    def _partial(self) -> set[str]:
        """Buffers with tensors in them that do not fill them from end to end: nothing trails these."""
        return {place.root for name, place in self.views.places.items() if self.work.filled(name) is None}

    def _trailing(self, trace: Trace, first: int, last: int) -> int:
        """The most bytes that an output of the stretch shares with an input that dies in it."""
        if not self.work.techniques.overlap:
            return 0
        best = 0
        for (x, y), lag in trace.lags.items():
            store, (born, dead) = self.work.stores[x], self.spans[x]
            dies = first <= dead < last and (born < first or store.is_input) and not store.is_output
            if dies and self.spans[y][0] >= first and x != y and not self._partial & {x, y}:
                safe = Distance(lag, self._size(x))
                best = max(best, most_shared(self._size(x), self._size(y), safe, self.work.alignment))
        return best


def phased_bound(network: Network, techniques: Techniques, alignment: int) -> int:
    """Bytes that no plan by rows can do without: what lies outside whole, and the least any one layer needs to run."""
    layers = (_least(network, layer) for layer in network.layers)
    return max(least_bound(network, techniques, alignment), *layers, 0)


def least_bound(network: Network, techniques: Techniques, alignment: int) -> int:
    """Bytes that no plan at all can do without: all inputs are there at the beginning, all outputs at the end."""
    pulled = dict(techniques.pulled)
    given = sum(align_up(network.tensors[n].bytes, alignment) for n in network.inputs if n not in pulled)
    wanted = sum(
        align_up(network.tensors[n].bytes, alignment) for n in network.outputs if n not in network.constants
    )
    return max(given, wanted)


def _least(network: Network, layer: Layer) -> int:
    """Bytes that lie in memory at some moment while the layer runs, whole or row by row."""
    out = network.tensors[layer.output]
    reads = [network.tensors[name] for name in network.activations(layer)]
    whole = max((tensor.bytes for tensor in (out, *reads)), default=0)
    if isinstance(layer.op, Concat | Slice | Reshape) or accumulates(network, layer):
        return 0  # free, perhaps, or only sums
    if not streamable(network, layer, ()):
        return whole
    rows = 0
    for tensor in reads:
        needed = rows_needed(network, layer, tensor.name) or ()
        most = max((b - a for a, b in needed), default=0)
        if most > 1:  # a single row may be handed on in pieces
            rows += most * (tensor.bytes // tensor.shape[1])
    return min(whole, rows)
