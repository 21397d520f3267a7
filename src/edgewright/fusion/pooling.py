"""Fuses layers with the following pool: both run a few rows at a time, so the large tensor between them is never whole.

The first layers of many networks produce the largest tensors, and a pool follows. On a processor with caches the fused
stage takes as long as the two layers one after the other: weights and rows stay in a core's cache, no row is computed
twice, and no row is kept for the next step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from ..memory import plan as plan_network
from ..memory.step_sizes import weights_read
from ..network import Layer, Network
from ..network.operators import AvgPool2d, MaxPool2d
from ..program import ROWS, FusionSchedule, Plan, rows_needed
from ..program.legal import problems

CACHED = 256 * 1024  # bytes of rows and weights that may stay in a core's own cache


def with_pools(network: Network, plan: Plan) -> Plan:
    """The plan of whole layers, with pools fused to the layers before them where that saves RAM."""
    schedules = list(pool_schedules(network, plan.free))
    if not schedules:
        return plan
    made = plan_network(network, outside=plan.outside, alignment=plan.alignment, explain=False, schedules=schedules)
    return made if made.peak_bytes < plan.peak_bytes else plan


def pool_schedules(network: Network, free: Collection[str] = ()) -> Iterator[FusionSchedule]:
    """A schedule for each convolution or dense layer followed by a pool that reads each of its rows once."""
    for pool in network.layers:
        maker = network.producers.get(pool.inputs[0])
        if maker is None or not network.macs(maker) or not isinstance(pool.op, MaxPool2d | AvgPool2d):
            continue
        schedule = _schedule(network, maker, pool)
        if schedule is not None and not any(problems(network, schedule, free)):
            yield schedule


def _schedule(network: Network, maker: Layer, pool: Layer) -> FusionSchedule | None:
    """The pair row by row, in steps that fit the cache; None if everything fits, or not even one step."""
    between, result = network.tensors[maker.output], network.tensors[pool.output]
    if between.name in network.outputs or len(network.readers[between.name]) > 1 or result.bytes >= between.bytes:
        return None
    rows = rows_needed(network, pool, between.name) if len(result.shape) == len(between.shape) == 4 else None
    if rows is None or any(stop > start for (_, stop), (start, _) in pairwise(rows)):
        return None
    room = CACHED - weights_read(network, maker)
    height, given = between.shape[ROWS], result.shape[ROWS]
    count = given * room // between.bytes  # rows of the result per step
    if not 0 < count < given:
        return None
    return FusionSchedule(
        (maker.name, pool.name), streamed=True, rows=((maker.name, count * height // given), (pool.name, count))
    )
