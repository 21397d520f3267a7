"""Rolling windows: the number of rows of a tensor that are live while layers run row by row.

Layers are traced as they will run (`program.RowTrace`), without assumptions about the network's shape (M 4, where
rolling windows correspond to channels without self-loops).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ..network import Network
from ..program import ROWS, FusedLayers, FusionSchedule, PixelChain, RowTrace, rows_needed
from .layout.problem import align_up
from .views import Views, is_aligned

_FAR = 1 << 60  # beyond any address: no longer needed
_DEAD = _FAR >> 1  # values from here on mean "no longer needed"


class RowWindows:
    """A trace of layers that run row by row: rows kept of every root, and the distance of outputs behind inputs."""

    def __init__(self, views: Views, fused: FusedLayers) -> None:
        self.network, self.views, self.trace = fused.network, views, RowTrace(fused)
        self.passing = passing_roots(views, self.trace)
        self.reads = self._reads()
        self.rows: dict[str, int] = {}  # the most rows of each written root that were live
        # (X, Y): how far writing Y was ahead of reading X, in bytes from the starts of their buffers.
        self.lags: dict[tuple[str, str], int] = {}
        # (X, Y): the bytes of Y, from its start, that were written while X was still needed.
        self.tails: dict[tuple[str, str], int] = {}
        self._run()

    def without_steps(self) -> RowWindows:
        """A copy with the results only; the steps of hundreds of traces would take hundreds of megabytes."""
        self.reads = {}
        for known in ("demands", "taken", "bands"):
            vars(self.trace).pop(known, None)  # recomputed on demand
        return self

    def rows_kept(self, root: str, members: Iterable[str]) -> int:
        """Rows of a root that must be kept: all, unless its members roll together."""
        shape = self.network.tensors[root].shape
        height = shape[ROWS] if len(shape) == 4 else 1
        places = self.views.places
        rolls = len(shape) == 4 and all(is_aligned(self.network, x, places[x], (ROWS,)) for x in members)
        if root in self.passing and rolls:
            return min(self.trace.chains[self.passing[root]].rows, height)
        return max(1, min(self.rows.get(root, height), height)) if rolls else height

    def window(self, root: str, members: Iterable[str], alignment: int) -> int:
        """Bytes of the rows that must be kept, in whole words."""
        return align_up(self.rows_kept(root, members) * self._row_bytes(root), alignment)

    def _reads(self) -> Mapping[str, list[tuple[int, tuple[int, ...]]]]:
        """For each root its readers, and the first byte each needs from every step on."""
        reads: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        for index, chain in enumerate(self.trace.chains):
            layers = [self.network.by_name[name] for name in chain.layers]
            for name in dict.fromkeys(name for layer in layers for name in self.network.activations(layer)):
                place = self.views.places[name]
                starts = (place.offset + start * place.strides[ROWS] for start, _ in self.trace.reads(index, name))
                reads.setdefault(place.root, []).append((index, (*starts, _FAR)))
        return reads

    def _run(self) -> None:
        trace = self.trace
        writes = [self._written(chain) for chain in trace.chains]
        touched: list[list[tuple[str, list[tuple[int, tuple[int, ...]]]]]] = [[] for _ in writes]
        for root, readers in self.reads.items():
            for index, _ in readers:
                touched[index].append((root, readers))
        last = [self.network.by_name[name].output for name in trace.fused.sinks]
        leaving = {self.views.places[name].root for name in last}
        lags: dict[str, dict[str, int]] = {root: {} for root in leaving}
        tails: dict[str, dict[str, int]] = {root: {} for root in leaving}
        sizes, heights = [chain.rows for chain in trace.chains], trace.heights
        for band in range(len(trace.rounds_of)):
            done = [0] * len(writes)
            first = dict.fromkeys(self.reads, 0)  # the first byte of each root that is still needed
            if trace.fused.schedule.is_banded:
                done = [low for low, _ in trace.bands[band]]
                first = {name: min([starts[done[i]] for i, starts in readers]) for name, readers in self.reads.items()}
            for at, step in trace.order(band):
                stop = min((step + 1) * sizes[at], heights[at])
                for root, offset, stride, size in writes[at]:
                    oldest = min(first[root] // size, stop) if root in first else stop
                    self.rows[root] = max(self.rows.get(root, 0), stop - oldest)
                    if root in leaving:
                        _note_lags(lags[root], tails[root], offset + stop * stride, first)
                done[at] += 1
                for name, readers in touched[at]:
                    first[name] = min([starts[done[i]] for i, starts in readers])
        self.lags = {(x, root): lag for root, by_tensor in lags.items() for x, lag in by_tensor.items()}
        self.tails = {(x, root): tail for root, by_tensor in tails.items() for x, tail in by_tensor.items()}

    def _written(self, chain: PixelChain) -> list[tuple[str, int, int, int]]:
        """The roots that a chain writes: start of its rows, row pitch and row size in bytes."""
        written = {}
        for name in chain.layers:
            place = self.views.places[self.network.by_name[name].output]
            if place.root not in self.passing and name not in self.trace.fused.partial:
                size = self._row_bytes(place.root)
                written[place.root] = (place.root, place.offset, place.strides[ROWS], size)
        return list(written.values())

    def _row_bytes(self, root: str) -> int:
        tensor = self.network.tensors[root]
        return tensor.bytes // tensor.shape[ROWS] if len(tensor.shape) == 4 else tensor.bytes


def _note_lags(lags: dict[str, int], tails: dict[str, int], written: int, first: Mapping[str, int]) -> None:
    """Records how far writing a root is ahead of reading others, and how much of it exists while these live."""
    for x, needed in first.items():
        lag = written - needed
        if needed < _DEAD:
            tails[x] = max(written, tails.get(x, 0))
        if lag > lags.get(x, -_FAR * 2):
            lags[x] = lag


def passing_roots(views: Views, trace: RowTrace) -> Mapping[str, int]:
    """The roots that only pass rows on inside a chain, and their chain."""
    members = views.members
    passing = {}
    for index, chain in enumerate(trace.chains):
        outputs = {trace.network.by_name[name].output for name in chain.layers[:-1]}
        for name in outputs:
            root = views.places[name].root
            if set(members[root]) <= outputs:
                passing[root] = index
    return passing


def pullable(network: Network) -> Mapping[str, int]:
    """The inputs whose rows can be pulled on demand, and the number of rows kept of each.

    Such an input is one image, read by a single layer from top to bottom.
    """
    kept = {}
    for name in network.inputs:
        shape = network.tensors[name].shape
        reader = network.sole_reader(name)
        if reader is None or len(shape) != 4 or shape[0] != 1 or reader.op.may_be_view:
            continue
        needs = rows_needed(network, reader, name)
        if needs is not None:
            kept[name] = max(stop - start for start, stop in needs)
    return {name: rows for name, rows in kept.items() if 0 < rows < network.tensors[name].shape[ROWS]}


def rows_pulled(
    network: Network, free: Collection[str], pulled: Sequence[tuple[str, int]], schedules: Sequence[FusionSchedule]
) -> tuple[tuple[str, int], ...]:
    """The rows kept of each pulled input: those that one step of its reader needs, with these schedules."""
    rows = dict(pulled)
    for schedule in (each for each in schedules if pulled and each.streamed):
        trace = RowTrace(FusedLayers(network, schedule, free))
        for index, chain in enumerate(trace.chains):
            read = {name for layer in chain.layers for name in network.by_name[layer].inputs}
            for name in read & rows.keys():
                rows[name] = max(rows[name], *(stop - start for start, stop in trace.reads(index, name)))
    return tuple(rows.items())
