"""Layers that compute in the memory of an input: depthwise layers channel by channel, element-wise layers in a fusion
group."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..network import Layer, Network
from ..network.operators import Grain
from ..program import COLUMNS, ROWS, FusionSchedule, rows_needed
from ..program.steps import is_in_step
from .overlap import distance, plane_scratch
from .techniques import Techniques
from .views import Views


def with_planes(
    network: Network, views: Views, techniques: Techniques, alignment: int, barred: Collection[str] = ()
) -> Views:
    """The views with depthwise layers in place, one channel plane after the other.

    This pays if a plane of scratch is smaller than the distance at which the output could overlap the input. `barred`
    tensors and pulled inputs are never complete in memory, so nothing can replace them.
    """
    if not techniques.planes:
        return views
    barred, outside = {*dict(techniques.pulled), *barred}, techniques.outside
    places = dict(views.places)
    planes: dict[str, int] = {}
    interface = {*network.inputs, *network.outputs}
    members = {root: set(names) for root, names in views.members.items()}
    for layer in network.layers:
        source, target = layer.inputs[0], layer.output
        scratch = None if source in network.constants else plane_scratch(network, layer, source, alignment)
        if scratch is None or source in barred or network.sole_reader(source) is not layer:
            continue
        if layer.name in techniques.no_overlap:
            continue
        root = places[source].root
        if members.get(root) != {source} or target not in members:
            continue  # other tensors are views of the input, or the output is a view
        if source in outside or not members[target].isdisjoint(outside):
            continue
        if source in interface and interface & members[target]:
            continue
        safe = distance(network, layer, source)
        if scratch >= min(safe.below, safe.above):
            continue
        planes[layer.name] = scratch
        for name in members.pop(target):
            places[name] = replace(places[name], root=root)
            members[root].add(name)
    return replace(views, places=places, planes=planes)


def with_rows_in_place(
    network: Network,
    views: Views,
    layers: Collection[str],
    tiled: Mapping[str, FusionSchedule] | None = None,
    streamed: Mapping[str, FusionSchedule] | None = None,
) -> Views:
    """The views with fused element-wise layers in place: a row is computed where it will be overwritten.

    Tensors that tiled layers (`tiled`, by layer) read from outside are not overwritten, since the next tile may read
    them again. Layers that run row by row (`streamed`, by layer) overwrite the input that has waited longest, even if
    others have read it too: a skip connection and its sum share one window of rows.
    """
    apart, by_rows = tiled or {}, streamed or {}
    places = dict(views.places)
    alone = {names[0] for names in views.members.values() if len(names) == 1}
    interface = {*network.inputs, *network.outputs}
    for layer in reversed(network.layers):
        if layer.name not in layers or layer.op.grain is not Grain.ELEMENT:
            continue
        group = by_rows[layer.name].layers if layer.name in by_rows else ()
        waiting = [x for x in waiting_sources(network, layer) if _is_within(network, x, group)] if group else []
        for source in dict.fromkeys((*waiting, *network.activations(layer))):
            producer = network.producers.get(source)
            inside = producer is not None and producer.name in layers and source not in interface
            inside = inside and producer is not None and apart.get(layer.name) is apart.get(producer.name)
            is_last = source in waiting or network.sole_reader(source) is layer
            if inside and source in alone and is_last and _replaces(network, layer, source):
                places[source] = places[layer.output]
                alone -= {source, layer.output}
                break
    return replace(views, places=places)


def _is_within(network: Network, tensor: str, layers: Collection[str]) -> bool:
    """Whether only these layers write and read the tensor."""
    producer, readers = network.producers.get(tensor), network.readers[tensor]
    return producer is not None and all(each.name in layers for each in (producer, *readers))


def waiting_sources(network: Network, layer: Layer) -> list[str]:
    """The inputs whose rows an element-wise layer may overwrite when all layers run row by row, the longest-waiting
    first.

    When the layer writes a row, all other readers of such an input must be past that row.
    """
    if layer.op.grain is not Grain.ELEMENT or len(network.tensors[layer.output].shape) != 4:
        return []
    sources = [x for x in network.activations(layer) if x in network.producers and _replaces(network, layer, x)]
    depth: dict[str, int] = {}  # number of layers before each tensor; the longest path arrives last
    for each in network.layers:
        depth[each.output] = 1 + max((depth.get(x, 0) for x in network.activations(each)), default=0)
    return sorted((x for x in sources if _comes_last(network, layer, x)), key=depth.__getitem__)


def _comes_last(network: Network, layer: Layer, source: str) -> bool:
    """Whether no other reader still needs row i of the source when the layer writes row i of its output."""
    height = network.tensors[layer.output].shape[ROWS]
    done = {layer.output: [*range(1, height + 1)]}  # rows of each tensor that exist by then
    before = network.layers[: network.layers.index(layer) + 1]
    for each in reversed(before[before.index(network.producers[source]) + 1 :]):
        for name in network.activations(each) if each.output in done else ():
            rows = rows_needed(network, each, name)
            if rows is None:
                return False
            stops = [rows[stop - 1][1] if stop else 0 for stop in done[each.output]]
            done[name] = [*map(max, stops, done.get(name, stops))]
    for reader in network.readers[source]:
        rows = rows_needed(network, reader, source)
        if reader is layer:
            continue
        if rows is None or reader.output not in done:
            return False
        there = done[reader.output]
        if any(stop < len(rows) and rows[stop][0] <= row for row, stop in enumerate(there)):
            return False
        # A reader may run in step with the layer, a few columns behind.
        is_ahead = any(stop > row + 1 for row, stop in enumerate(there))
        if not is_ahead and not is_in_step(network, reader, source, COLUMNS):
            return False
    return True


def _replaces(network: Network, layer: Layer, source: str) -> bool:
    """Whether each output element can overwrite the input element at the same index."""
    x, y = network.tensors[source], network.tensors[layer.output]
    if x.shape != y.shape or x.dtype is not y.dtype:
        return False
    safe = distance(network, layer, source)
    return max(safe.below, safe.above) <= 0
