"""Which stages of a plan several cores share, and along which axis: those where that saves more than meetings cost.

What a core does is counted in its cycles: multiplications, bytes that come and go, and the numbers that functions are
made of. A lane along rows reads all weights and its part of the image, a lane along channels its part of the weights
and all of the image; both follow from what the operators need. Rows lie in one piece, so that lanes write to the same
lines of a cache only where they meet. Channels do not: they are cut only where panels of them are multiplied, which
pays in layers of few rows that read many weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..memory import Techniques
from ..memory import plan as plan_network
from ..memory.fit import fit
from ..memory.planner import pulled_inputs
from ..memory.problems import PLAIN
from ..network import Layer, Network, Region
from ..network.operators import Conv2d, Dense
from ..platform import Board
from ..platform.target import Family, Target
from ..program import CHANNELS, ROWS, FusionSchedule, Plan, Saving, Split, Stage, even_ends
from ..program.legal import problems
from ..program.plan import room_name

MEETINGS = 2  # that a stage in lanes adds: one before it, one behind
TECHNIQUE = "parts of layers in lanes"


@dataclass(frozen=True, slots=True)
class CoreSpeed:
    """What a core does in a cycle, and the cycles of a meeting of several."""

    macs: float
    bytes: float  # that come from memory, or go there
    elements: float  # of a layer that multiplies nothing
    meeting: float
    panel: int  # channels that kernels compute together


# A meeting of threads on cores that are awake takes half a microsecond; waiting for the slowest comes on top.
VECTORS = CoreSpeed(macs=8, bytes=4, elements=1, meeting=4000, panel=16)
SCALARS = CoreSpeed(macs=0.5, bytes=1, elements=0.1, meeting=500, panel=4)


def speed_of(target: Target | None) -> CoreSpeed:
    return VECTORS if target is None or target.family is Family.SIMD else SCALARS


def laned(
    network: Network,
    plan: Plan,
    lanes: int,
    board: Board | None = None,
    target: Target | None = None,
    ram: int | None = None,
) -> Plan:
    """The plan with stages in lanes where that pays and fits; the plan itself where it never does.

    What lanes keep apart takes RAM: stages that have none left go back to one lane.
    """
    schedules = lane_schedules(network, plan, lanes, target)
    while any(schedule.lanes > 1 for schedule in schedules):
        made = _planned(network, plan, schedules, board)
        if fit(made, board, ram).ram_fits or not fit(plan, board, ram).ram_fits:
            return made
        fullest = max(
            (at for at, stage in enumerate(made.program.stages) if stage.schedule.lanes > 1),
            key=made.live_bytes.__getitem__,
        )
        layers = made.program.stages[fullest].layers
        schedules = [_in_one(each) if each.layers == layers else each for each in schedules]
        schedules = [each for each in schedules if not each.is_whole]
    return plan


def _planned(network: Network, plan: Plan, schedules: Sequence[FusionSchedule], board: Board | None) -> Plan:
    buffers = {buffer.name: buffer for buffer in plan.buffers}
    names = {stage.name: room_name(stage.name) for stage in plan.program.stages}
    rooms = tuple((stage, buffers[room].size) for stage, room in names.items() if room in buffers)
    is_pulling = any(plan.views[name].window for name in network.inputs)
    techniques = PLAIN if plan.plain else Techniques(rooms=rooms)
    techniques = replace(techniques, pulled=pulled_inputs(network) if is_pulling else ())
    made = plan_network(
        network,
        board,
        techniques=techniques,
        alignment=plan.alignment,
        explain=False,
        schedules=schedules,
        outside=plan.outside,
    )
    savings = (*plan.savings, Saving(TECHNIQUE, made.peak_bytes)) if plan.savings else ()
    return replace(made, savings=savings, plain=plan.plain)


def _in_one(schedule: FusionSchedule) -> FusionSchedule:
    """The schedule without lanes: a single layer then runs whole."""
    if schedule.is_undivided:
        return replace(schedule, splits=())
    return replace(schedule, splits=(replace(schedule.splits[0], lanes=1), *schedule.splits[1:]))


def lane_schedules(network: Network, plan: Plan, lanes: int, target: Target | None = None) -> list[FusionSchedule]:
    """How the plan's stages run: those that pay in lanes, layers in parts as they were; all others run whole."""
    speed, found = speed_of(target), []
    for stage in plan.program.stages:
        if not set(stage.layers) <= network.by_name.keys():  # a copy that the plan makes
            continue
        schedule = stage.schedule
        if not _pulls(plan, stage):
            schedule = next(_laned(network, plan, schedule, lanes, speed), schedule)
        is_left = schedule.is_whole or (_pulls(plan, stage) and len(schedule.layers) == 1)
        found += [] if is_left else [schedule]
    return found


def _pulls(plan: Plan, stage: Stage) -> bool:
    names = {name for layer in stage.layers for name in plan.network.by_name[layer].inputs}
    return any(name in names and plan.views[name].window for name in plan.network.inputs)


def _laned(
    network: Network, plan: Plan, schedule: FusionSchedule, lanes: int, speed: CoreSpeed
) -> Iterator[FusionSchedule]:
    """The schedule in lanes, if that pays."""
    layers = [network.by_name[name] for name in schedule.layers]
    if not schedule.is_whole:
        cycles = sum(_cycles(network, layer, _whole(network, layer), speed) for layer in layers)
        if schedule.splits and cycles * (1 - 1 / lanes) > MEETINGS * speed.meeting:
            shared = replace(schedule, splits=(replace(schedule.splits[0], lanes=lanes), *schedule.splits[1:]))
            yield from [shared] if not any(problems(network, shared, plan.free)) else []
        return
    (layer,) = layers
    alone = _cycles(network, layer, _whole(network, layer), speed)
    best = alone - MEETINGS * speed.meeting
    chosen = None
    for split in _splits(network, layer, lanes, speed):
        slowest = max(_cycles(network, layer, part, speed) for part in _parts(network, layer, split))
        shared = FusionSchedule(schedule.layers, (split,))
        if slowest < best and not any(problems(network, shared, plan.free)):
            best, chosen = slowest, shared
    if chosen is not None:
        yield chosen


def _splits(network: Network, layer: Layer, lanes: int, speed: CoreSpeed) -> Iterator[Split]:
    """The ways to deal a layer out: a part for each lane, as even as can be."""
    shape = network.tensors[layer.output].shape
    if len(shape) == 4 and shape[ROWS] > 1:
        ends = even_ends(shape[ROWS], lanes)
        yield Split(ROWS, ends, len(ends))
    is_product = isinstance(layer.op, Dense) or (isinstance(layer.op, Conv2d) and layer.op.groups == 1)
    if is_product and shape[CHANNELS] > speed.panel:
        ends = even_ends(shape[CHANNELS], lanes, speed.panel)
        yield Split(CHANNELS, ends, len(ends))


def _parts(network: Network, layer: Layer, split: Split) -> Iterator[Region]:
    whole = _whole(network, layer)
    axis = split.axis % len(whole.bounds)
    return (whole.with_axis(axis, part) for part in pairwise((0, *split.ends)))


def _whole(network: Network, layer: Layer) -> Region:
    return Region.whole(network.tensors[layer.output].shape)


def _cycles(network: Network, layer: Layer, region: Region, speed: CoreSpeed) -> float:
    """What a core takes for a region of the layer's output."""
    shapes, tensors = network.shapes(layer), network.tensors
    read = zip(layer.inputs, layer.op.needs(region, shapes), strict=True)
    moved = sum(part.size * tensors[name].dtype.bytes for name, part in read)
    moved += region.size * tensors[layer.output].dtype.bytes
    macs = layer.op.macs(region, shapes)
    return macs / speed.macs + moved / speed.bytes + (0 if macs else region.size / speed.elements)
