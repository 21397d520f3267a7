"""Chooses the stages that several cores share, and the axis: those where it saves more cycles than barriers cost.

The cycles of a core are estimated from multiplications, bytes moved and function evaluations. A lane along rows reads
all weights and its part of the image; a lane along channels reads its part of the weights and the whole image. Rows are
contiguous, so two lanes write to the same cache line only at their common border. Channels are not: they are split only
where kernels multiply panels of channels, and by whole cache lines, which pays in layers with few rows and many
weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from ..memory import PLAIN, Techniques
from ..memory import plan as plan_network
from ..memory.fit import fit
from ..memory.planner import pulled_inputs
from ..network import Layer, Network, Region
from ..network.operators import Conv2d, Dense
from ..platform import Board
from ..platform.target import Family, Target
from ..program import CHANNELS, ROWS, BufferKind, FusionSchedule, Plan, Saving, Split, even_ends
from ..program.legal import problems

BARRIERS = 2  # added by a stage in lanes: one before it, one after it
TECHNIQUE = "parts of layers in lanes"


@dataclass(frozen=True, slots=True)
class CoreSpeed:
    """The performance of a core per cycle, and the cycles of a barrier."""

    macs: float
    narrow: float  # factor for MACs with 8-bit weights
    depthwise: float  # MACs where a sum reads one channel: short sums, whose ends take as long as the products
    bytes: float  # read from or written to memory
    elements: float  # of a layer without MACs
    barrier: float  # per additional lane
    start: float  # cycles until sleeping cores join a run
    panel: int  # channels that kernels compute together
    line: int  # bytes of a cache line, on which cores contend


# Threads on running cores synchronise in a tenth of a microsecond, plus the wait for the slower one; a sleeping one
# needs some tens of microseconds to wake up.
VECTORS = CoreSpeed(8, narrow=2, depthwise=1, bytes=4, elements=1, barrier=800, start=50_000, panel=16, line=64)
SCALARS = CoreSpeed(0.5, narrow=1, depthwise=0.25, bytes=1, elements=0.1, barrier=500, start=5000, panel=4, line=1)


def speed_of(target: Target | None) -> CoreSpeed:
    return VECTORS if target is None or target.family is Family.SIMD else SCALARS


def with_lanes(
    network: Network,
    plan: Plan,
    lanes: int,
    board: Board | None = None,
    target: Target | None = None,
    ram: int | None = None,
) -> Plan:
    """The plan with stages in lanes where that is faster and fits; otherwise the plan itself.

    Buffers inside a stage exist once per lane: stages without enough RAM return to one lane.
    """
    schedules = lane_schedules(network, plan, lanes, target)
    while any(schedule.lanes > 1 for schedule in schedules):
        made = _planned(network, plan, schedules, board, max(plan.alignment, speed_of(target).line))
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


def _planned(
    network: Network, plan: Plan, schedules: Sequence[FusionSchedule], board: Board | None, alignment: int
) -> Plan:
    rooms = (buffer for buffer in plan.buffers if buffer.kind is BufferKind.ROOM)
    scratch_bytes = tuple((buffer.owner, buffer.size) for buffer in rooms)
    techniques = PLAIN if plan.plain else Techniques(scratch_bytes=scratch_bytes)
    techniques = replace(techniques, pulled=pulled_inputs(network) if plan.pulled else ())
    made = plan_network(
        network,
        board,
        techniques=techniques,
        alignment=alignment,
        explain=False,
        schedules=schedules,
        outside=plan.outside,
    )
    savings = (*plan.savings, Saving(TECHNIQUE, made.peak_bytes)) if plan.savings else ()
    return replace(made, savings=savings, plain=plan.plain)


def _in_one(schedule: FusionSchedule) -> FusionSchedule:
    """The schedule without lanes; a single layer then runs whole."""
    if schedule.is_undivided:
        return replace(schedule, splits=())
    return replace(schedule, splits=(replace(schedule.splits[0], lanes=1), *schedule.splits[1:]))


def lane_schedules(network: Network, plan: Plan, lanes: int, target: Target | None = None) -> list[FusionSchedule]:
    """The schedules of all stages: in lanes where that is faster, otherwise unchanged.

    If all stages together save less than starting the lanes costs, none runs in lanes.
    """
    speed = speed_of(target)
    shared, gain = _chosen(network, plan, lanes, speed)
    return shared if gain > speed.start else _chosen(network, plan, 1, speed)[0]


def _chosen(network: Network, plan: Plan, lanes: int, speed: CoreSpeed) -> tuple[list[FusionSchedule], float]:
    """The schedules of all stages, and the total of cycles saved."""
    schedules: list[FusionSchedule] = []
    gain = 0.0
    for stage in plan.program.stages:
        if not set(stage.layers) <= network.by_name.keys():  # a copy added by the plan
            continue
        schedule = stage.schedule
        if not plan.pulls(stage) and lanes > 1:
            schedule, saved = _schedule_with_lanes(network, plan, schedule, lanes, speed)
            gain += saved
        is_left = schedule.is_whole or (plan.pulls(stage) and len(schedule.layers) == 1)
        schedules += [] if is_left else [schedule]
    return schedules, gain


def _schedule_with_lanes(
    network: Network, plan: Plan, schedule: FusionSchedule, lanes: int, speed: CoreSpeed
) -> tuple[FusionSchedule, float]:
    """The schedule in lanes and the cycles saved; the unchanged schedule if lanes are not faster."""
    layers = [network.by_name[name] for name in schedule.layers]
    if not schedule.is_whole:
        cycles = sum(_cycles(network, layer, _whole(network, layer), speed) for layer in layers)
        saved = cycles * (1 - 1 / lanes) - _barriers(lanes, speed)
        if schedule.splits and saved > 0:
            shared = replace(schedule, splits=(replace(schedule.splits[0], lanes=lanes), *schedule.splits[1:]))
            return (schedule, 0.0) if any(problems(network, shared, plan.free)) else (shared, saved)
        return schedule, 0.0
    (layer,) = layers
    alone = _cycles(network, layer, _whole(network, layer), speed)
    least = best = alone - _barriers(lanes, speed)
    chosen = schedule
    for split in _splits(network, layer, lanes, speed):
        slowest = max(_cycles(network, layer, part, speed) for part in _parts(network, layer, split))
        shared = FusionSchedule(schedule.layers, (split,))
        if slowest < best and not any(problems(network, shared, plan.free)):
            best, chosen = slowest, shared
    return chosen, least - best


def _barriers(lanes: int, speed: CoreSpeed) -> float:
    return BARRIERS * speed.barrier * (lanes - 1)


def _splits(network: Network, layer: Layer, lanes: int, speed: CoreSpeed) -> Iterator[Split]:
    """The splits of a layer into equal parts, one per lane, along each axis that allows it."""
    shape = network.tensors[layer.output].shape
    if len(shape) == 4 and shape[ROWS] > 1:
        ends = even_ends(shape[ROWS], lanes)
        yield Split(ROWS, ends, len(ends))
    is_product = isinstance(layer.op, Dense) or (isinstance(layer.op, Conv2d) and layer.op.groups == 1)
    pixels = prod(shape[:-1])
    unit = max(speed.panel, speed.line // network.tensors[layer.output].dtype.bytes if pixels > 1 else 1)
    if is_product and shape[CHANNELS] > unit:
        ends = even_ends(shape[CHANNELS], lanes, unit)
        yield Split(CHANNELS, ends, len(ends))


def _parts(network: Network, layer: Layer, split: Split) -> Iterator[Region]:
    whole = _whole(network, layer)
    axis = split.axis % len(whole.bounds)
    return (whole.with_axis(axis, part) for part in pairwise((0, *split.ends)))


def _whole(network: Network, layer: Layer) -> Region:
    return Region.whole(network.tensors[layer.output].shape)


def _cycles(network: Network, layer: Layer, region: Region, speed: CoreSpeed) -> float:
    """The cycles that one core takes for a region of the layer's output."""
    shapes, tensors = network.shapes(layer), network.tensors
    read = zip(layer.inputs, layer.op.needs(region, shapes), strict=True)
    moved = sum(part.size * tensors[name].dtype.bytes for name, part in read)
    moved += region.size * tensors[layer.output].dtype.bytes
    macs = layer.op.macs(region, shapes)
    is_narrow = any(name in network.constants and tensors[name].dtype.bytes == 1 for name in layer.inputs)
    is_depthwise = isinstance(layer.op, Conv2d) and layer.op.groups > 1 and shapes[1][-1] == 1
    pace = speed.depthwise if is_depthwise else speed.macs * (speed.narrow if is_narrow else 1)
    return macs / pace + moved / speed.bytes + (0 if macs else region.size / speed.elements)
