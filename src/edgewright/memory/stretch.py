"""Layers that run together as one stage, and what is kept of every tensor inside.

Nothing is assumed about the network's shape: layers are traced as they will run (`program.RowTrace`), and a window is
as large as the most rows that are ever there and still needed (M 4; as rolling windows there is no self-loop channel).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import InputError
from ..network import Interval, Layer, Network
from ..network.operators import Grain
from ..program import (
    COLUMNS,
    ROWS,
    FusedLayers,
    FusionSchedule,
    PixelChain,
    RowTrace,
    Tiling,
    sums_bytes,
    sums_name,
)
from .kept import Kept, is_aligned, kept
from .layout.problem import align_up
from .overlap import Distance, distance
from .views import Views

HEAVY = 128 * 1024  # bytes of weights that are better not read again for each row
PIXELS = 28  # in a step, so that reading them pays
NARROW = 4  # columns at least that a chain computes in a go
_FAR = 1 << 60  # beyond any address: what is not needed any more


@dataclass(frozen=True)
class Stretch:
    """One stage of several layers. Roots in `kept` live inside it alone."""

    schedule: FusionSchedule
    kept: Mapping[str, Kept]
    sums: Mapping[str, int]  # bytes of buffers for running sums
    slots: int  # steps, or chains, during which different things may be kept
    shares: Mapping[tuple[str, str], Distance]  # (X, Y): how an output may trail an input that dies here

    @property
    def layers(self) -> tuple[str, ...]:
        return self.schedule.layers

    @property
    def name(self) -> str:
        return self.schedule.name


def comfortable(network: Network, views: Views, schedule: FusionSchedule) -> Iterator[FusionSchedule]:
    """Schedules that do more in a step, the fastest first: whole rows, and several rows for heavy layers.

    What the schedule says about rows stays.
    """
    found = _heavy_rows(network, views, schedule) if schedule.streamed else ()
    heavy = tuple(entry for entry in found if entry[0] not in dict(schedule.rows))
    rows = (*schedule.rows, *heavy)
    is_narrow = any(width for _, width in schedule.columns)
    if heavy:
        yield replace(schedule, columns=(), rows=rows)
    if is_narrow:
        yield replace(schedule, columns=())
        if heavy:
            yield replace(schedule, rows=rows)


def _heavy_rows(network: Network, views: Views, schedule: FusionSchedule) -> tuple[tuple[str, int], ...]:
    """The layers that run much faster with several rows in a step: those that read many weights for few pixels."""
    trace = RowTrace(FusedLayers(network, schedule, views.free))
    found = []
    for chain in trace.chains:
        layers = [network.by_name[name] for name in chain.layers]
        reads_image = any(
            x in network.inputs for layer in layers for x in layer.inputs
        )  # of which few rows are there
        width = _across(trace, chain)
        heaviest = max(layers, key=lambda layer: weights_read(network, layer))
        if weights_read(network, heaviest) >= HEAVY and width < PIXELS and not reads_image:
            found.append((heaviest.name, -(-PIXELS // width)))
    return tuple(found)


def _across(trace: RowTrace, chain: PixelChain) -> int:
    """The columns of what a chain goes through."""
    first = trace.fused.wholes[chain.layers[0]]
    return (first.share or first.region).shape[COLUMNS]


def narrowed(network: Network, views: Views, schedule: FusionSchedule) -> FusionSchedule:
    """The schedule with few columns at a time where whole rows between layers of a chain would need more memory.

    Chains of which the schedule says something keep that.
    """
    if not schedule.streamed or COLUMNS in schedule.axes:
        return schedule
    trace = RowTrace(FusedLayers(network, schedule, views.free))
    pixels = pixel_bytes(views, trace)
    widths = [_across(trace, chain) for chain in trace.chains]
    room = max(size * min(width, NARROW) for size, width in zip(pixels, widths, strict=True))
    found = [
        (chain.last, _even(width, room // size))
        for chain, size, width in zip(trace.chains, pixels, widths, strict=True)
        if size * width > room and chain.last not in dict(schedule.columns)
    ]
    return replace(schedule, columns=(*schedule.columns, *found))


def _even(width: int, most: int) -> int:
    """The columns of parts of a row, as few as `most` allows and all about as wide: a single column costs the most.

    >>> _even(5, 4)
    3
    """
    return -(-width // -(-width // most))


def pixel_bytes(views: Views, trace: RowTrace) -> list[int]:
    """For each chain the bytes of a pixel of all that is handed on inside it, in all rows of a step."""
    found = [0] * len(trace.chains)
    for root, chain in _passing(views, trace).items():
        tensor = trace.network.tensors[root]
        if len(tensor.shape) == 4:
            found[chain] += trace.chains[chain].rows * tensor.bytes // (tensor.shape[ROWS] * tensor.shape[COLUMNS])
    return found


def weights_read(network: Network, layer: Layer) -> int:
    """Bytes of constants that each step of the layer reads."""
    return sum(network.tensors[name].bytes for name in layer.inputs if name in network.constants)


def with_rows_in_place(
    network: Network, views: Views, layers: Collection[str], tiled: Mapping[str, FusionSchedule] | None = None
) -> Views:
    """The views with element-wise layers of stretches in place: a row is computed where it will be overwritten.

    What a stretch in tiles (`tiled`, by layer) reads from outside stays, since the next tile may read it again.
    """
    apart = tiled or {}
    places = dict(views.places)
    alone = {names[0] for names in views.members().values() if len(names) == 1}
    interface = {*network.inputs, *network.outputs}
    for layer in reversed(network.layers):
        if layer.name not in layers or layer.op.grain is not Grain.ELEMENT:
            continue
        for source in network.activations(layer):
            producer = network.producers.get(source)
            inside = producer is not None and producer.name in layers and source not in interface
            inside = inside and producer is not None and apart.get(layer.name) is apart.get(producer.name)
            if inside and source in alone and _replaces(network, layer, source):
                places[source] = places[layer.output]
                alone -= {source, layer.output}
                break
    return replace(views, places=places)


def _replaces(network: Network, layer: Layer, source: str) -> bool:
    """Whether each element of the output can take the place of the input's at the same index."""
    x, y = network.tensors[source], network.tensors[layer.output]
    if network.sole_reader(source) is not layer or x.shape != y.shape or x.dtype is not y.dtype:
        return False
    safe = distance(network, layer, source)
    return max(safe.below, safe.above) <= 0


class Trace:
    """Layers as they run row by row: rows kept of every root, and how far outputs stay behind inputs."""

    def __init__(self, views: Views, fused: FusedLayers) -> None:
        self.network, self.views, self.flow = fused.network, views, RowTrace(fused)
        self.passing = _passing(views, self.flow)
        self.reads = self._reads()
        self.rows: dict[str, int] = {}  # the most rows of each written root that were there and still needed
        # (X, Y): the most bytes by which writing Y was ahead of reading X, both from the start of their buffers.
        self.lags: dict[tuple[str, str], int] = {}
        self._run()

    def rows_kept(self, root: str, members: Iterable[str]) -> int:
        """Rows of a root that must be kept: all, unless its members roll together."""
        shape = self.network.tensors[root].shape
        height = shape[ROWS] if len(shape) == 4 else 1
        places = self.views.places
        rolls = len(shape) == 4 and all(is_aligned(self.network, x, places[x], (ROWS,)) for x in members)
        if root in self.passing and rolls:
            return min(self.flow.chains[self.passing[root]].rows, height)
        return max(1, min(self.rows.get(root, height), height)) if rolls else height

    def window(self, root: str, members: Iterable[str], alignment: int) -> int:
        """Bytes of the rows that must be kept, in whole words."""
        return align_up(self.rows_kept(root, members) * self._row_bytes(root), alignment)

    def _reads(self) -> Mapping[str, list[tuple[int, tuple[int, ...]]]]:
        """For each root who reads it, and from which byte on in each step; after the last, from none."""
        found: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        for index, chain in enumerate(self.flow.chains):
            layers = [self.network.by_name[name] for name in chain.layers]
            for name in dict.fromkeys(name for layer in layers for name in self.network.activations(layer)):
                place = self.views.places[name]
                starts = (place.offset + start * place.strides[ROWS] for start, _ in self.flow.reads(index, name))
                found.setdefault(place.root, []).append((index, (*starts, _FAR)))
        return found

    def _run(self) -> None:
        flow = self.flow
        writes = [self._written(chain) for chain in flow.chains]
        touched: list[list[tuple[str, list[tuple[int, tuple[int, ...]]]]]] = [[] for _ in writes]
        for root, readers in self.reads.items():
            for index, _ in readers:
                touched[index].append((root, readers))
        first = dict.fromkeys(self.reads, 0)  # the first byte of each root that is still needed
        done = [0] * len(writes)
        last = [self.network.by_name[name].output for name in flow.fused.sinks]
        leaving = {self.views.places[name].root for name in last}
        for at, step in flow.order():
            stop = flow.rows_of_step(at, step)[1]
            for root, offset, stride, size in writes[at]:
                oldest = min(first[root] // size, stop) if root in first else stop
                self.rows[root] = max(self.rows.get(root, 0), stop - oldest)
                if root in leaving:
                    self._lag(root, offset + stop * stride, first)
            done[at] += 1
            for name, readers in touched[at]:
                first[name] = min([starts[done[i]] for i, starts in readers])

    def _lag(self, root: str, written: int, first: Mapping[str, int]) -> None:
        """Notes by how much writing a root is ahead of reading others."""
        for x, needed in first.items():
            lag = written - needed
            if lag > self.lags.get((x, root), -_FAR * 2):
                self.lags[x, root] = lag

    def _written(self, chain: PixelChain) -> list[tuple[str, int, int, int]]:
        """The roots that a chain writes to: where its rows begin, bytes from row to row, and bytes of a row."""
        found = {}
        for name in chain.layers:
            place = self.views.places[self.network.by_name[name].output]
            if place.root not in self.passing and name not in self.flow.fused.partial:
                size = self._row_bytes(place.root)
                found[place.root] = (place.root, place.offset, place.strides[ROWS], size)
        return list(found.values())

    def _row_bytes(self, root: str) -> int:
        tensor = self.network.tensors[root]
        return tensor.bytes // tensor.shape[ROWS] if len(tensor.shape) == 4 else tensor.bytes


def _passing(views: Views, trace: RowTrace) -> Mapping[str, int]:
    """The roots that only hand rows on inside a chain, and which chain that is."""
    members = views.members()
    found = {}
    for index, chain in enumerate(trace.chains):
        outputs = {trace.network.by_name[name].output for name in chain.layers[:-1]}
        for name in outputs:
            root = views.places[name].root
            if set(members[root]) <= outputs:
                found[root] = index
    return found


def stretch(network: Network, views: Views, schedule: FusionSchedule) -> Stretch:
    """The layers as one stage, traced; an error where the schedule does not suit them."""
    fused = FusedLayers(network, schedule, views.free)
    inner = inner_roots(network, views, schedule.layers)
    cuts = _tile_sizes(views, fused, inner)
    sizes = {sums_name(name): sums_bytes(network, network.by_name[name]) for name in fused.partial}
    sums = {name: size for name, size in sizes.items() if size}
    if not schedule.streamed:
        spans = {root: _span(network, schedule.layers, members) for root, members in inner.items()}
        found = {root: kept(network, root, cuts[root], tuple(cuts[root]), spans[root]) for root in inner}
        return Stretch(schedule, found, sums, len(schedule.layers), {})
    trace = Trace(views, fused)
    found = {root: _rows_of(trace, root, members, cuts[root]) for root, members in inner.items()}
    shares = {
        (x, y): Distance(below=lag, above=network.tensors[x].bytes)
        for (x, y), lag in trace.lags.items()
        if x not in inner and y not in inner and x != y and not schedule.splits
    }
    return Stretch(schedule, found, sums, len(trace.flow.chains), shares)


def _rows_of(trace: Trace, root: str, members: Sequence[str], cuts: Mapping[int, int]) -> Kept:
    """What is kept of a root in a stretch by rows; of one that is only handed on, while its unit runs."""
    network = trace.network
    sizes = dict(cuts)
    if len(network.tensors[root].shape) == 4:
        sizes[ROWS] = trace.rows_kept(root, members)
    unit = trace.passing.get(root)
    if unit is None:
        return kept(network, root, sizes, tuple(cuts), None)
    tiled = tuple(cuts)
    width = trace.flow.chains[unit].columns
    if width and all(is_aligned(network, x, trace.views.places[x], (ROWS, COLUMNS)) for x in members):
        sizes[COLUMNS], tiled = width, tuple(dict.fromkeys((*tiled, COLUMNS)))
    return kept(network, root, sizes, tiled, (unit, unit))


def _tile_sizes(
    views: Views, fused: FusedLayers, inner: Mapping[str, Sequence[str]]
) -> Mapping[str, Mapping[int, int]]:
    """For each root inside: the most indices along each axis that a tile holds of it."""
    found: dict[str, dict[int, int]] = {root: {} for root in inner}
    for split in fused.schedule.splits:
        parts = Tiling(fused, split).intervals
        for root, members in inner.items():
            axis = split.axis % len(fused.network.tensors[root].shape)
            found[root][axis] = _extent(fused.network, views, root, members, axis, parts)
    return found


def _extent(
    network: Network,
    views: Views,
    root: str,
    members: Sequence[str],
    axis: int,
    parts: Mapping[str, tuple[Interval, ...]],
) -> int:
    """The widest part of a root; an error where its tensors are cut differently."""
    names = [network.producers[x].name for x in members if network.producers[x].name not in views.free]
    cuts = {parts[name] for name in names if name in parts}
    if len(cuts) != 1 or not all(is_aligned(network, x, views.places[x], (axis,)) for x in members):
        raise InputError(f"tiles cannot cut '{root}' along axis {axis}: tensors that share its memory differ")
    return max(max(0, b - a) for a, b in cuts.pop())


def _span(network: Network, layers: Sequence[str], members: Sequence[str]) -> tuple[int, int]:
    """The first and last of the layers that touch a root."""
    touching = []
    for at, name in enumerate(layers):
        layer = network.by_name[name]
        if layer.output in members or any(x in members for x in layer.inputs):
            touching.append(at)
    return min(touching), max(touching)


def inner_roots(network: Network, views: Views, layers: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """The roots that are written and read by these layers alone, with the tensors in each."""
    inside = {*layers, *views.free}
    ends = (name for name in (*network.inputs, *network.outputs) if name not in network.constants)
    outer = {views.places[name].root for name in ends}
    for layer in network.layers:
        if layer.name not in inside:
            outer.update(views.places[name].root for name in (*network.activations(layer), layer.output))
    members = views.members()
    written = {views.places[network.by_name[name].output].root for name in layers}
    return {root: members[root] for root in sorted(written - outer)}
