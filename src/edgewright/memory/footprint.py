"""The exact memory that fused layers need inside their stage, from a trace of their steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from ..errors import InputError
from ..network import Interval, Network, Shape
from ..program import COLUMNS, ROWS, FusedLayers, FusionSchedule, Tiling, View, sums_bytes
from .overlap import Distance
from .row_windows import RowWindows
from .views import Subview, Views, is_aligned


@dataclass(frozen=True)
class LocalBuffer:
    """The part of a root tensor kept inside a stage: a rolling window of rows, the current tile, or all of it."""

    shape: Shape  # number of indices along each axis
    bytes: int  # for each lane
    rolls: bool = False  # rows: index i is stored at i mod n
    tiled: tuple[int, ...] = ()  # axes along which only the current tile is kept
    calls: tuple[int, int] | None = None  # first and last call that needs it; None for all


@dataclass(frozen=True)
class Footprint:
    """The memory that a schedule needs for itself, and when."""

    schedule: FusionSchedule
    locals: Mapping[str, LocalBuffer]  # by root
    sums: Mapping[str, int]  # bytes of running sums, by layer
    calls: int  # number of layers or chains whose memory needs differ
    shares: Mapping[
        tuple[str, str], Distance
    ]  # (X, Y): distance at which output Y may overlap input X, which dies here
    # (X, Y): bytes of Y written while window X is needed; later bytes may overlap it.
    tails: Mapping[tuple[str, str], int] = field(default_factory=dict)


def footprint(network: Network, views: Views, schedule: FusionSchedule) -> Footprint:
    """Traces the layers as one stage; raises an error if the schedule does not suit them."""
    fused = FusedLayers(network, schedule, views.free)
    inner = inner_roots(network, views, schedule.layers)
    cuts = _tile_sizes(views, fused, inner)
    sizes = {name: sums_bytes(network, network.by_name[name]) for name in fused.partial}
    sums = {name: size for name, size in sizes.items() if size}
    if not schedule.streamed:
        # Lanes are not synchronised: one may be at the last layer while another is at the first.
        spans = {
            root: None if schedule.lanes > 1 else _span(network, schedule.layers, members)
            for root, members in inner.items()
        }
        kept = {root: _local(network, root, cuts[root], tuple(cuts[root]), spans[root]) for root in inner}
        return Footprint(schedule, kept, sums, len(schedule.layers), {})
    windows = RowWindows(views, fused)
    kept = {root: _rows_of(windows, root, members, cuts[root]) for root, members in inner.items()}
    lags = band_lags(views, fused) if schedule.is_banded else {} if schedule.splits else windows.lags
    shares = {
        (x, y): Distance(below=lag, above=network.tensors[x].bytes)
        for (x, y), lag in lags.items()
        if x not in inner and y not in inner and x != y
    }
    if schedule.lanes > 1:
        kept = {root: replace(local, calls=None) for root, local in kept.items()}
    tails = {
        (x, y): tail
        for (x, y), tail in windows.tails.items()
        if x in kept and kept[x].calls is None and y not in inner and not schedule.splits and schedule.lanes == 1
    }
    return Footprint(schedule, kept, sums, len(windows.trace.chains), shares, tails)


def band_lags(views: Views, fused: FusedLayers) -> Mapping[tuple[str, str], int]:
    """(X, Y): how many bytes before input X output Y must begin, so that a band of rows never overwrites what it or a
    later band reads. For single images that fill their buffers, on one core."""
    network, schedule, lags = fused.network, fused.schedule, dict[tuple[str, str], int]()
    if schedule.lanes > 1 or fused.partial:
        return {}
    bands = Tiling(fused, schedule.splits[0])
    made = {network.by_name[name].output: name for name in fused.sinks}
    read = {x for name in schedule.layers for x in network.activations(network.by_name[name])} - made.keys()
    row = {x: network.tensors[x].strides[ROWS] for x in (*read, *made) if _fills_images(network, views, x)}
    for x, y in product(read & row.keys(), made.keys() & row.keys()):
        needed, lag = network.tensors[x].bytes, 0  # the first byte that is still read
        for (begin, end), (_, stop) in zip(bands.reads(x)[::-1], bands.intervals[made[y]][::-1], strict=True):
            needed = min(needed, begin * row[x]) if end > begin else needed
            lag = max(lag, stop * row[y] - needed)
        lags[x, y] = lag
    return lags


def _fills_images(network: Network, views: Views, name: str) -> bool:
    """Whether the tensor is an image that fills its own buffer."""
    shape = network.tensors[name].shape
    return len(shape) == 4 and shape[0] == 1 and views.members[views.places[name].root] == (name,)


def _rows_of(windows: RowWindows, root: str, members: Sequence[str], cuts: Mapping[int, int]) -> LocalBuffer:
    """What is kept of a root when layers run row by row; a root passed on inside a chain is kept only while the chain
    runs."""
    network = windows.network
    sizes = dict(cuts)
    if len(network.tensors[root].shape) == 4:
        sizes[ROWS] = windows.rows_kept(root, members)
    chain = windows.passing.get(root)
    if chain is None:
        return _local(network, root, sizes, tuple(cuts), None)
    tiled = tuple(cuts)
    width = windows.trace.chains[chain].columns
    if width and all(is_aligned(network, x, windows.views.places[x], (ROWS, COLUMNS)) for x in members):
        sizes[COLUMNS], tiled = width, tuple(dict.fromkeys((*tiled, COLUMNS)))
    return _local(network, root, sizes, tiled, (chain, chain))


def _tile_sizes(
    views: Views, fused: FusedLayers, inner: Mapping[str, Sequence[str]]
) -> Mapping[str, Mapping[int, int]]:
    """For each inner root, the largest extent of a tile along each axis."""
    sizes: dict[str, dict[int, int]] = {root: {} for root in inner}
    for split in fused.schedule.splits[1 if fused.schedule.is_banded else 0 :]:
        parts = Tiling(fused, split).intervals
        for root, members in inner.items():
            axis = split.axis % len(fused.network.tensors[root].shape)
            extent = tile_extent(fused.network, views, members, axis, parts)
            if extent is None:
                raise InputError(f"tiles cannot cut '{root}' along axis {axis}: tensors that share its memory differ")
            sizes[root][axis] = extent
    return sizes


def tile_extent(
    network: Network, views: Views, members: Sequence[str], axis: int, parts: Mapping[str, tuple[Interval, ...]]
) -> int | None:
    """The largest extent of a tile of the root; None if its tensors are tiled differently."""
    cuts = {parts[name] for x in members if (name := network.producers[x].name) in parts}
    if len(cuts) != 1 or not all(is_aligned(network, x, views.places[x], (axis,)) for x in members):
        return None
    return max(max(0, b - a) for a, b in cuts.pop())


def _local(
    network: Network, root: str, sizes: Mapping[int, int], tiled: tuple[int, ...], calls: tuple[int, int] | None
) -> LocalBuffer:
    """The buffer for a root with these extents along some axes."""
    tensor = network.tensors[root]
    shape = tuple(min(sizes.get(axis, size), size) for axis, size in enumerate(tensor.shape))
    rolls = ROWS in sizes and ROWS not in tiled and shape[ROWS] < tensor.shape[ROWS]
    return LocalBuffer(shape, prod(shape) * tensor.dtype.bytes, rolls, tiled, calls)


def _span(network: Network, layers: Sequence[str], members: Sequence[str]) -> tuple[int, int]:
    """The first and last layer that touch a root."""
    touching = []
    for at, name in enumerate(layers):
        layer = network.by_name[name]
        if layer.output in members or any(x in members for x in layer.inputs):
            touching.append(at)
    return min(touching), max(touching)


def inner_roots(network: Network, views: Views, layers: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """The roots that only these layers write and read, with their tensors."""
    ours = set(layers)
    ends = (name for name in (*network.inputs, *network.outputs) if name not in network.constants)
    written = {views.places[network.by_name[name].output].root for name in layers}
    written -= {views.places[name].root for name in ends}

    def is_inner(tensor: str) -> bool:
        maker = network.producers.get(tensor)
        touching = (*network.readers[tensor], *((maker,) if maker else ()))
        return all(layer.name in ours or layer.name in views.free for layer in touching)

    members = views.members
    return {root: members[root] for root in sorted(written) if all(map(is_inner, members[root]))}


def view_of(network: Network, name: str, place: Subview, kept: LocalBuffer) -> View:
    """The tensor's place in the kept part of its root."""
    tensor, root = network.tensors[name], network.tensors[place.root]
    size = tensor.dtype.bytes
    dense = [size * prod(kept.shape[axis + 1 :]) for axis in range(len(kept.shape))]
    new = {old: now for n, old, now in zip(root.shape, root.strides, dense, strict=True) if n > 1}
    strides = tuple(new.get(s, s) if n > 1 else s for n, s in zip(tensor.shape, place.strides, strict=True))
    window = (ROWS, kept.shape[ROWS]) if kept.rolls else None
    behind = len(root.shape) - len(tensor.shape)
    tiled = tuple(axis - behind for axis in kept.tiled if axis >= behind)
    return View(place.root, place.offset, strides, window, tiled)
