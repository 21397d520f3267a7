"""A joint layout in named memories: all in the first memory if it fits, else divided, with the busiest buffers in the
fastest memory.

Networks without conflicts can use the same memory at different times, so each component of the conflict graph is placed
as if all memories were free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ...program import Plan
from ..layout import ConflictGraph, place_graph_in_memories
from ..layout.graph import components
from .layout import JointLayout
from .placing import grouped_by_calls


def in_memories(layout: JointLayout, memories: Mapping[str, int]) -> JointLayout:
    """The layout in these memories (name and bytes, the fastest first); raises Infeasible if they do not hold it."""
    unit = layout.graph.alignment
    rooms = {name: size // unit * unit for name, size in memories.items()}
    whole = next((name for name, room in rooms.items() if layout.peak_bytes <= room), None)
    if whole is not None:
        return replace(layout, homes=dict.fromkeys(layout.graph.sizes, whole), memories=tuple(memories))
    traffic = traffic_of(layout)
    offsets: dict[str, int] = {}
    homes: dict[str, str] = {}
    for piece in components(layout.graph):
        peak = max(layout.at(name) + size for name, size in piece.sizes.items())
        home = next((name for name, room in rooms.items() if peak <= room), None)
        if home is not None:
            offsets |= {name: layout.at(name) for name in piece.sizes}
            homes |= dict.fromkeys(piece.sizes, home)
        else:
            spread = _spread(layout, piece, rooms, traffic)
            offsets |= spread[0]
            homes |= spread[1]
    peak = max(offsets[name] + size for name, size in layout.graph.sizes.items())
    placement = replace(layout.placement, offsets=offsets, peak=peak, method="spread")
    return replace(layout, placement=placement, homes=homes, memories=tuple(memories))


def traffic_of(layout: JointLayout) -> Mapping[str, int]:
    """Bytes that one run of every network writes to and reads from each buffer: its benefit from a fast memory."""
    own = {name: _plan_traffic(plan) for name, plan in layout.problem.plans.items()}
    traffic = {b.name: sum(own[use.part][use.buffer] for use in b.uses) for b in layout.buffers}
    for buffer in layout.buffers:
        if buffer.fifo is not None:  # each frame uses one of the slots
            size = layout.problem.deployment.tensor(buffer.fifo).bytes
            traffic[buffer.name] = len(buffer.fifo.ends) * size // buffer.fifo.slots
    return traffic


def _plan_traffic(plan: Plan) -> Counter[str]:
    traffic: Counter[str] = Counter()
    for layer in plan.network.layers:
        for tensor in (*layer.inputs, layer.output):
            if tensor in plan.views and tensor not in plan.network.constants:
                traffic[plan.views[tensor].buffer] += plan.network.tensors[tensor].bytes
    return traffic


def _spread(
    layout: JointLayout, piece: ConflictGraph, rooms: Mapping[str, int], traffic: Mapping[str, int]
) -> tuple[Mapping[str, int], Mapping[str, str]]:
    """The memory and address of each buffer of a component; buffers that share bytes between calls stay together."""
    buffers = {buffer.name: buffer for buffer in layout.buffers}
    groups, inside = grouped_by_calls(piece, buffers)
    weight = dict.fromkeys(groups.sizes, 0)
    for name, (first, _) in inside.items():
        weight[first] += traffic[name]
    placed = place_graph_in_memories(groups, tuple(rooms.items()), weight)
    at = {name: offset for one in placed.placements.values() for name, offset in one.offsets.items()}
    return (
        {name: at[first] + within for name, (first, within) in inside.items()},
        {name: placed.memory[first] for name, (first, _) in inside.items()},
    )
