"""Writes a solution down as a Plan: stages and steps, buffers, views, predictions."""

from __future__ import annotations

from collections.abc import Mapping

from ..program import (
    ROWS,
    Buffer,
    FusionSchedule,
    Plan,
    Program,
    Saving,
    Stage,
    Sweep,
    View,
    arena_sizes,
    check_order,
)
from ..program.plan import copied_parts, slot_name
from .footprint import view_of
from .problems import RESERVED, PlanningProblem
from .solver import Solution
from .views import Subview


def assemble(
    solution: Solution,
    memories: Mapping[str, str],
    *,
    bound: int,
    savings: tuple[Saving, ...],
    board: str | None,
    plain: bool,
) -> Plan:
    problem, network = solution.problem, solution.problem.network
    offsets = {**solution.placement.offsets, **dict.fromkeys(problem.outside, 0)}
    memories = {**memories, **{root: slot_name(name) for root, name in problem.outside.items()}}
    spans = dict(problem.lifetimes(solution.order.steps))
    sizes = {
        root: store.size if root == RESERVED else problem.techniques.bytes(network.tensors[root])
        for root, store in problem.stores.items()
    }
    lanes: dict[str, int] = {}
    for position, step in enumerate(solution.order.steps):
        for name, part in problem.scratch(problem.nodes[step]).items():
            spans[name], sizes[name], lanes[name] = (position, position), part.size, part.lanes
    buffers = tuple(
        Buffer(name, sizes[name], offsets[name], *spans[name], memory=memories[name], lanes=lanes.get(name, 1))
        for name in sizes
    )
    sweeps = _sweeps(solution, memories)
    stages = tuple(_stage(problem, step, sweeps[step]) for step in solution.order.steps)
    free = tuple(layer.name for layer in network.layers if layer.name in problem.views.free)
    views = {name: _view(problem, name, place) for name, place in problem.views.places.items()}
    program = check_order(Program(network, stages, free, copied_parts(network, views)))
    own = [buffer for buffer in buffers if buffer.name not in problem.outside]
    peak = sum(arena_sizes(own, problem.alignment).values())
    return Plan(
        program=program,
        buffers=tuple(sorted(buffers, key=lambda b: (b.first, b.offset, b.name))),
        views=views,
        alignment=problem.alignment,
        peak_bytes=peak,
        bound_bytes=bound,
        weights_bytes=network.weight_bytes,
        macs_plain=network.total_macs,
        method=f"order: {solution.order.method}; layout: {solution.placement.method}",
        savings=savings,
        board=board,
        plain=plain,
        outside=tuple(name for name in (*network.inputs, *network.outputs) if name in problem.techniques.outside),
    )


def _view(problem: PlanningProblem, name: str, place: Subview) -> View:
    """The address of a tensor: whole in its buffer, or the part kept inside a stage or of a pulled input."""
    if place.root in problem.locals:
        return view_of(problem.network, name, place, problem.locals[place.root])
    rows = dict(problem.techniques.pulled).get(place.root)
    return View(place.root, place.offset, place.strides, (ROWS, rows) if rows is not None else None)


def _stage(problem: PlanningProblem, step: int, sweep: Sweep) -> Stage:
    """A stage as scheduled, or a whole layer; a layer that reads a pulled input runs row by row."""
    node = problem.nodes[step]
    if node.footprint:
        return Stage(node.name, node.footprint.schedule)
    (layer,) = node.layers
    is_pulling = any(name in dict(problem.techniques.pulled) for name in layer.inputs)
    is_swept = layer.name not in problem.views.in_place
    return Stage(node.name, FusionSchedule((layer.name,), streamed=is_pulling), sweep if is_swept else Sweep.FORWARD)


def _sweeps(solution: Solution, memories: Mapping[str, str]) -> Mapping[int, Sweep]:
    """The direction of each step: forwards, unless the output's address is only safe backwards."""
    problem = solution.problem
    at, shared = solution.placement.offsets, problem.gaps(solution.order.steps)
    sweeps = {
        step: Sweep.CHANNELS if node.name in problem.views.planes else Sweep.FORWARD
        for step, node in enumerate(problem.nodes)
    }
    for (step, x, y), safe in problem.pairs.items():
        delta = at[y] - at[x]
        if (x, y) in shared and memories[x] == memories[y] and -safe.below < delta < problem.stores[x].size:
            sweeps[step] = Sweep.BACKWARD
    return sweeps
