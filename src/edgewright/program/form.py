"""Whether a plan is well formed: names exist, ranks agree, tensors lie in buffers, layers can run as scheduled.

What the plan computes is left to `ownership`, which relies on all of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from ..errors import ModelError
from ..network import DType, Network, Quant, Tensor, check
from ..network.operators import Conv2d
from ..network.tensor import MOST_ELEMENTS
from .fusion import CHANNELS, COLUMNS
from .legal import problems
from .plan import Buffer, BufferKind, Plan, View, slot_name
from .program import Stage
from .row_trace import RowTrace
from .steps import ROWS, SUM_BYTES, Sweep, sums_bytes


def flaws(plan: Plan) -> Iterator[str]:
    """The flaws of a plan. Later checks rely on earlier ones, so the first kind with flaws ends the list."""
    for flaw in network_flaws(plan.network):
        yield flaw
        return
    for flaws_of in (_flaws_of_layers, _flaws_of_buffers, _flaws_of_views, _flaws_of_slots):
        if flaws_found := tuple(flaws_of(plan)):
            yield from flaws_found
            return
    for stage in plan.program.stages:
        yield from _flaws_of_stage(plan, stage)


def network_flaws(network: Network) -> Iterator[str]:
    """The flaws of a network from a file: names, tensors, layers that do not fit together."""
    for flaw in end_flaws(network):
        yield flaw
        return
    try:
        check(network)
    except ModelError as error:
        yield str(error)


def end_flaws(network: Network) -> Iterator[str]:
    """The flaws of a network's names and tensors; layers are not checked."""
    yield from _flaws_of_names(network)
    yield from _flaws_of_tensors(network)


def _flaws_of_names(network: Network) -> Iterator[str]:
    """Names without a tensor, and contradictory inputs, constants, states or outputs."""
    used = {*network.inputs, *network.outputs, *network.layouts, *network.file_tensors}
    for layer in network.layers:
        used.update((*layer.inputs, layer.output))
    if missing := used - network.tensors.keys():
        yield f"'{min(missing)}' is no tensor"
    if both := set(network.inputs) & network.constants.keys():
        yield f"'{min(both)}' is both an input and a constant"
    for name, after in network.states.items():
        if name not in network.inputs or after not in network.outputs:
            yield f"the state '{name}' is no input, or '{after}' no output"
    if len(set(network.inputs)) < len(network.inputs) or not network.outputs:
        yield "an input is listed twice, or there is no output"
    if not all(layer.inputs for layer in network.layers):
        yield "a layer has no inputs"


def _flaws_of_tensors(network: Network) -> Iterator[str]:
    for tensor in (*network.tensors.values(), *network.file_tensors.values()):
        if not _is_tensor(tensor):
            yield f"tensor '{tensor.name}' is not well formed"
    for name, perm in network.layouts.items():
        if name in network.tensors and sorted(perm) != list(range(len(network.tensors[name].shape))):
            yield f"the layout of '{name}' does not fit its shape"


def _is_tensor(tensor: Tensor) -> bool:
    if min(tensor.shape, default=0) < 0 or tensor.size > MOST_ELEMENTS:
        return False
    quant = tensor.quant
    if quant is None:
        return True
    if not quant.scale or len(quant.scale) != len(quant.zero) or not _can_store(tensor.dtype, quant):
        return False
    rank = len(tensor.shape)
    if quant.axis is None:
        return not quant.is_per_channel
    return -rank <= quant.axis < rank and len(quant.scale) in (1, tensor.shape[quant.axis])


def _can_store(dtype: DType, quant: Quant) -> bool:
    """Whether zero points fit an integer type, and scales are positive in float32, as which C stores them."""
    if dtype.numpy.kind not in "iu":
        return False
    info = np.iinfo(dtype.numpy)
    return (
        all(0 < np.float32(scale) < inf for scale in quant.scale)
        and info.min <= min(quant.zero)
        and max(quant.zero) <= info.max
    )


def _flaws_of_buffers(plan: Plan) -> Iterator[str]:
    stages = max(1, len(plan.program.stages))
    for buffer in plan.buffers:
        if not 0 <= buffer.first <= buffer.last < stages:
            yield f"buffer '{buffer.name}' is reserved for stages that do not exist"
        elif min(buffer.offset, buffer.size, buffer.lanes - 1) < 0:
            yield f"buffer '{buffer.name}' has a negative size or address, or no lanes"
        elif buffer.lanes > 1 and not _is_of_lanes(plan, buffer):
            yield f"buffer '{buffer.name}' is divided among lanes that its stage does not have"
    if len({buffer.name for buffer in plan.buffers}) < len(plan.buffers):
        yield "two buffers have the same name"
    if idle := [buffer.name for buffer in plan.buffers if not _is_used(plan, buffer)]:
        yield f"buffer '{idle[0]}' is not used"


def _is_used(plan: Plan, buffer: Buffer) -> bool:
    """Whether the buffer serves its stated owner, and is the only one that does."""
    stages = plan.program.stages
    match buffer.kind:
        case BufferKind.TENSORS:
            return any(view.buffer == buffer.name for view in plan.views.values())
        case BufferKind.KERNELS:
            return any(selection.scratch == buffer.name for selection in plan.selections.values())
        case BufferKind.ROOM:
            owners = {stage.name for stage in stages}
        case BufferKind.SUMS:
            owners = {name for stage in stages for name in plan.program.partial(stage)}
        case BufferKind.PLANE:
            owners = {name for stage in stages for name in _by_channels(stage)}
    return buffer.owner in owners and plan.buffer_for(buffer.kind, buffer.owner) is buffer


def _is_of_lanes(plan: Plan, buffer: Buffer) -> bool:
    """Whether the buffer lives in one stage and has an equal part for each of its lanes."""
    stage = plan.program.stages[buffer.first] if plan.program.stages else None
    is_alone = stage is not None and buffer.first == buffer.last and stage.schedule.lanes == buffer.lanes
    return is_alone and buffer.size % buffer.lanes == 0


def _flaws_of_views(plan: Plan) -> Iterator[str]:
    network, buffers = plan.network, plan.buffer_named
    if strangers := plan.views.keys() - (network.tensors.keys() - network.constants.keys()):
        yield f"'{min(strangers)}' lies in memory, but no layer computes it and it is no input"
    for name, tensor in network.tensors.items():
        if name in network.constants:
            continue
        view = plan.views.get(name)
        if view is None or view.buffer not in buffers:
            yield f"tensor '{name}' has no place in memory"
        elif not _is_place(view, tensor, buffers[view.buffer]):
            yield f"tensor '{name}' does not lie inside its buffer"
        elif any(at % tensor.dtype.bytes for at in _starts(buffers[view.buffer], view)):
            yield f"tensor '{name}' does not begin at a multiple of its element's size"
        elif name in network.inputs and view.window and not _is_pulled(view, tensor):
            yield f"input '{name}' cannot be pulled by rows with this layout"


def _starts(buffer: Buffer, view: View) -> tuple[int, int]:
    """The first byte of the tensor in each lane: where it begins, and the distance from one lane's copy to the next."""
    return buffer.offset + view.offset, buffer.part if buffer.lanes > 1 else 0


def _flaws_of_slots(plan: Plan) -> Iterator[str]:
    """Tensors in the caller's memory that share it, are not dense, or are inputs that a layer writes."""
    network = plan.network
    if len(set(plan.outside)) < len(plan.outside):
        yield "a tensor is listed twice in the caller's memory"
    for name in plan.outside:
        if name in network.constants or (name in network.inputs) == (name in network.outputs):
            yield f"'{name}' is in the caller's memory, but is not either an input or an output"
            return
        tensor, view = network.tensors[name], plan.views[name]
        home = plan.buffer_named[view.buffer]
        sharing = [buffer.name for buffer in plan.buffers if buffer.memory == home.memory and buffer is not home]
        if home.memory != slot_name(name) or (home.offset, home.size, view.offset) != (0, tensor.bytes, 0):
            yield f"'{name}' does not fill the caller's memory"
        elif view.window or view.tiled or not tensor.is_dense(view.strides):
            yield f"'{name}' does not lie densely in the caller's memory"
        elif sharing:
            yield f"'{sharing[0]}' lies in the caller's memory for '{name}'"
        for layer in network.layers if name in network.inputs else ():
            if layer.name not in plan.free and plan.views[layer.output].buffer == view.buffer:
                yield f"layer '{layer.name}' writes to the caller's input '{name}'"


def _is_place(view: View, tensor: Tensor, buffer: Buffer) -> bool:
    """Whether the tensor fits into the buffer at its view: along tiled axes one index, along a window its rows."""
    shape, size = tensor.shape, tensor.dtype.bytes
    if len(view.strides) != len(shape) or any(stride < 0 or stride % size for stride in view.strides):
        return False
    kept = list(shape)
    for axis in view.tiled:
        if not -len(shape) <= axis < len(shape):
            return False
        kept[axis] = 1
    if view.window is not None:
        axis, count = view.window
        if not 0 <= axis < len(shape) or axis in {at % len(shape) for at in view.tiled}:
            return False
        if not 1 <= count <= shape[axis]:
            return False
        kept[axis] = count
    if not all(kept):
        return True
    reach = size  # of the axes so far; the next one must step over all of it, or elements would lie on each other
    for stride, n in sorted(zip(view.strides, kept, strict=True)):
        if n > 1 and stride < reach:
            return False
        reach += (n - 1) * stride
    return 0 <= view.offset <= buffer.part - reach


def _is_pulled(view: View, tensor: Tensor) -> bool:
    """Whether the rows of an input can be written into its window one by one: each row must be contiguous."""
    if len(tensor.shape) != 4 or tensor.shape[0] != 1 or view.tiled or view.window is None:
        return False
    return view.window[0] == ROWS and view.strides[ROWS:] == tensor.strides[ROWS:]


def _flaws_of_layers(plan: Plan) -> Iterator[str]:
    """Layers that do not run in exactly one stage, unless they are free."""
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
    for problem in problems(plan.network, stage.schedule, plan.free, plan.pulled):
        yield f"stage '{stage.name}' is not well formed: {problem}"
        return
    if stage.sweep is Sweep.CHANNELS and (stage.schedule.streamed or {*stage.schedule.axes} - {CHANNELS}):
        yield f"stage '{stage.name}' works channel by channel, but not on whole channels"
        return
    cut = set(stage.schedule.axes)
    if stage.schedule.streamed:
        trace = RowTrace(plan.program.fused(stage))
        cut |= {COLUMNS} if any(chain.columns for chain in trace.chains) else set()
        if problem := _row_problem(trace):
            yield f"stage '{stage.name}' is not well formed: {problem}"
            return
    for name in stage.layers:
        output = plan.network.by_name[name].output
        rank = len(plan.network.tensors[output].shape)
        if not {axis % rank for axis in plan.views[output].tiled} <= {axis % rank for axis in cut if rank}:
            yield f"tensor '{output}' is kept in tiles, but not computed in tiles"
    yield from _flaws_of_sums(plan, stage)
    yield from _flaws_of_planes(plan, stage)


def _row_problem(trace: RowTrace) -> str:
    """Why the layers cannot run row by row; empty if they can."""
    try:
        return "" if trace.demands else "nothing runs row by row"
    except ModelError as error:
        return str(error)


def _flaws_of_sums(plan: Plan, stage: Stage) -> Iterator[str]:
    """Layers with running sums whose buffer is missing: integers need a buffer, real numbers use the output."""
    for name in plan.program.partial(stage):
        wanted = sums_bytes(plan.network, plan.network.by_name[name])
        buffer = plan.buffer_for(BufferKind.SUMS, name)
        if wanted and (buffer is None or buffer.size < wanted or buffer.offset % SUM_BYTES):
            yield f"the running sums of '{name}' have no buffer"
        elif not wanted and buffer is not None:
            yield f"the running sums of '{name}' are not in the output"


def _flaws_of_planes(plan: Plan, stage: Stage) -> Iterator[str]:
    """Layers that work channel by channel without scratch for one channel."""
    for name in _by_channels(stage):
        layer = plan.network.by_name[name]
        x, y = (plan.network.tensors[tensor] for tensor in (layer.inputs[0], layer.output))
        scratch = plan.buffer_for(BufferKind.PLANE, name)
        depthwise = isinstance(layer.op, Conv2d) and layer.op.groups == x.shape[-1] == y.shape[-1]
        if not depthwise or x.shape != y.shape or x.dtype is not y.dtype:
            yield f"layer '{name}' cannot work channel by channel"
        elif scratch is None or scratch.size < y.bytes // y.shape[-1] or scratch.offset % y.dtype.bytes:
            yield f"layer '{name}' has no scratch for one of its channels"


def _by_channels(stage: Stage) -> tuple[str, ...]:
    """The layers of a stage that work channel by channel."""
    return stage.layers if stage.sweep is Sweep.CHANNELS else ()
