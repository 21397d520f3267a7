"""Layers that run together as one stage, and what is kept of every tensor inside.

Nothing is assumed about the network's shape: the stretch is traced as it will run (`program.Flow`), and a window is as
large as the most rows that are ever there and still needed (M 4; as rolling windows there is no self-loop channel).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import InputError
from ..network import Interval, Layer, Network
from ..network.operators import Grain
from ..program import (
    ROWS,
    Flow,
    Step,
    Stream,
    Tiles,
    Tiling,
    Unit,
    rows_needed,
    summed_axes,
    sums_bytes,
    sums_name,
)
from .kept import Kept, is_aligned, kept
from .layout.problem import align_up
from .overlap import Distance, distance
from .views import Views
from .ways import COLUMNS, Way, body_of

HEAVY = 128 * 1024  # bytes of weights that are better not read again for each row
PIXELS = 28  # in a step, so that reading them pays
NARROW = 4  # columns at least that a unit computes in a go
_FAR = 1 << 60  # beyond any address: what is not needed any more


@dataclass(frozen=True)
class Stretch:
    """One stage of several layers. Roots in `kept` live inside it alone."""

    way: Way
    body: tuple[Stream | Tiles | Step, ...]
    kept: Mapping[str, Kept]
    sums: Mapping[str, int]  # bytes of buffers for running sums
    slots: int  # steps of the body in which different things may be kept
    shares: Mapping[tuple[str, str], Distance]  # (X, Y): how an output may trail an input that dies here

    @property
    def layers(self) -> tuple[str, ...]:
        return self.way.layers

    @property
    def name(self) -> str:
        return self.way.name


def streamable(network: Network, layer: Layer, free: Collection[str]) -> bool:
    """Whether the layer can go from top to bottom, on inputs that come row by row."""
    shape = network.tensors[layer.output].shape
    if len(shape) != 4 or shape[0] != 1:
        return False
    return all(_comes_by_rows(network, layer, name, free) for name in network.activations(layer))


def accumulates(network: Network, layer: Layer) -> bool:
    """Whether the layer can take in an image row by row, and keep nothing but running sums."""
    source = layer.inputs[0]
    shape = network.tensors[source].shape
    image = len(shape) == 4 and shape[0] == 1 and source not in network.constants
    return image and ROWS in summed_axes(network, layer)


def _comes_by_rows(network: Network, layer: Layer, name: str, free: Collection[str]) -> bool:
    if rows_needed(network, layer, name) is None:
        return False
    producer = network.producers.get(name)
    if producer is None or producer.name not in free:
        return True
    return all(_comes_by_rows(network, producer, source, free) for source in network.activations(producer))


def comfortable(network: Network, part: Stretch) -> Iterator[Way]:
    """Ways that do more in a step, the fastest first: whole rows, and several rows for heavy layers.

    What the way says about rows stays.
    """
    heavy = tuple(found for found in _heavy_rows(network, part) if found[0] not in dict(part.way.rows))
    rows = (*part.way.rows, *heavy)
    is_narrow = any(width for _, width in part.way.widths)
    if heavy:
        yield replace(part.way, widths=(), rows=rows)
    if is_narrow:
        yield replace(part.way, widths=())
        if heavy:
            yield replace(part.way, rows=rows)


def _heavy_rows(network: Network, part: Stretch) -> tuple[tuple[str, int], ...]:
    """The layers that run much faster with several rows in a step: those that read many weights for few pixels."""
    stream = stream_of(part.body)
    found = []
    for unit in stream.units if stream else ():
        layers = [network.by_name[step.layer] for step in unit.steps]
        reads_image = any(
            x in network.inputs for layer in layers for x in layer.inputs
        )  # of which few rows are there
        width = _across(unit)
        heaviest = max(layers, key=lambda layer: weights_read(network, layer))
        if weights_read(network, heaviest) >= HEAVY and width < PIXELS and not reads_image:
            found.append((heaviest.name, -(-PIXELS // width)))
    return tuple(found)


def _across(unit: Unit) -> int:
    """The columns of what a unit goes through."""
    first = unit.steps[0]
    return (first.share or first.region).shape[COLUMNS]


def narrowed(network: Network, views: Views, way: Way) -> Way:
    """The way with few columns at a time where whole rows between layers of a unit would need more memory.

    Units of which the way says something keep that.
    """
    stream = stream_of(body_of(network, way, views.free))
    if stream is None or any(axis == COLUMNS for axis, _ in way.tiles):
        return way
    pixels = pixel_bytes(network, views, stream)
    widths = [_across(unit) for unit in stream.units]
    room = max(size * min(width, NARROW) for size, width in zip(pixels, widths, strict=True))
    found = [
        (unit.last.layer, _even(width, room // size))
        for unit, size, width in zip(stream.units, pixels, widths, strict=True)
        if size * width > room and unit.last.layer not in dict(way.widths)
    ]
    return replace(way, widths=(*way.widths, *found))


def _even(width: int, most: int) -> int:
    """The columns of parts of a row, as few as `most` allows and all about as wide: a single column costs the most.

    >>> _even(5, 4)
    3
    """
    return -(-width // -(-width // most))


def pixel_bytes(network: Network, views: Views, stream: Stream) -> list[int]:
    """For each unit the bytes of a pixel of all that is handed on inside it."""
    passing = _passing(network, views, stream)
    found = [0] * len(stream.units)
    for root, unit in passing.items():
        tensor = network.tensors[root]
        if len(tensor.shape) == 4:
            rows = stream.units[unit].steps[0].region.shape[ROWS]
            found[unit] += rows * tensor.bytes // (tensor.shape[ROWS] * tensor.shape[COLUMNS])
    return found


def weights_read(network: Network, layer: Layer) -> int:
    """Bytes of constants that each step of the layer reads."""
    return sum(network.tensors[name].bytes for name in layer.inputs if name in network.constants)


def with_rows_in_place(
    network: Network, views: Views, layers: Collection[str], tiled: Mapping[str, Way] | None = None
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
    """A stretch as it runs row by row: rows kept of every root, and how far outputs stay behind inputs."""

    def __init__(self, network: Network, views: Views, stream: Stream) -> None:
        self.network, self.views, self.flow = network, views, Flow(network, stream)
        self.passing = _passing(network, views, stream)
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
            return min(self.flow.rows[self.passing[root]], height)
        return max(1, min(self.rows.get(root, height), height)) if rolls else height

    def window(self, root: str, members: Iterable[str], alignment: int) -> int:
        """Bytes of the rows that must be kept, in whole words."""
        return align_up(self.rows_kept(root, members) * self._row_bytes(root), alignment)

    def _reads(self) -> Mapping[str, list[tuple[int, tuple[int, ...]]]]:
        """For each root who reads it, and from which byte on in each step; after the last, from none."""
        found: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
        for index, unit in enumerate(self.flow.stream.units):
            layers = [self.network.by_name[step.layer] for step in unit.steps]
            for name in dict.fromkeys(name for layer in layers for name in self.network.activations(layer)):
                place = self.views.places[name]
                starts = (place.offset + start * place.strides[ROWS] for start, _ in self.flow.reads(index, name))
                found.setdefault(place.root, []).append((index, (*starts, _FAR)))
        return found

    def _run(self) -> None:
        flow = self.flow
        rows, heights = flow.rows, flow.heights
        writes = [self._written(unit) for unit in flow.stream.units]
        touched: list[list[tuple[str, list[tuple[int, tuple[int, ...]]]]]] = [[] for _ in writes]
        for root, readers in self.reads.items():
            for index, _ in readers:
                touched[index].append((root, readers))
        first = dict.fromkeys(self.reads, 0)  # the first byte of each root that is still needed
        done = [0] * len(writes)
        last = [self.network.by_name[name].output for name in flow.stream.sinks]
        leaving = {self.views.places[name].root for name in last}
        for at, step in flow.order():
            stop = min((step + 1) * rows[at], heights[at])
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

    def _written(self, unit: Unit) -> list[tuple[str, int, int, int]]:
        """The roots that a unit writes to: where its rows begin, bytes from row to row, and bytes of a row."""
        found = {}
        for step in unit.steps:
            place = self.views.places[self.network.by_name[step.layer].output]
            if place.root not in self.passing and step.share is None:
                size = self._row_bytes(place.root)
                found[place.root] = (place.root, place.offset, place.strides[ROWS], size)
        return list(found.values())

    def _row_bytes(self, root: str) -> int:
        tensor = self.network.tensors[root]
        return tensor.bytes // tensor.shape[ROWS] if len(tensor.shape) == 4 else tensor.bytes


def _passing(network: Network, views: Views, stream: Stream) -> Mapping[str, int]:
    """The roots that only hand rows on inside a unit, and which unit that is."""
    members = views.members()
    found = {}
    for index, unit in enumerate(stream.units):
        outputs = {network.by_name[step.layer].output for step in unit.steps[:-1]}
        for name in outputs:
            root = views.places[name].root
            if set(members[root]) <= outputs:
                found[root] = index
    return found


def stretch(network: Network, views: Views, way: Way) -> Stretch:
    """The layers as one stage, traced; an error where the way does not suit them."""
    body = body_of(network, way, views.free)
    inner = inner_roots(network, views, way.layers)
    cuts = _tile_sizes(network, views, body, inner)
    sums = {
        sums_name(step.layer): sums_bytes(network, network.by_name[step.layer])
        for step in _steps(body)
        if step.share and sums_bytes(network, network.by_name[step.layer])
    }
    stream = stream_of(body)
    if stream is None:
        steps = _steps(body)
        spans = {root: _span(network, views, steps, members) for root, members in inner.items()}
        found = {root: kept(network, root, cuts[root], tuple(cuts[root]), spans[root]) for root in inner}
        return Stretch(way, body, found, sums, len(steps), {})
    trace = Trace(network, views, stream)
    found = {root: _rows_of(trace, root, members, cuts[root]) for root, members in inner.items()}
    shares = {
        (x, y): Distance(below=lag, above=network.tensors[x].bytes)
        for (x, y), lag in trace.lags.items()
        if x not in inner and y not in inner and x != y and not way.tiles
    }
    return Stretch(way, body, found, sums, len(stream.units), shares)


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
    width = trace.flow.stream.units[unit].width
    if width and all(is_aligned(network, x, trace.views.places[x], (ROWS, COLUMNS)) for x in members):
        sizes[COLUMNS], tiled = width, tuple(dict.fromkeys((*tiled, COLUMNS)))
    return kept(network, root, sizes, tiled, (unit, unit))


def _tile_sizes(
    network: Network, views: Views, body: Sequence[Stream | Tiles | Step], inner: Mapping[str, Sequence[str]]
) -> Mapping[str, Mapping[int, int]]:
    """For each root inside: the most indices along each axis that a tile holds of it."""
    found: dict[str, dict[int, int]] = {root: {} for root in inner}
    item: object = body[0]
    while isinstance(item, Tiles):
        parts = Tiling(network, item).intervals
        for root, members in inner.items():
            axis = item.axis % len(network.tensors[root].shape)
            found[root][axis] = _extent(network, views, root, members, axis, parts)
        item = item.body[0]
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


def stream_of(body: Sequence[Stream | Tiles | Step]) -> Stream | None:
    """What runs row by row in a body, inside of all tiles."""
    item: object = body[0]
    while isinstance(item, Tiles):
        item = item.body[0]
    return item if isinstance(item, Stream) else None


def _steps(body: Sequence[Stream | Tiles | Step]) -> tuple[Step, ...]:
    return tuple(step for item in body for step in ((item,) if isinstance(item, Step) else item.steps))


def _span(network: Network, views: Views, steps: Sequence[Step], members: Sequence[str]) -> tuple[int, int]:
    """The first and last of the steps that touch a root."""
    touching = []
    for at, step in enumerate(steps):
        layer = network.by_name[step.layer]
        if layer.output in members or any(name in members for name in layer.inputs):
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
