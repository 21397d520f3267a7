"""All ways to run the fusion groups of an order: whole, by rows, in column stripes, in tiles, by channels.

The memory of a group depends on its end only: tiles of its last layers determine what every earlier layer computes. So
one backward pass from each end prices all beginnings. The memory is what is live across the group, its inputs and
outputs, and what is kept inside; the real layout confirms it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from ..memory.footprint import band_lags, inner_roots, tile_extent
from ..memory.layout.problem import align_up
from ..memory.pricing import Candidate, Pricer
from ..memory.problems import PlanningProblem
from ..memory.row_windows import RowWindows
from ..network import Layer, Region
from ..program import CHANNELS, COLUMNS, ROWS, FusedLayers, FusionSchedule, Split, Tiling, even_ends, sums_bytes
from ..program.legal import can_split, can_sum, is_cut
from .prices import Prices

STRIPES = (2, 3, 4, 5, 6, 8, 10, 12, 16)
GRIDS = tuple((n, n) for n in (2, 3, 4, 5)) + tuple((n, 1) for n in (2, 3, 4, 6, 8, 12, 16, 25))
BANDS = tuple((rows, stripes) for rows in (2, 4, 8) for stripes in (4, 5, 7))  # rows of the first band
CHANNEL_PARTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25)
CHANNEL_UNIT = 4  # channels that kernels compute together
LONGEST = 48  # layers of a group in tiles
CROWDED = 0.75  # of a limit; groups whose inputs and outputs take more should share memory, in bands


@dataclass(frozen=True)
class TilePattern:
    """How the tiles of a group are formed: parts along axes, and the execution inside each."""

    parts: tuple[tuple[int, int], ...]  # (axis, how many), outermost first
    by_rows: bool
    first: int = 0  # rows of the first band around them; bands double in size; 0: no bands

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(axis for axis, _ in self.parts)


def patterns() -> Iterator[TilePattern]:
    """Every kind of tiles that is tried."""
    for n in STRIPES:
        yield TilePattern(((COLUMNS, n),), True)
    for rows, stripes in BANDS:
        yield TilePattern(((COLUMNS, stripes),), True, rows)
    for rows, columns in GRIDS:
        yield TilePattern(((ROWS, rows), (COLUMNS, columns)) if columns > 1 else ((ROWS, rows),), False)
    for n in CHANNEL_PARTS:
        yield TilePattern(((CHANNELS, n),), False)
        yield TilePattern(((CHANNELS, n),), True)


class TilePricer(Pricer):
    """An order of whole layers, with all ways to divide it into stages and to run each of them.

    The effort of a stage is its extra instructions relative to whole layers with unlimited memory.
    """

    def __init__(
        self, problem: PlanningProblem, order: Sequence[int], prices: Prices, most_macs: int | None = None
    ) -> None:
        super().__init__(problem, order)
        self.prices = prices
        self.most_macs = most_macs  # that a group may recompute
        self._row_prices: dict[int, tuple[int, int, int]] = {}
        self._traces: dict[tuple[int, int, tuple[str, ...]], RowWindows] = {}
        self._mixing: dict[int, bool] = {}

    def effort_by_rows(self, at: int) -> int:
        return self._by_rows(at)[0]

    def _by_rows(self, at: int) -> tuple[int, int, int]:
        """The extra cost of this layer row by row without scratch, with scratch, and the size of the scratch."""
        if at not in self._row_prices:
            layer = self.layers[at]
            self._row_prices[at] = self.prices.by_rows(layer.name, can_sum(self.network, layer))
        return self._row_prices[at]

    def whole(self, at: int) -> Candidate:
        """The whole layer in the least memory."""
        cut = super().whole(at)
        if cut.memory == self._alive(at):
            return replace(cut, effort=self.prices.tight(self.names[at])[0])
        in_planes = self._saved_by_planes(at) > self.shared.get(at, 0)
        return replace(cut, effort=self.prices.shared(self.names[at], in_planes))

    def with_more_memory(self, at: int) -> Iterator[Candidate]:
        """The whole layer with more memory: its output separate from its input, scratch for its kernel."""
        least, memory = self.whole(at), self._alive(at)
        tight, ample, room = self.prices.tight(self.names[at])
        is_shared = least.memory < memory
        if is_shared and tight < least.effort:
            yield replace(least, memory=memory, effort=tight, no_overlap=True)
        if ample < min(tight, least.effort):
            yield replace(least, memory=memory + room, effort=ample, scratch=room, no_overlap=is_shared)

    def with_scratch(self, cut: Candidate) -> Candidate | None:
        """The group by rows with scratch for its kernels, if that makes it faster."""
        if cut.schedule is None or cut.schedule.splits:
            return None
        prices = [self._by_rows(at) for at in range(cut.first, cut.last)]
        room, effort = max(need for _, _, need in prices), sum(ample for _, ample, _ in prices)
        return replace(cut, memory=cut.memory + room, effort=effort, scratch=room) if effort < cut.effort else None

    def tiled(self, last: int, limit: int) -> list[Candidate]:
        """The groups in tiles that end right before `last` and stay below the limit, the best for each beginning."""
        candidates: list[Candidate] = []
        seen = set()
        if self.crossing[last] >= limit:
            return []
        outside = self.outside(last)[self.earliest(last) :]
        is_crowded = any(shared and memory > CROWDED * limit for memory, shared in outside)
        for pattern in patterns():
            splits = self._splits(last, pattern) if is_crowded or not pattern.first else None
            if splits is None or (splits, pattern.by_rows) in seen:
                continue
            seen.add((splits, pattern.by_rows))
            candidates += self._priced(last, pattern, splits, limit)
        return _undominated(candidates)

    def outside(self, last: int) -> list[tuple[int, int]]:
        """For groups that end there, by beginning: the bytes live beside the group's own, and how many of them an
        output may share with an input at most."""
        memory, ranges = self.crossing[last], list[tuple[int, int]]()
        read: dict[str, int] = {}  # tensors that die in the group
        made = 0  # the largest output
        for first in range(last - 1, -1, -1):
            read |= {root: self.size(root) for root in self.dying[first]}
            memory += sum(self.size(root) for root in self.dying[first])
            for root in self.born[first]:
                if self.spans[root][1] < last:
                    memory -= self.size(root)
                    read.pop(root, None)
                else:
                    made = max(made, self.size(root))
            ranges.append((memory, min(max(read.values(), default=0), made)))
        return ranges[::-1]

    def _splits(self, last: int, pattern: TilePattern) -> tuple[Split, ...] | None:
        """The ends of the last layer's tiles along each axis; None if it cannot be divided so."""
        layer = self.layers[last - 1]
        tensor = self.network.tensors[layer.output]
        splits = []
        for axis, parts in pattern.parts:
            size = self._driven(layer, axis, pattern)
            if size is None or size < parts or not can_split(tensor.shape, axis):
                return None
            unit = CHANNEL_UNIT if axis == CHANNELS and size >= CHANNEL_UNIT * parts else 1
            splits.append(Split(axis, even_ends(size, parts, unit)))
        if pattern.first:  # each band begins when the input of the previous ones is free
            height = self._driven(layer, ROWS, pattern) or 0
            ends = (pattern.first << n for n in range(height.bit_length()))
            splits.insert(0, Split(ROWS, (*(end for end in ends if end < height), height)))
        return None if any(len(split.ends) < 2 for split in splits) else tuple(splits)

    def _driven(self, layer: Layer, axis: int, pattern: TilePattern) -> int | None:
        """What the tiles of a last layer divide: its output, or the input that it sums."""
        if pattern.by_rows and not (self.fits[self.at[layer.name]] or can_sum(self.network, layer)):
            return None
        if axis == CHANNELS and can_sum(self.network, layer, CHANNELS):
            # A reduction only has its input: rows save as much of it.
            return self.network.tensors[layer.inputs[0]].shape[-1] if len(layer.inputs) > 1 else None
        if axis != CHANNELS and can_sum(self.network, layer):
            return self.network.tensors[layer.inputs[0]].shape[axis]
        shape_ = self.network.tensors[layer.output].shape
        return shape_[axis] if len(shape_) > max(axis, 0) else None

    @cached_property
    def at(self) -> Mapping[str, int]:
        return {name: at for at, name in enumerate(self.names)}

    def _priced(self, last: int, pattern: TilePattern, splits: tuple[Split, ...], limit: int) -> list[Candidate]:
        begin = self._earliest(last, pattern)
        if last - begin < 2:
            return []
        schedule = FusionSchedule(tuple(self.names[begin:last]), splits, pattern.by_rows)
        return list(_Pricing(self, schedule, begin, last, limit).priced())

    def traced(self, begin: int, last: int, fused: FusedLayers) -> RowWindows:
        """The group as it runs row by row; the same for any number of parts, and an upper bound for bands."""
        key = begin, last, fused.partial
        if key not in self._traces:
            undivided = replace(fused.schedule, splits=tuple(x for x in fused.schedule.splits if x.axis != ROWS))
            self._traces[key] = RowWindows(self.views, replace(fused, schedule=undivided))
        return self._traces[key]

    def _earliest(self, last: int, pattern: TilePattern) -> int:
        """The first layer that a group may include."""
        begin = last - 1
        while begin > self.earliest(last):
            layer = self.layers[begin - 1]
            if not all(can_split(self.network.tensors[layer.output].shape, axis) for axis in pattern.axes):
                break
            if pattern.by_rows and not self.fits[begin - 1]:
                break
            begin -= 1
            if CHANNELS in pattern.axes and self._mixes_channels(begin):
                break  # a fan-out computes some channels from all inputs, so it begins a group
        return begin

    def _mixes_channels(self, at: int) -> bool:
        """Whether each channel of the layer's output depends on all channels of its input."""
        if at not in self._mixing:
            layer = self.layers[at]
            out = Region.whole(self.network.tensors[layer.output].shape)
            needs = layer.op.needs(out.with_axis(len(out.bounds) - 1, (0, 1)), self.network.shapes(layer))
            pairs = zip(layer.inputs, needs, self.network.shapes(layer), strict=True)
            reads = [(n, s) for name, n, s in pairs if name not in self.network.constants and s and s[-1] > 1]
            self._mixing[at] = any(needed.bounds[-1] == (0, shape[-1]) for needed, shape in reads)
        return self._mixing[at]

    def earliest(self, last: int) -> int:
        """The first layer that any group in tiles may include; pulled rows arrive only once."""
        return max(0, last - LONGEST, *(at + 1 for at in self._pulling if at < last))

    @cached_property
    def _pulling(self) -> list[int]:
        pulled = dict(self.problem.techniques.pulled)
        return [at for at, layer in enumerate(self.layers) if any(name in pulled for name in layer.inputs)]


def _undominated(cuts: Sequence[Candidate]) -> list[Candidate]:
    """For each beginning, the candidates that no other beats in memory, MACs and effort."""
    kept: list[Candidate] = []
    best: dict[int, list[Candidate]] = {}
    for cut in sorted(cuts, key=lambda c: (c.memory, c.macs, c.effort)):
        others = best.setdefault(cut.first, [])
        if not any(o.macs <= cut.macs and o.effort <= cut.effort for o in others):
            others.append(cut)
            kept.append(cut)
    return kept


class _Pricing:
    """One kind of tiles for one end: the needs of all beginnings."""

    def __init__(self, pricer: TilePricer, schedule: FusionSchedule, begin: int, last: int, limit: int) -> None:
        self.pricer, self.schedule, self.begin, self.last, self.limit = pricer, schedule, begin, last, limit
        self.network, self.views = pricer.network, pricer.views
        self.fused = FusedLayers(self.network, schedule, self.views.free)
        self.tilings = [Tiling(self.fused, split) for split in schedule.splits]
        self.trace = pricer.traced(begin, last, self.fused) if schedule.streamed else None
        self.inner = inner_roots(self.network, self.views, schedule.layers)
        self.lags = band_lags(self.views, self.fused) if schedule.is_banded else {}

    def priced(self) -> Iterator[Candidate]:
        """The group from each beginning, the shortest first; stops when no longer group is possible."""
        pricer, last = self.pricer, self.last
        end = pricer.layers[last - 1]
        memory = pricer.crossing[last]
        if end.name in self.fused.partial:
            memory += align_up(sums_bytes(self.network, end), pricer.problem.alignment)
        live = [0] * (last - self.begin)  # bytes kept inside at each step when layers run one after the other
        windows, handed = 0, dict[int, int]()
        trailing = pricer.trailing(self.lags, self.begin, last)
        macs = effort = 0
        most = pricer.most_macs
        for first in range(last - 1, self.begin - 1, -1):
            layer = pricer.layers[first]
            if not self._may_hold(first, layer):
                return
            memory += sum(pricer.size(root) for root in pricer.dying[first])
            for root in pricer.born[first]:
                if root not in self.inner or pricer.spans[root][1] >= last:
                    continue
                memory -= pricer.size(root)
                size = self._kept(root, self.inner[root])
                if size is None:
                    return
                if self.trace is None:
                    for at in range(first, pricer.spans[root][1] + 1):
                        live[at - self.begin] += size
                elif root in self.trace.passing:
                    chain = self.trace.passing[root]
                    handed[chain] = handed.get(chain, 0) + size
                else:
                    windows += size
            macs += self._again(layer)
            if most is not None and macs > most:
                return
            effort += self._effort(layer)
            inside = max(live) if self.trace is None else windows + max(handed.values(), default=0)
            if pricer.crossing[last] + inside >= self.limit:  # and longer groups only keep more
                return
            needed = memory + inside - trailing[first - self.begin]
            if last - first > 1 and needed < self.limit:
                schedule = replace(self.schedule, layers=tuple(pricer.names[first:last]))
                if self._takes_shares(schedule, end) and self._cuts_rest(first):
                    yield Candidate(first, last, needed, effort, schedule, macs)

    def _takes_shares(self, schedule: FusionSchedule, end: Layer) -> bool:
        """Whether channels that the last layer sums are computed in the group, if these are divided."""
        if CHANNELS not in schedule.axes or not can_sum(self.network, end, CHANNELS):
            return True
        return FusedLayers(self.network, schedule, self.views.free).adds_up(end.name)

    def _cuts_rest(self, first: int) -> bool:
        """Whether the group's tiles write over tensors from before it, so that they share no memory."""
        pricer = self.pricer
        for root, members in self.inner.items():
            born, last_read = pricer.spans[root]
            makers = {x: self.network.producers[x].name for x in members}
            rest = [x for x in members if makers[x] in self.views.free or pricer.at[makers[x]] >= first]
            is_split = born < first and any(makers[x] not in self.views.free for x in rest)
            if is_split and last_read < self.last and self._kept(root, rest) is None:
                return False
        return True

    def _may_hold(self, first: int, layer: Layer) -> bool:
        """Whether the layer can be in the group: divided by the tiles, and driven like the last one."""
        if first == self.last - 1:
            return True
        if layer.name in self.fused.partial or not all(is_cut(tiling, layer.name) for tiling in self.tilings):
            return False
        sizes = {tiling.size(layer.name) - tiling.split.ends[-1] for tiling in self.tilings}
        return layer.name not in self.fused.sinks or sizes == {0}

    def _kept(self, root: str, members: Sequence[str]) -> int | None:
        """Bytes kept of a root inside; None if the tensors that share its memory are divided differently."""
        tensor = self.network.tensors[root]
        sizes = list(tensor.shape)
        for tiling in self.tilings:
            at, parts = tiling.split.axis % len(sizes), tiling.intervals
            extent = tile_extent(self.network, self.views, members, at, parts)
            if extent is None:
                return None
            sizes[at] = extent
        if self.trace is not None and len(sizes) == 4:
            sizes[ROWS] = self.trace.rows_kept(root, members)
            if root in self.trace.passing and COLUMNS not in self.schedule.axes:
                sizes[COLUMNS] = min(sizes[COLUMNS], 4)
        return align_up(prod(sizes) * tensor.dtype.bytes, self.pricer.problem.alignment)

    def _again(self, layer: Layer) -> int:
        """MACs of the layer that are recomputed."""
        total = self.network.macs(layer)
        factor = 1
        whole = 1
        for tiling in self.tilings:
            factor *= sum(max(0, b - a) for a, b in tiling.intervals[layer.name])
            whole *= tiling.size(layer.name)
        return total * factor // whole - total

    def _effort(self, layer: Layer) -> int:
        """Extra instructions of the layer."""
        is_summing = layer.name in self.fused.partial
        shape = self.network.shapes(layer)[0] if is_summing else self.network.tensors[layer.output].shape
        parts = tuple((tiling.split.axis % len(shape), tiling.intervals[layer.name]) for tiling in self.tilings)
        return self.pricer.prices.tiles(layer, parts, self.schedule.streamed, is_summing)
