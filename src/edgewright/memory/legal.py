"""Whether layers can run the way that was asked for; if not, which one stands in the way and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import get_close_matches

from ..errors import InputError
from ..network import Network
from ..program import ROWS, Step, Tiles, Tiling
from .stretch import accumulates, streamable
from .ways import CHANNELS, COLUMNS, Way, body_of, sinks, summing_layers

AXES = {ROWS: "rows", COLUMNS: "columns", CHANNELS: "channels"}


def known_layers(network: Network, names: Collection[str]) -> None:
    """An error that names the first layer which the network does not have."""
    for name in names:
        if name not in network.by_name:
            near = get_close_matches(name, network.by_name, 1)
            hint = f"did you mean '{near[0]}'?" if near else "`edgewright inspect` lists the layers"
            raise InputError(f"network '{network.name}' has no layer '{name}': {hint}")


def checked_ways(
    network: Network, ways: Sequence[Way], free: Collection[str], pulled: Collection[str]
) -> list[Way]:
    """The ways, less the layers that execute nothing; an error where one cannot be carried out."""
    found: list[Way] = []
    taken: set[str] = set()
    for way in ways:
        known_layers(network, way.layers)
        names = tuple(
            layer.name for layer in network.layers if layer.name in way.layers and layer.name not in free
        )
        if twice := taken & set(names):
            raise InputError(f"layer '{min(twice)}' is asked to run in two ways at once")
        taken |= set(names)
        if names:
            found.append(replace(way, layers=names))
            _check(network, found[-1], free, pulled)
    return found


def _check(network: Network, way: Way, free: Collection[str], pulled: Collection[str]) -> None:
    _check_enclosed(network, way, free)
    if way.by_rows:
        check_rows(network, way, free)
    axes = [axis for axis, _ in way.tiles]
    if len(set(axes)) < len(axes) or not set(axes) <= set(AXES):
        raise InputError(f"tiles of '{way.name}': each axis once, out of {sorted(AXES)} (rows, columns, channels)")
    if way.by_rows and ROWS in axes:
        raise InputError(f"tiles of '{way.name}': what runs row by row is not cut along rows as well")
    inputs = {name for layer in way.layers for name in network.by_name[layer].inputs}
    if way.tiles and inputs & set(pulled):
        raise InputError(
            f"'{way.name}' cannot run in tiles: rows of its input come once, and each tile needs them"
        )
    if way.tiles:
        _check_tiles(network, way, free)


def _check_enclosed(network: Network, way: Way, free: Collection[str]) -> None:
    """Nothing outside may lie between layers of the stretch."""
    inside = set(way.layers)
    between: dict[str, bool] = {}  # whether a tensor was made outside of what the stretch computes
    for layer in network.layers:
        reads = network.activations(layer)
        if layer.name in inside:
            if any(between.get(name) for name in reads):
                raise InputError(
                    f"'{way.name}' cannot run as one stage: '{layer.name}' reads what layers outside compute from it"
                )
            between[layer.output] = False
        else:
            made = [network.producers[name].name for name in reads if name in network.producers]
            comes = any(name in inside for name in made)
            is_between = any(between.get(name) for name in reads) or (comes and layer.name not in free)
            between[layer.output] = is_between
            if comes and layer.name in free:
                inside.add(layer.name)


def check_rows(network: Network, way: Way, free: Collection[str]) -> None:
    """An error that names the first layer which cannot run row by row with the others."""
    last = sinks(network, way.layers, free)
    for name in way.layers:
        layer = network.by_name[name]
        if streamable(network, layer, free):
            continue
        if not accumulates(network, layer):
            raise InputError(
                f"layer '{name}' cannot run row by row: that takes one image, read from top to bottom"
            )
        if name not in last or any(reader.name in way.layers for reader in network.readers[layer.output]):
            raise InputError(f"layer '{name}' sums up rows: what reads it must wait, so it can only come last")


def _check_tiles(network: Network, way: Way, free: Collection[str]) -> None:
    summing = summing_layers(network, way, free)
    for name in way.layers if way.by_rows else ():
        if name not in summing and not streamable(network, network.by_name[name], free):
            raise InputError(
                f"layer '{name}' sums up rows and channels: along channels it can be cut with the layers that make them"
            )
    item: object = body_of(network, way, free)[0]
    while isinstance(item, Tiles):
        _check_axis(network, way, item)
        item = item.body[0]


def _check_axis(network: Network, way: Way, tiles: Tiles) -> None:
    what = AXES[tiles.axis]
    for step in tiles.steps:
        layer = network.by_name[step.layer]
        tensor = network.tensors[layer.inputs[0] if step.share else layer.output]
        if tiles.axis != CHANNELS and len(tensor.shape) != 4:
            raise InputError(f"layer '{layer.name}' cannot be cut along {what}: its output is no image")
        if not tensor.shape:
            raise InputError(f"layer '{layer.name}' cannot be cut along {what}: its output is a single number")
    size = Tiling(network, tiles).driven_size
    ends = tiles.ends
    rising = all(a < b for a, b in zip((0, *ends), ends, strict=False))
    if not ends or not rising or ends[-1] != size:
        raise InputError(
            f"tiles of '{way.name}' end at {list(ends)}, but its {size} {what} want rising ends up to {size}"
        )
    _check_parts(network, way, tiles, what)


def _check_parts(network: Network, way: Way, tiles: Tiles, what: str) -> None:
    """No layer may be wanted whole by every part of the one that reads it."""
    if len(tiles.ends) == 1:
        return
    parts = Tiling(network, tiles).intervals
    steps: dict[str, Step] = {step.layer: step for step in tiles.steps}
    for name, cuts in parts.items():
        layer = network.by_name[name]
        size = network.tensors[layer.inputs[0] if steps[name].share else layer.output].shape[tiles.axis]
        is_free_to = name in tiles.sinks and tiles.axis != CHANNELS  # a halo may be all there is; FDT has none
        if is_free_to or size == 1 or set(cuts) != {(0, size)}:
            continue
        readers = [reader for reader in network.readers[layer.output] if reader.name in parts]
        reader = readers[0] if readers else layer
        raise InputError(
            f"tiles of '{way.name}' along {what} reach through layer '{reader.name}' ({type(reader.op).__name__}), "
            f"which reads all {what} of '{layer.output}' for each part: cut there instead"
        )
