"""The least distance of two buffers of a plan that share bytes during a stage, wherever the plan placed them.

For a stage of one layer it follows from the operator's grain (`overlap`); stages of several layers are followed step by
step, because the order within a step is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import or_

from ..network import Region
from ..program import ROWS, Plan, Sweep
from .overlap import Distance, distance

Extent = tuple[int, int] | None  # the bytes of a buffer that are in use during a step
Touch = tuple[str, Region, bool]  # a tensor, the region that a step accesses, and whether it writes


@dataclass(frozen=True, slots=True, eq=False)
class _PlanStage:
    """A stage of a plan, as a cache key.

    Plans are compared by identity: comparing their contents would take longer than the lookup saves.
    """

    plan: Plan
    number: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PlanStage) and self.plan is other.plan and self.number == other.number

    def __hash__(self) -> int:
        return hash((id(self.plan), self.number))


def least_distance(plan: Plan, x: str, y: str) -> Distance | None:
    """The safe distances from buffer `x` to buffer `y`, if `x` dies in the stage in which `y` is born; None if
    unknown."""
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
        is_made = plan.views[layer.output].buffer == y
        if is_made and _fills(plan, sources[0]) and _fills(plan, layer.output):
            return distance(plan.network, layer, sources[0])
    if stage.sweep is not Sweep.FORWARD or not {x, y} <= {view.buffer for view in plan.views.values()}:
        return None
    return _by_steps(_PlanStage(plan, two.first), x, y)


def _fills(plan: Plan, name: str) -> bool:
    """Whether a tensor fills its buffer in element order."""
    view, tensor = plan.views[name], plan.network.tensors[name]
    is_plain = view.offset == 0 and view.window is None and not view.tiled
    return is_plain and tensor.is_dense(view.strides) and plan.buffer_named[view.buffer].size == tensor.bytes


@lru_cache(maxsize=4096)
def _by_steps(stage: _PlanStage, x: str, y: str) -> Distance:
    """The distances at which the bytes in use of both never overlap during a step."""
    in_use = (_in_use(stage, name) for name in (x, y))
    both = [(mine, theirs) for mine, theirs in zip(*in_use, strict=True) if mine is not None and theirs is not None]
    least = -max(stage.plan.buffer_named[name].size for name in (x, y))  # for buffers that are never in use together
    below = max((theirs[1] - mine[0] for mine, theirs in both), default=least)
    above = max((mine[1] - theirs[0] for mine, theirs in both), default=least)
    return Distance(below, above)


@lru_cache(maxsize=256)
def _in_use(stage: _PlanStage, buffer: str) -> Sequence[Extent]:
    """For each step of a stage, the bytes of a buffer that it touches or that hold data read later."""
    plan, steps = stage.plan, _touches(stage)
    inside = [name for name, view in plan.views.items() if view.buffer == buffer]
    rolling = [name for name in inside if _rolls(plan, name)]
    used = [_rows_in_use(plan, steps, name) for name in rolling]
    others = {name for name in inside if name not in rolling}
    used.append(_bytes_in_use(plan, stage.number, steps, buffer, others))
    return [_hull(extents) for extents in zip(*used, strict=True)]


@lru_cache(maxsize=16)
def _touches(stage: _PlanStage) -> Sequence[Sequence[Touch]]:
    """For each step of a stage, the regions that it reads and the one that it writes."""
    program, network = stage.plan.program, stage.plan.network
    touches: list[Sequence[Touch]] = []
    for step in program.steps(program.stages[stage.number]):
        layer = network.by_name[step.layer]
        needs = zip(layer.inputs, program.needs(step), strict=True)
        reads = [(name, needed, False) for name, needed in needs if not needed.is_empty]
        touches.append((*reads, (layer.output, step.region, True)))
    return touches


def _rolls(plan: Plan, name: str) -> bool:
    """Whether only a few rows or a tile of the tensor are kept, within one stage; rows of an input may arrive
    earlier."""
    view = plan.views[name]
    return (view.window is not None or bool(view.tiled)) and name in plan.network.producers


def _hull(extents: Iterable[Extent]) -> Extent:
    there = [extent for extent in extents if extent is not None]
    return (min(low for low, _ in there), max(high for _, high in there)) if there else None


@dataclass
class _Life:
    """The steps during which a row of a window, or a tile, is in use."""

    first: int
    last: int
    written: Region
    is_read: bool = False


def _rows_in_use(plan: Plan, steps: Sequence[Sequence[Touch]], name: str) -> list[Extent]:
    """Bytes in use for a tensor in a rolling window: a row from the step that writes it to the last that reads it; a
    row of a tile until the next tile is written."""
    view = plan.views[name]
    axis, count = view.window or (ROWS, 1)
    lives: dict[int, list[_Life]] = {}
    for at, step in enumerate(steps):
        for _, region, is_write in (touch for touch in step if touch[0] == name):
            for row in range(*region.bounds[axis]) if view.window else (0,):
                part = region.with_axis(axis, (row, row + 1)) if view.window else region
                _touch(lives.setdefault(row, []), at, part, is_write, is_rewritten=bool(view.tiled))
    whole, size = Region.whole(plan.network.tensors[name].shape), plan.buffer_named[view.buffer].size
    in_use: list[list[Extent]] = [[] for _ in steps]
    for row, each in lives.items():
        inside = whole.with_axis(axis, (row % count, row % count + 1))
        place = (0, size) if view.tiled else _reach(plan, name, inside)
        for life in each:
            for extents in in_use[life.first : life.last + 1]:
                extents.append(place)
    return [_hull(extents) for extents in in_use]


def _touch(lives: list[_Life], at: int, region: Region, is_write: bool, is_rewritten: bool) -> None:
    """Records an access to a row. For tiles, a write after a read starts a new lifetime, unless the overwritten data is
    read again."""
    if not lives or (is_write and is_rewritten and lives[-1].is_read):
        lives.append(_Life(at, at, region))
        return
    if not is_write and is_rewritten and region not in lives[-1].written:
        lives[:] = [replace(lives[-1], first=lives[0].first, written=_around(lives))]
    life = lives[-1]
    life.last, life.is_read = at, life.is_read or not is_write
    if is_write:
        life.written |= region


def _around(lives: Sequence[_Life]) -> Region:
    return reduce(or_, (life.written for life in lives))


def _bytes_in_use(
    plan: Plan, number: int, steps: Sequence[Sequence[Touch]], buffer: str, tensors: Collection[str]
) -> list[Extent]:
    """Bytes in use for tensors that lie in a buffer as a whole."""
    own, ends = plan.buffer_named[buffer], plan.network
    is_there = own.first < number or any(name in ends.inputs for name in tensors)
    is_kept = own.last > number or any(name in ends.outputs for name in tensors)
    touched = [
        [(_extent(plan, name, region), is_write) for name, region, is_write in step if name in tensors]
        for step in steps
    ]
    highs, high = [], own.size if is_there else 0
    for each in touched:
        high = max([high, *(extent[1] for extent, is_write in each if is_write)])
        highs.append(max([high, *(extent[1] for extent, _ in each)]))
    extents: list[Extent] = []
    low = 0 if is_kept else own.size
    for each, high in zip(reversed(touched), reversed(highs), strict=True):
        here = min([low, *(extent[0] for extent, _ in each)])
        low = min([low, *(extent[0] for extent, is_write in each if not is_write)])
        extents.append((here, high) if here < high else None)
    return extents[::-1]


def _extent(plan: Plan, name: str, region: Region) -> tuple[int, int]:
    """The first byte of its buffer that a region may cover, and one past the last."""
    view = plan.views[name]
    is_moving = view.window is not None or view.tiled
    return (0, plan.buffer_named[view.buffer].size) if is_moving else _reach(plan, name, region)


def _reach(plan: Plan, name: str, region: Region) -> tuple[int, int]:
    view = plan.views[name]
    steps = [(a * stride, (b - 1) * stride) for (a, b), stride in zip(region.bounds, view.strides, strict=True)]
    first, last = (view.offset + sum(ends) for ends in zip(*steps, strict=True))
    return first, last + plan.network.tensors[name].dtype.bytes
