"""Whether a plan is well formed: names exist, ranks agree, tensors lie inside their buffers, loops come to an end.

What the plan computes is left to `ownership`, which relies on all of this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from ..errors import ModelError
from ..network import Network, Region, Tensor, check
from ..network.operators import Conv2d
from ..network.tensor import MOST_ELEMENTS
from .plan import Buffer, Plan, View, room_name, scratch_name
from .rows import ROWS
from .shares import SUM_BYTES, summed_axes, sums_bytes, sums_name
from .steps import Item, Loop, Stage, Step, Stream, Sweep, Tiles
from .stream import Flow
from .tiling import Tiling

DEEPEST = 8  # loops inside each other


def flaws(plan: Plan) -> Iterator[str]:
    """What is wrong, one remark after the other; where something is, looking further may not make sense."""
    for flaw in (*_flaws_of_names(plan.network), *_flaws_of_tensors(plan.network)):
        yield flaw
        return
    try:
        check(plan.network)
    except ModelError as error:
        yield str(error)
        return
    yield from _flaws_of_buffers(plan)
    yield from _flaws_of_views(plan)
    for flaw in _flaws_of_layers(plan):
        yield flaw
        return
    for stage in plan.program.stages:
        yield from _flaws_of_stage(plan, stage)


def _flaws_of_names(network: Network) -> Iterator[str]:
    """Every name that is used is one of a tensor, and inputs and constants are what they say."""
    used = {*network.inputs, *network.outputs, *network.layouts, *network.file_tensors}
    for layer in network.layers:
        used.update((*layer.inputs, layer.output))
    if missing := used - network.tensors.keys():
        yield f"'{min(missing)}' is no tensor"
    if both := set(network.inputs) & network.constants.keys():
        yield f"'{min(both)}' is both an input and a constant"
    if len(set(network.inputs)) < len(network.inputs) or not network.outputs:
        yield "an input stands twice, or there is no output"
    if not all(layer.inputs for layer in network.layers):
        yield "a layer has no inputs"


def _flaws_of_tensors(network: Network) -> Iterator[str]:
    for tensor in (*network.tensors.values(), *network.file_tensors.values()):
        if not _is_tensor(tensor):
            yield f"tensor '{tensor.name}' is not well formed"
    for name, perm in network.layouts.items():
        if sorted(perm) != list(range(len(network.tensors[name].shape))):
            yield f"the layout of '{name}' does not fit its shape"


def _is_tensor(tensor: Tensor) -> bool:
    if tensor.size >= MOST_ELEMENTS:
        return False
    quant = tensor.quant
    if quant is None:
        return True
    if not quant.scale or len(quant.scale) != len(quant.zero):
        return False
    rank = len(tensor.shape)
    if quant.axis is None:
        return not quant.is_per_channel
    return -rank <= quant.axis < rank and len(quant.scale) in (1, tensor.shape[quant.axis])


def _flaws_of_buffers(plan: Plan) -> Iterator[str]:
    stages = max(1, len(plan.program.stages))
    for buffer in plan.buffers:
        if not buffer.first <= buffer.last < stages:
            yield f"buffer '{buffer.name}' is reserved for stages that do not exist"
    if len({buffer.name for buffer in plan.buffers}) < len(plan.buffers):
        yield "two buffers have the same name"
    used = {view.buffer for view in plan.views.values()}
    for stage in plan.program.stages:
        used.add(room_name(stage.name))
        used |= {sums_name(name) for name in stage.summing}
        used |= {scratch_name(name) for name in _by_channels(stage)}
    used |= {selection.scratch for stage in plan.selections for selection in stage if selection.scratch}
    if idle := [buffer.name for buffer in plan.buffers if buffer.name not in used]:
        yield f"buffer '{idle[0]}' is there for nothing"


def _flaws_of_views(plan: Plan) -> Iterator[str]:
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    network = plan.network
    if strangers := plan.views.keys() - (network.tensors.keys() - network.constants.keys()):
        yield f"'{min(strangers)}' lies in memory, but is no tensor that is computed or given"
    for name, tensor in network.tensors.items():
        if name in network.constants:
            continue
        view = plan.views.get(name)
        if view is None or view.buffer not in buffers:
            yield f"tensor '{name}' lies nowhere"
        elif not _is_place(view, tensor, buffers[view.buffer]):
            yield f"tensor '{name}' does not lie inside its buffer"
        elif (buffers[view.buffer].offset + view.offset) % tensor.dtype.bytes:
            yield f"tensor '{name}' does not begin at a multiple of its element's size"
        elif name in network.inputs and view.window and not _is_pulled(view, tensor):
            yield f"input '{name}' cannot be pulled by rows as it lies"


def _is_place(view: View, tensor: Tensor, buffer: Buffer) -> bool:
    """Whether the tensor fits where it lies; along windows and tiles, whether one index does."""
    shape, size = tensor.shape, tensor.dtype.bytes
    if len(view.strides) != len(shape) or any(stride % size for stride in view.strides):
        return False
    kept = list(shape)
    for axis in view.tiled:
        if not -len(shape) <= axis < len(shape):
            return False
        kept[axis] = 1
    if view.window is not None:
        axis, count = view.window
        if axis >= len(shape) or count > shape[axis] or axis in {at % len(shape) for at in view.tiled}:
            return False
        kept[axis] = count
    if not all(kept):
        return True
    reach = size  # of the axes so far; the next one must step over all of it, or elements would lie on each other
    for stride, n in sorted(zip(view.strides, kept, strict=True)):
        if n > 1 and stride < reach:
            return False
        reach += (n - 1) * stride
    return view.offset + reach <= buffer.size


def _is_pulled(view: View, tensor: Tensor) -> bool:
    """Whether the rows of an image can be put into its window by whoever has them: each in one piece."""
    if len(tensor.shape) != 4 or tensor.shape[0] != 1 or view.tiled or view.window is None:
        return False
    return view.window[0] == ROWS and view.strides[ROWS:] == tensor.strides[ROWS:]


def _flaws_of_layers(plan: Plan) -> Iterator[str]:
    """Every layer runs in one stage, or is free."""
    for stage in plan.program.stages:
        for name in stage.layers:
            if name not in plan.network.by_name:
                yield f"stage '{stage.name}' runs '{name}', which is no layer"
                return
    done = [*plan.free, *(name for stage in plan.program.stages for name in stage.layers)]
    wrong = set(plan.network.by_name) ^ set(done)
    if wrong or len(done) > len(plan.network.layers):
        yield f"layer '{min(wrong or done)}' must run in one stage, or be free"


def _flaws_of_stage(plan: Plan, stage: Stage) -> Iterator[str]:
    if not stage.body or not all(_is_item(plan.network, item, 0) for item in stage.body):
        yield f"stage '{stage.name}' is not well formed"
        return
    cut = set(_axes(stage.body))
    for name in stage.layers:
        output = plan.network.by_name[name].output
        rank = len(plan.network.tensors[output].shape)
        if not {axis % rank for axis in plan.views[output].tiled} <= {axis % rank for axis in cut if rank}:
            yield f"tensor '{output}' is kept in tiles, but not computed in tiles"
    yield from _flaws_of_sums(plan, stage)
    yield from _flaws_of_planes(plan, stage)


def _flaws_of_sums(plan: Plan, stage: Stage) -> Iterator[str]:
    """Running sums of integers have a buffer of their own; those of real numbers lie in the output."""
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    for name in stage.summing:
        wanted, found = sums_bytes(plan.network, plan.network.by_name[name]), buffers.get(sums_name(name))
        if wanted and (found is None or found.size < wanted or found.offset % SUM_BYTES):
            yield f"the running sums of '{name}' have no place"
        elif not wanted and found is not None:
            yield f"the running sums of '{name}' lie apart from the output"


def _flaws_of_planes(plan: Plan, stage: Stage) -> Iterator[str]:
    """A layer that works channel by channel computes each in scratch."""
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    for name in _by_channels(stage):
        layer = plan.network.by_name[name]
        x, y = (plan.network.tensors[tensor] for tensor in (layer.inputs[0], layer.output))
        scratch = buffers.get(scratch_name(name))
        depthwise = isinstance(layer.op, Conv2d) and layer.op.groups == x.shape[-1] == y.shape[-1]
        if not depthwise or x.shape != y.shape or x.dtype is not y.dtype:
            yield f"layer '{name}' cannot work channel by channel"
        elif scratch is None or scratch.size < y.bytes // y.shape[-1] or scratch.offset % y.dtype.bytes:
            yield f"layer '{name}' has no scratch for one of its channels"


def _by_channels(stage: Stage) -> Iterator[str]:
    """The layers of a stage that work channel by channel: whole ones, in no loop."""
    for item in stage.body:
        if isinstance(item, Step) and item.sweep is Sweep.CHANNELS:
            yield item.layer


def _axes(body: Sequence[Item]) -> Iterator[int]:
    """The axes along which tiles are cut, or units that compute some columns in a go."""
    for item in body:
        if isinstance(item, Tiles):
            yield item.axis
            yield from _axes(item.body)
        elif isinstance(item, Stream) and any(unit.width for unit in item.units):
            yield item.axis + 1


def _is_item(network: Network, item: Item, depth: int) -> bool:
    match item:
        case Step():
            return _is_step(network, item) and not item.moves
        case Loop():
            return _is_loop(network, item, ())
        case Stream():
            return _is_stream(network, item)
        case Tiles():
            return depth < DEEPEST and _is_tiles(network, item, depth)


def _is_loop(network: Network, loop: Loop, around: tuple[int, ...]) -> bool:
    """Whether every repetition computes something else of every layer."""
    counts = (*around, loop.count)
    if len(counts) > DEEPEST or not loop.body:
        return False
    for item in loop.body:
        if isinstance(item, Loop):
            if not _is_loop(network, item, counts):
                return False
        elif not _is_step(network, item, counts) or item.sweep is Sweep.CHANNELS:
            return False
    return True


def _is_step(network: Network, step: Step, counts: tuple[int, ...] = ()) -> bool:
    layer = network.by_name[step.layer]
    shape = network.tensors[layer.output].shape
    if len(step.region.bounds) != len(shape) or step.region.is_empty or len(step.moves) != len(counts):
        return False
    first = network.tensors[layer.inputs[0]].shape
    if step.share is not None and not (summed_axes(network, layer) and _lies_in(step.share, first)):
        return False
    if not counts:
        return _lies_in(step.region, shape)
    if any(
        len(move) != len(shape) or (n > 1 and not any(move)) for move, n in zip(step.moves, counts, strict=True)
    ):
        return False
    # Regions move on a line, so that those at the corners tell for all.
    for times in product(*((0, n - 1) for n in counts)):
        region = step.region
        for i, move in zip(times, step.moves, strict=True):
            region = region.moved([i * d for d in move])
        if region.clipped(shape).is_empty:
            return False
    return True


def _lies_in(region: Region, shape: Sequence[int]) -> bool:
    return len(region.bounds) == len(shape) and not region.is_empty and region in Region.whole(shape)


def _is_stream(network: Network, stream: Stream) -> bool:
    """Whether the layers can be run row by row: images whose rows are needed from top to bottom."""
    if stream.axis != ROWS or not stream.units or not all(unit.steps for unit in stream.units):
        return False
    for step in stream.steps:
        if (
            step.sweep is Sweep.CHANNELS
            or step.moves
            or not _is_step(network, step)
            or not _is_image(network, step)
        ):
            return False
    if len({step.layer for step in stream.steps}) < len(stream.steps) or not _are_sinks(stream):
        return False
    try:
        return Flow(network, stream).is_sound
    except ModelError:
        return False


def _is_image(network: Network, step: Step) -> bool:
    """Whether the step has rows and columns: of its output, or of what it sums up over both."""
    layer = network.by_name[step.layer]
    if len(network.tensors[layer.output].shape) == 4:
        return True
    given = len(network.tensors[layer.inputs[0]].shape)
    return step.share is not None and given == 4 and {ROWS, ROWS + 1} <= set(summed_axes(network, layer))


def _is_tiles(network: Network, tiles: Tiles, depth: int) -> bool:
    if tiles.axis not in (1, 2, -1) or not tiles.ends or not all(a < b for a, b in pairwise((0, *tiles.ends))):
        return False
    inside = bool(tiles.body) and all(_is_item(network, item, depth + 1) for item in tiles.body)
    if not inside or not _are_sinks(tiles):
        return False
    steps = tiles.steps
    if len({step.layer for step in steps}) < len(steps) or any(step.sweep is Sweep.CHANNELS for step in steps):
        return False
    if not all(_has_axis(network, step, tiles.axis) for step in steps):
        return False
    tiling = Tiling(network, tiles)
    try:
        return tiles.ends[-1] == tiling.driven_size and bool(tiling.intervals)
    except LookupError:  # something between the layers has no such axis
        return False


def _has_axis(network: Network, step: Step, axis: int) -> bool:
    """Whether there is such an axis to cut: of the input where that is summed up along it, else of the output."""
    layer = network.by_name[step.layer]
    if step.share is not None:
        rank = len(step.share.bounds)
        if -rank <= axis < rank and axis % rank in summed_axes(network, layer):
            return True
    rank = len(network.tensors[layer.output].shape)
    return -rank <= axis < rank


def _are_sinks(item: Stream | Tiles) -> bool:
    inside = {step.layer for step in item.steps}
    return bool(item.sinks) and all(name in inside for name in item.sinks)
