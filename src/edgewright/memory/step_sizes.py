"""How much a chain of layers computes in a step: few columns if memory is short, many rows if that is faster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..network import Layer, Network
from ..program import COLUMNS, ROWS, FusedLayers, FusionSchedule, PixelChain, RowTrace
from .row_windows import passing_roots
from .views import Views

HEAVY = 128 * 1024  # bytes of weights that should not be read again for each row
PIXELS = 28  # per step, so that reading weights pays
NARROW = 4  # minimum columns that a chain computes at a time


def widen_steps(network: Network, views: Views, schedule: FusionSchedule) -> Iterator[FusionSchedule]:
    """Schedules with larger steps, the fastest first: whole rows, and several rows for heavy layers.

    Rows set by the schedule are kept.
    """
    heavy_rows = _heavy_rows(network, views, schedule) if schedule.streamed and not schedule.is_banded else ()
    heavy = tuple(entry for entry in heavy_rows if entry[0] not in dict(schedule.rows))
    rows = (*schedule.rows, *heavy)
    is_narrow = any(width for _, width in schedule.columns)
    if heavy:
        yield replace(schedule, columns=(), rows=rows)
    if is_narrow:
        yield replace(schedule, columns=())
        if heavy:
            yield replace(schedule, rows=rows)


def _heavy_rows(network: Network, views: Views, schedule: FusionSchedule) -> tuple[tuple[str, int], ...]:
    """The layers that run much faster with several rows in a step: many weights, few pixels."""
    trace = RowTrace(FusedLayers(network, schedule, views.free))
    heavy = []
    for chain in trace.chains:
        layers = [network.by_name[name] for name in chain.layers]
        # Only a few rows of a network input are in memory at a time.
        reads_image = any(x in network.inputs for layer in layers for x in layer.inputs)
        width = _across(trace, chain)
        heaviest = max(layers, key=lambda layer: weights_read(network, layer))
        if weights_read(network, heaviest) >= HEAVY and width < PIXELS and not reads_image:
            heavy.append((heaviest.name, -(-PIXELS // width)))
    return tuple(heavy)


def _across(trace: RowTrace, chain: PixelChain) -> int:
    """The columns of a chain."""
    first = trace.fused.wholes[chain.layers[0]]
    return (first.partial or first.region).shape[COLUMNS]


def narrow_steps(network: Network, views: Views, schedule: FusionSchedule) -> FusionSchedule:
    """The schedule with few columns at a time if whole rows between layers of a chain would need more memory.

    Chains that the schedule already divides are kept.
    """
    if not schedule.streamed or COLUMNS in schedule.axes:
        return schedule
    trace = RowTrace(FusedLayers(network, schedule, views.free))
    pixels = pixel_bytes(views, trace)
    widths = [_across(trace, chain) for chain in trace.chains]
    room = max(size * min(width, NARROW) for size, width in zip(pixels, widths, strict=True))
    schedules = [
        (chain.last, _even(width, room // size))
        for chain, size, width in zip(trace.chains, pixels, widths, strict=True)
        if size * width > room and chain.last not in dict(schedule.columns)
    ]
    return replace(schedule, columns=(*schedule.columns, *schedules))


def _even(width: int, most: int) -> int:
    """Widths of the parts of a row: as few parts as `most` allows, of similar width, because single columns are
    expensive.

    >>> _even(5, 4)
    3
    """
    return -(-width // -(-width // most))


def pixel_bytes(views: Views, trace: RowTrace) -> list[int]:
    """For each chain the bytes of a pixel of everything passed on inside it, over all rows of a step."""
    sizes = [0] * len(trace.chains)
    for root, chain in passing_roots(views, trace).items():
        tensor = trace.network.tensors[root]
        if len(tensor.shape) == 4:
            sizes[chain] += trace.chains[chain].rows * tensor.bytes // (tensor.shape[ROWS] * tensor.shape[COLUMNS])
    return sizes


def weights_read(network: Network, layer: Layer) -> int:
    """Bytes of constants that each step of the layer reads."""
    return sum(network.tensors[name].bytes for name in layer.inputs if name in network.constants)
