"""Whether a plan that was read from a file holds together: numbers are numbers, names exist, ranks agree.

Files are untrusted. What the plan computes is left to the interpreter and to the comparison of compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..network import Network, Region
from .plan import Buffer, Plan, View
from .steps import Item, Loop, Stage, Step, Stream, Tiles
from .tiling import Tiling


def flaws(plan: Plan) -> Iterator[str]:
    """What is wrong, one remark after the other; where something is, looking further may not make sense."""
    yield from _flaws_of_numbers(plan)
    yield from _flaws_of_buffers(plan)
    sizes = {buffer.name: buffer.size for buffer in plan.buffers}
    for name, tensor in plan.network.tensors.items():
        if name not in plan.network.constants:
            view = plan.views.get(name)
            if view is None or not isinstance(view.buffer, str) or view.buffer not in sizes:
                yield f"tensor '{name}' lies nowhere"
            elif not _is_place(view, tensor.shape, tensor.dtype.bytes, sizes[view.buffer]):
                yield f"tensor '{name}' does not lie inside its buffer"
    for stage in plan.program.stages:
        yield from _flaws_of_stage(plan, stage)
    yield from _flaws_of_layers(plan)


def _flaws_of_numbers(plan: Plan) -> Iterator[str]:
    for name in ("peak_bytes", "bound_bytes", "flash_bytes", "macs_plain"):
        if not _is_count(getattr(plan, name)):
            yield f"{name} is no number of its kind"
    if plan.resident_bytes is not None and not _is_count(plan.resident_bytes):
        yield "resident_bytes is no number of its kind"
    if not _is_count(plan.alignment, 1):
        yield "alignment is no number of its kind"
    if not isinstance(plan.board, str | None) or not isinstance(plan.method, str):
        yield "board and method must be text"
    if not all(isinstance(s.technique, str) and _is_count(s.peak_bytes) for s in plan.savings):
        yield "savings must be text and a number each"


def _flaws_of_buffers(plan: Plan) -> Iterator[str]:
    for buffer in plan.buffers:
        if not _is_buffer(buffer, max(1, len(plan.program.stages))):
            yield f"buffer '{buffer.name}' is not well formed"
            return
    if len({buffer.name for buffer in plan.buffers}) < len(plan.buffers):
        yield "two buffers have the same name"
    if _is_count(plan.peak_bytes) and sum(plan.arenas.values()) > plan.peak_bytes:
        yield "buffers reach beyond peak_bytes"


def _is_buffer(buffer: Buffer, stages: int) -> bool:
    numbers = (buffer.size, buffer.offset, buffer.first, buffer.last)
    texts = isinstance(buffer.name, str) and isinstance(buffer.memory, str)
    return texts and all(map(_is_count, numbers)) and buffer.first <= buffer.last < stages


def _is_place(view: View, shape: Sequence[int], element: int, size: int) -> bool:
    """Whether the tensor fits where it lies; along windows and tiles, whether one index does."""
    if len(view.strides) != len(shape) or not all(map(_is_count, (*view.strides, view.offset))):
        return False
    kept = list(shape)
    for axis in view.tiled:
        if type(axis) is not int or not -len(shape) <= axis < len(shape):
            return False
        kept[axis] = 1
    if view.window is not None:
        axis, count = view.window
        if not _is_count(axis) or not _is_count(count, 1) or axis >= len(shape):
            return False
        kept[axis] = min(count, shape[axis]) if kept[axis] > 1 else 1
    if not all(kept):
        return True
    return view.offset + sum((n - 1) * s for n, s in zip(kept, view.strides, strict=True)) + element <= size


def _flaws_of_stage(plan: Plan, stage: Stage) -> Iterator[str]:
    if not isinstance(stage.name, str) or not stage.body:
        yield "a stage has no name or no steps"
    if not all(_is_item(plan.network, item, 0) for item in stage.body):
        yield f"stage '{stage.name}' is not well formed"
        return
    cut = set(_axes(stage.body))
    for name in stage.layers:
        output = plan.network.by_name[name].output
        rank = len(plan.network.tensors[output].shape)
        if not {axis % rank for axis in plan.views[output].tiled} <= {axis % rank for axis in cut}:
            yield f"tensor '{output}' is kept in tiles, but not computed in tiles"


def _axes(body: Sequence[Item]) -> Iterator[int]:
    """The axes along which tiles are cut, or units that compute some columns in a go."""
    for item in body:
        if isinstance(item, Tiles):
            yield item.axis
            yield from _axes(item.body)
        elif isinstance(item, Stream) and any(unit.width for unit in item.units):
            yield item.axis + 1


def _is_item(network: Network, item: Item, loops: int) -> bool:
    match item:
        case Step():
            return _is_step(network, item, loops)
        case Loop():
            return _is_count(item.count, 1) and all(_is_item(network, inner, loops + 1) for inner in item.body)
        case Stream():
            widths = all(_is_count(unit.width) and unit.steps for unit in item.units)
            steps = all(_is_step(network, step, 0) for step in item.steps)
            return item.axis == 1 and widths and steps and _are_sinks(item)
        case Tiles():
            return _is_tiles(network, item)


def _is_tiles(network: Network, tiles: Tiles) -> bool:
    if tiles.axis not in (1, 2, -1) or not tiles.ends or not all(_is_count(end, 1) for end in tiles.ends):
        return False
    inside = bool(tiles.body) and all(_is_item(network, item, 0) for item in tiles.body)
    if not inside or not _are_sinks(tiles) or not all(a < b for a, b in pairwise(tiles.ends)):
        return False
    if any(not -_rank(network, step) <= tiles.axis < _rank(network, step) for step in tiles.steps):
        return False
    return tiles.ends[-1] == Tiling(network, tiles).driven_size


def _rank(network: Network, step: Step) -> int:
    layer = network.by_name[step.layer]
    return min(len(network.tensors[layer.output].shape), len(network.tensors[layer.inputs[0]].shape))


def _are_sinks(item: Stream | Tiles) -> bool:
    inside = {step.layer for step in item.steps}
    return bool(item.sinks) and all(isinstance(name, str) and name in inside for name in item.sinks)


def _is_step(network: Network, step: Step, loops: int) -> bool:
    if not isinstance(step.layer, str) or step.layer not in network.by_name:
        return False
    layer = network.by_name[step.layer]
    shape = network.tensors[layer.output].shape
    moves = all(len(move) == len(shape) and all(isinstance(by, int) for by in move) for move in step.moves)
    share = step.share is None or _is_region(step.share, network.tensors[layer.inputs[0]].shape)
    return len(step.moves) == loops and moves and share and _is_region(step.region, shape, bool(loops))


def _is_region(region: Region, shape: Sequence[int], may_reach_out: bool = False) -> bool:
    if len(region.bounds) != len(shape) or not all(_is_count(at) for bound in region.bounds for at in bound):
        return False
    return all(a <= b and (b <= size or may_reach_out) for (a, b), size in zip(region.bounds, shape, strict=True))


def _flaws_of_layers(plan: Plan) -> Iterator[str]:
    """Every layer runs in one stage, or is free."""
    try:
        done = [*plan.free, *(name for stage in plan.program.stages for name in stage.layers)]
        missing = set(plan.network.by_name) ^ set(done)
    except TypeError:
        yield "a layer's name is no text"
        return
    if missing or len(done) > len(plan.network.layers):
        yield f"layer '{min(missing or done)}' must run in one stage, or be free"


def _is_count(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 1 << 60
