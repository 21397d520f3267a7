"""How close an output of a plan may lie to a dying input whose bytes it takes over, wherever the plan has them.

A stage of one layer is followed as its operator promises to read and write (`overlap`), one of several layers step by
step: there nothing is known of the order within a step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..network import Region
from ..program import ROWS, Plan, Step, Sweep
from .overlap import Distance, distance


def least_distance(plan: Plan, x: str, y: str) -> Distance | None:
    """The safe distances from buffer `x` to buffer `y`, which is written in the last stage that needs `x`; None where
    they are not known."""
    one, two = plan.buffer_named[x], plan.buffer_named[y]
    if one.last != two.first or not 0 <= two.first < len(plan.program.stages):
        return None
    stage = plan.program.stages[two.first]
    if stage.sweep is Sweep.CHANNELS or stage.schedule.lanes > 1 or plan.program.partial(stage):
        return None
    layer = plan.network.by_name[stage.layers[-1]]
    sources = [name for name in plan.network.activations(layer) if plan.views[name].buffer == x]
    is_by_rows = len(stage.layers) == 1 and all(split.axis == ROWS for split in stage.schedule.splits)
    if is_by_rows and layer.name not in plan.program.copied and len(sources) == 1:
        if plan.views[layer.output].buffer == y and _fills(plan, sources[0]) and _fills(plan, layer.output):
            return distance(plan.network, layer, sources[0])
    return _by_steps(plan, two.first, x, y) if stage.sweep is Sweep.FORWARD else None


def _fills(plan: Plan, name: str) -> bool:
    """Whether a tensor takes all of its buffer, in the order of its elements."""
    view, tensor = plan.views[name], plan.network.tensors[name]
    is_plain = view.offset == 0 and view.window is None and not view.tiled
    return is_plain and tensor.is_dense(view.strides) and plan.buffer_named[view.buffer].size == tensor.bytes


def _by_steps(plan: Plan, number: int, x: str, y: str) -> Distance:
    """What a step writes to `y` must lie below all that it and later steps touch of `x`."""
    needed, below = plan.buffer_named[x].size, -plan.buffer_named[x].size
    for step in reversed(list(plan.program.steps(plan.program.stages[number]))):
        for name, region, is_write in _touches(plan, step):
            buffer = plan.views[name].buffer
            if buffer == x:
                needed = min(needed, _reach(plan, name, region)[0])
        for name, region, is_write in _touches(plan, step):
            if is_write and plan.views[name].buffer == y:
                below = max(below, _reach(plan, name, region)[1] - needed)
    return Distance(min(below, plan.buffer_named[y].size), plan.buffer_named[x].size)


def _touches(plan: Plan, step: Step) -> Iterator[tuple[str, Region, bool]]:
    """The tensors and regions that a step reads, and the one that it writes."""
    layer = plan.network.by_name[step.layer]
    for name, needed in zip(layer.inputs, plan.program.needs(step), strict=True):
        if name in plan.views and not needed.is_empty:
            yield name, needed, False
    yield layer.output, step.region, True


def _reach(plan: Plan, name: str, region: Region) -> tuple[int, int]:
    """The first byte of its buffer that a region takes, and the one after the last."""
    view = plan.views[name]
    if view.window is not None or view.tiled:
        return 0, plan.buffer_named[view.buffer].size
    steps = [(a * stride, (b - 1) * stride) for (a, b), stride in zip(region.bounds, view.strides, strict=True)]
    first, last = (view.offset + sum(ends) for ends in zip(*steps, strict=True))
    return first, last + plan.network.tensors[name].dtype.bytes
