"""Whether layers can run as a schedule says; if not, which layer prevents it and why.

Plans by hand and plans from files are held against `problems`; searches ask the same questions layer by layer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import combinations, pairwise

from ..errors import InputError
from ..network import Interval, Layer, Network, Shape
from .fusion import CHANNELS, COLUMNS, FusedLayers, FusionSchedule, Split
from .steps import MOST_ROWS, ROWS, rows_needed, summed_axes
from .tiling import Tiling

AXES = {ROWS: "rows", COLUMNS: "columns", CHANNELS: "channels"}


def problems(
    network: Network, schedule: FusionSchedule, free: Collection[str] = (), pulled: Collection[str] = ()
) -> Iterator[str]:
    """The reasons why the layers cannot run as scheduled; empty if they can. After a first reason, others may follow
    from it.

    Layers in `free` execute nothing, inputs in `pulled` come row by row.
    """
    fused = FusedLayers(network, schedule, free)
    checks = (
        _layers(fused),
        _enclosed(fused),
        streaming(fused, pulled),
        _axes(fused, pulled),
        _tiles(fused),
        _lanes(fused),
    )
    for check in checks:
        for problem in check:
            yield problem
            return


def known_layers(network: Network, names: Collection[str]) -> None:
    """Raises an error that names the first layer which the network does not have."""
    for name in names:
        if name not in network.by_name:
            near = get_close_matches(name, network.by_name, 1)
            hint = f"did you mean '{near[0]}'?" if near else "`edgewright inspect` lists the layers"
            raise InputError(f"network '{network.name}' has no layer '{name}': {hint}")


def can_stream(network: Network, layer: Layer, free: Collection[str]) -> bool:
    """Whether the layer can produce its rows from top to bottom while its inputs arrive row by row."""
    shape = network.tensors[layer.output].shape
    if len(shape) != 4 or shape[0] != 1 or 0 in shape:
        return False
    return all(_comes_by_rows(network, layer, name, free) for name in network.activations(layer))


def can_sum(network: Network, layer: Layer, axis: int = ROWS) -> bool:
    """Whether the layer can consume its input part by part along the axis, keeping only running sums."""
    shape = network.tensors[layer.inputs[0]].shape
    if axis == CHANNELS:
        return len(shape) - 1 in summed_axes(network, layer)
    is_image = len(shape) == 4 and shape[0] == 1 and shape[axis] <= MOST_ROWS
    return is_image and axis in summed_axes(network, layer)


def can_split(shape: Shape, axis: int) -> bool:
    """Whether a tensor has the axis: rows and columns are those of an image."""
    return bool(shape) if axis == CHANNELS else len(shape) == 4


def is_cut(tiling: Tiling, layer: str) -> bool:
    """Whether the tiles compute different parts of a layer, and not the whole layer each time."""
    size = tiling.size(layer)
    return size == 1 or set(tiling.intervals[layer]) != {(0, size)}


def _comes_by_rows(network: Network, layer: Layer, name: str, free: Collection[str]) -> bool:
    if rows_needed(network, layer, name) is None:
        return False
    producer = network.producers.get(name)
    if producer is None or producer.name not in free:
        return True
    return all(_comes_by_rows(network, producer, source, free) for source in network.activations(producer))


def _layers(fused: FusedLayers) -> Iterator[str]:
    """Layers that appear twice, or before a layer that they read."""
    schedule, names = fused.schedule, fused.schedule.layers
    if len(set(names)) < len(names):
        yield f"'{schedule.name}' names a layer twice"
    made: set[str] = set()
    for name in reversed(names):
        layer = fused.network.by_name[name]
        if made & set(layer.inputs):
            yield f"layer '{name}' of '{schedule.name}' comes before a layer that it reads"
        made |= {layer.output}
    if strangers := dict((*schedule.rows, *schedule.columns)).keys() - (names if schedule.streamed else ()):
        yield f"layer '{min(strangers)}' does not run row by row in '{schedule.name}', so it takes no step size"


def _enclosed(fused: FusedLayers) -> Iterator[str]:
    """Layers outside the group that read one layer of it and feed another: nothing may run in between."""
    network = fused.network
    inside = set(fused.schedule.layers)
    places = [network.position[name] for name in inside]
    between: dict[str, bool] = {}  # whether a tensor was made outside of what the layers compute
    for layer in network.layers[min(places, default=0) : max(places, default=0) + 1]:
        reads = network.activations(layer)
        if layer.name in inside:
            if any(between.get(name) for name in reads):
                yield (
                    f"'{fused.schedule.name}' cannot run as one stage: '{layer.name}' depends on layers outside "
                    "it that read from it"
                )
            between[layer.output] = False
        else:
            made = [network.producers[name].name for name in reads if name in network.producers]
            comes = any(name in inside for name in made)
            is_between = any(between.get(name) for name in reads) or (comes and layer.name not in fused.free)
            between[layer.output] = is_between
            if comes and layer.name in fused.free:
                inside.add(layer.name)


def streaming(fused: FusedLayers, pulled: Collection[str] = ()) -> Iterator[str]:
    """Layers that cannot run row by row with the others."""
    network, names = fused.network, fused.schedule.layers
    if not fused.schedule.streamed:
        return
    if len(names) == 1 and set(network.by_name[names[0]].inputs) & set(pulled):
        return  # it asks the caller alone for rows; that they come in order has been checked
    for name in names:
        layer = network.by_name[name]
        if can_stream(network, layer, fused.free):
            continue
        if not can_sum(network, layer):
            yield f"layer '{name}' cannot run row by row: it must process one image and read it from top to bottom"
        elif name not in fused.sinks or any(reader.name in names for reader in network.readers[layer.output]):
            yield f"layer '{name}' sums over rows: its readers must wait for the last row, so it can only come last"
        elif fused.schedule.splits and name not in fused.partial:
            yield (f"layer '{name}' sums over rows and channels: cut it along channels with its producers")


def _axes(fused: FusedLayers, pulled: Collection[str]) -> Iterator[str]:
    """Axes that are cut twice, and tiles that contradict inputs whose rows arrive one by one, only once."""
    schedule, axes = fused.schedule, fused.schedule.axes
    if len(set(axes)) < len(axes) or not set(axes) <= set(AXES):
        yield f"tiles of '{schedule.name}': give each axis once, out of {sorted(AXES)} (rows, columns, channels)"
    if schedule.streamed and ROWS in axes:
        yield from _bands(fused)
    if COLUMNS in axes and any(width for _, width in schedule.columns):
        yield f"tiles of '{schedule.name}': a group that is cut along columns cannot also run in groups of columns"
    inputs = {name for layer in schedule.layers for name in fused.network.by_name[layer].inputs}
    if axes and inputs & set(pulled):
        yield f"'{schedule.name}' cannot run in tiles: each tile needs rows of its input, which arrive only once"
    if not schedule.streamed and inputs & set(pulled):
        yield f"'{schedule.name}' must run row by row: its input arrives row by row, and only a few rows are kept"


def _bands(fused: FusedLayers) -> Iterator[str]:
    """Bands of rows that are not the outermost tiles, or have steps of several rows, or sinks of different heights."""
    schedule = fused.schedule
    if not schedule.is_banded or schedule.rows:
        yield f"tiles of '{schedule.name}': bands of rows must be the outermost tiles, with steps of one row"
    elif len({fused.driven(name, ROWS)[ROWS] for name in fused.sinks}) > 1:
        yield f"tiles of '{schedule.name}': in bands of rows, all last layers must have the same number of rows"


def _tiles(fused: FusedLayers) -> Iterator[str]:
    for split in fused.schedule.splits:
        what = AXES[split.axis]
        for name in fused.schedule.layers:
            shape = fused.driven(name, split.axis)
            if not can_split(shape, split.axis):
                why = "its output is no image" if shape or split.axis != CHANNELS else "its output is a single number"
                yield f"layer '{name}' cannot be cut along {what}: {why}"
                return
        try:
            yield from _parts(fused, split, what)
        except LookupError:
            yield f"'{fused.schedule.name}' cannot be cut along {what}: some layers inside have none"


def _parts(fused: FusedLayers, split: Split, what: str) -> Iterator[str]:
    """Splits whose parts do not make up the sink, or whose every part needs the whole of some layer."""
    tiling, name = Tiling(fused, split), fused.schedule.name
    size, ends = tiling.size(fused.sinks[0]), split.ends
    if not ends or not all(a < b for a, b in pairwise((0, *ends))) or ends[-1] != size:
        yield f"tiles of '{name}' end at {list(ends)}, but they must rise to {size}, its number of {what}"
        return
    for cut in tiling.intervals if len(ends) > 1 else ():
        is_free_to = cut in fused.sinks and split.axis != CHANNELS  # a halo may be all there is; FDT has none
        if is_free_to or is_cut(tiling, cut):
            continue
        layer = fused.network.by_name[cut]
        reader = next((x for x in fused.network.readers[layer.output] if x.name in tiling.intervals), layer)
        yield (
            f"tiles of '{name}' along {what} reach through layer '{reader.name}' ({type(reader.op).__name__}), "
            f"which reads all {what} of '{layer.output}' for each part: cut there instead"
        )


def _lanes(fused: FusedLayers) -> Iterator[str]:
    """Lanes inside another loop, and lanes that would compute the same element or add to the same sum."""
    schedule, name = fused.schedule, fused.schedule.name
    if any(split.lanes < 1 for split in schedule.splits):
        yield f"'{name}' has no lanes"
    if any(split.lanes > 1 for split in schedule.splits[1:]):
        yield f"lanes of '{name}' can share only its outermost loop over tiles"
    if schedule.lanes == 1:
        return
    split = schedule.splits[0]
    if split.lanes > len(split.ends):
        yield f"'{name}' runs in {split.lanes} lanes, but has only {len(split.ends)} parts"
    elif fused.partial:
        yield f"layer '{fused.partial[0]}' sums over the parts of '{name}', so lanes would add to the same sums"
    else:
        tiling = Tiling(fused, split)
        for sink in fused.sinks:
            if _meet(tiling.intervals[sink], split.lanes):
                yield f"lanes of '{name}' would both compute the same part of layer '{sink}', which other layers read"


def _meet(parts: Sequence[Interval], lanes: int) -> bool:
    """Whether intervals of two different lanes overlap; the intervals ascend from part to part."""
    numbered = [(part, at % lanes) for at, part in enumerate(parts) if part[0] < part[1]]
    return any(one != other and max(a[0], b[0]) < min(a[1], b[1]) for (a, one), (b, other) in combinations(numbered, 2))
