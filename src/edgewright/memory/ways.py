"""How layers that stand side by side run as one stage: row by row, tile by tile, or rows inside of tiles."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..network import Layer, Network, Region
from ..program import ROWS, Step, Stream, Tiles, Unit, restricted, rows_needed, summed_axes

CHANNELS = -1
COLUMNS = ROWS + 1
Cut = tuple[int, tuple[int, ...]]  # an axis, and where each part of the last layers ends along it


@dataclass(frozen=True)
class Way:
    """Layers that run together. Without tiles they go row by row (phases, M 4).

    Tiles along rows and columns are FFMT, along channels FDT (S 4.2); inside a tile, layers run one after the other or
    row by row. `rows` and `widths` are what some layers do in one step, where that is not one row of full width.
    """

    layers: tuple[str, ...]
    tiles: tuple[Cut, ...] = ()  # outermost first
    by_rows: bool = True
    rows: tuple[tuple[str, int], ...] = ()
    widths: tuple[tuple[str, int], ...] = ()  # of units, by the name of their last layer; 0 for whole rows

    @property
    def name(self) -> str:
        first, last = self.layers[0], self.layers[-1]
        return first if first == last else f"{first} .. {last}"


def even_ends(size: int, parts: int, unit: int = 1) -> tuple[int, ...]:
    """Where each of so many parts ends, each a multiple of `unit` but for the last, as even as can be."""
    blocks = -(-size // unit)
    parts = min(parts, blocks)
    large, small = blocks % parts, blocks // parts
    ends, at = [], 0
    for index in range(parts):
        at += (small + (index < large)) * unit
        ends.append(min(at, size))
    return tuple(ends)


def body_of(network: Network, way: Way, free: Collection[str]) -> tuple[Stream | Tiles | Step, ...]:
    """The way as items of a program; layers must be listed so that producers come first."""
    last = sinks(network, way.layers, free)
    summing = summing_layers(network, way, free)
    steps = [_first(network, way, name, name in summing) for name in way.layers]
    body: tuple[Stream | Tiles | Step, ...]
    body = (Stream(_units(network, way, steps, last), last),) if way.by_rows else tuple(steps)
    for axis, ends in reversed(way.tiles):
        body = (Tiles(axis, ends, body, last),)
    return body


def summing_layers(network: Network, way: Way, free: Collection[str]) -> set[str]:
    """The layers that take in what they read share by share; the others compute parts of their output."""
    read = read_inside(network, way.layers, free)
    axes = {axis for axis, _ in way.tiles}
    last = sinks(network, way.layers, free)
    return {name for name in last if name not in read and sums_up(network, network.by_name[name], way, axes, free)}


def sums_up(network: Network, layer: Layer, way: Way, axes: Collection[int], free: Collection[str]) -> bool:
    """Whether the layer, one of the last, takes in what it reads share by share and keeps running sums of it."""
    rank = len(network.tensors[layer.inputs[0]].shape)
    summed = summed_axes(network, layer)
    if CHANNELS in axes and rank - 1 in summed:
        return _is_made_by(network, layer.inputs[0], {*way.layers, *free} - {layer.name}, free)
    along = {axis for axis in (*axes, *((ROWS,) if way.by_rows else ())) if axis != CHANNELS}
    return bool(along & set(summed)) and rank == 4


def read_inside(network: Network, layers: Iterable[str], free: Collection[str]) -> set[str]:
    """The layers whose output others of these layers read, directly or through layers that execute nothing."""
    inside = set(layers)
    sources: dict[str, tuple[str, ...]] = {}  # of each tensor: the layers of the stretch that it is read from
    found: set[str] = set()
    for layer in network.layers:
        made = tuple(dict.fromkeys(name for x in layer.inputs for name in sources.get(x, ())))
        if layer.name in inside:
            found.update(made)
            sources[layer.output] = (layer.name,)
        elif layer.name in free and made:
            sources[layer.output] = made
    return found


def _is_made_by(network: Network, name: str, layers: Collection[str], free: Collection[str]) -> bool:
    producer = network.producers.get(name)
    if producer is None:
        return False
    if producer.name in free:
        return any(_is_made_by(network, source, layers, free) for source in network.activations(producer))
    return producer.name in layers


def sinks(network: Network, layers: Iterable[str], free: Collection[str]) -> tuple[str, ...]:
    """The layers whose output somebody outside reads."""
    inside = {*layers, *free}

    def is_read_outside(tensor: str) -> bool:
        if tensor in network.outputs or not network.readers[tensor]:
            return True
        return any(
            reader.name not in inside or (reader.name in free and is_read_outside(reader.output))
            for reader in network.readers[tensor]
        )

    return tuple(name for name in layers if is_read_outside(network.by_name[name].output))


def _first(network: Network, way: Way, name: str, is_summing: bool) -> Step:
    """The first step of a layer: its first rows, or all of it."""
    layer = network.by_name[name]
    whole = Region.whole(network.tensors[layer.output].shape)
    share = Region.whole(network.shapes(layer)[0]) if is_summing else None
    if not way.by_rows:
        return Step(name, whole, share=share)
    step = Step(name, whole, share=share)
    height = _rows_region(network, step).shape[ROWS]
    return restricted(network, step, ROWS, (0, min(dict(way.rows).get(name, 1), height)))


def _units(network: Network, way: Way, steps: Sequence[Step], last: Sequence[str]) -> tuple[Unit, ...]:
    """The steps joined to units: who reads a pixel of a layer alone, and nothing else of it, runs along with it."""
    ends: dict[str, list[Step]] = {}  # units by what their last layer writes
    depth: dict[str, int] = {}  # layers that a row of each tensor has come through
    for step in steps:
        layer = network.by_name[step.layer]
        fitting = [name for name in network.activations(layer) if name in ends and _hands_on(network, name, step)]
        fitting = [name for name in fitting if ends[name][-1].layer not in last]
        depth[layer.output] = 1 + max((depth.get(name, 0) for name in network.activations(layer)), default=0)
        # What has come the longest way is there last; what waits for it is better computed before.
        unit = ends.pop(max(fitting, key=lambda name: depth[name])) if fitting else []
        ends[layer.output] = [*unit, step]
    widths = dict(way.widths)
    units = [Unit(_in_step(network, unit), widths.get(unit[-1].layer, 0)) for unit in ends.values()]
    order = {name: at for at, name in enumerate(way.layers)}
    return tuple(sorted(units, key=lambda unit: order[unit.last.layer]))


def _in_step(network: Network, unit: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with as many rows each as the one that wants most."""
    most = max(_rows_region(network, step).shape[ROWS] for step in unit)
    return tuple(restricted(network, step, ROWS, (0, most)) for step in unit)


def _rows_region(network: Network, step: Step) -> Region:
    sums_rows = step.share is not None and ROWS in summed_axes(network, network.by_name[step.layer])
    return step.share if sums_rows and step.share else step.region


def _hands_on(network: Network, name: str, reading: Step) -> bool:
    """Whether the step's layer alone reads the tensor, and for each pixel just the one at the same place."""
    if network.sole_reader(name) is not network.by_name[reading.layer]:
        return False
    return all(_is_in_step(network, reading, name, axis) for axis in (ROWS, COLUMNS))


def _is_in_step(network: Network, reading: Step, name: str, axis: int) -> bool:
    """Whether index i along the axis is all that is read for index i; what is summed up is taken in as it comes."""
    reader = network.by_name[reading.layer]
    if reading.share is not None and name == reader.inputs[0] and axis in summed_axes(network, reader):
        return True
    rows = rows_needed(network, reader, name, axis)
    return rows is not None and all(row == (i, i + 1) for i, row in enumerate(rows))
