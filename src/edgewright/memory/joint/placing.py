"""Addresses for the buffers of several plans; buffers that share bytes between calls of a stage keep their distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...program import Plan
from ..layout import ConflictGraph, LayoutEffort, Placement, conflicts, place_graph
from ..layout.graph import components
from ..layout.problem import align_up
from .conflicts import JointBuffer


def place(
    graph: ConflictGraph,
    buffers: Mapping[str, JointBuffer],
    plans: Mapping[str, Plan],
    bound: int,
    effort: LayoutEffort,
) -> Placement:
    """The placement of each component of the graph; a component of a single plan keeps its addresses."""
    offsets: dict[str, int] = {}
    peak, methods = 0, []
    for piece in sorted(components(graph), key=lambda piece: -sum(piece.sizes.values())):
        planned = _as_planned(piece, buffers)
        if planned is not None:
            trying = effort if effort is LayoutEffort.THOROUGH else LayoutEffort.QUICK
            again = _placed_together(piece, buffers, peak, trying)
            planned = again if again.peak < planned.peak else planned
            offsets |= planned.offsets
            peak, bound, method = max(peak, planned.peak), max(bound, min(again.bound, planned.peak)), planned.method
        else:
            placement = _placed_together(piece, buffers, peak, effort)
            around = _around_the_largest(piece, buffers, plans)
            if around is not None and around.peak < placement.peak and is_conflict_free(piece, buffers, around):
                placement = replace(around, bound=min(placement.bound, around.peak))
            offsets |= placement.offsets
            peak, bound, method = max(peak, placement.peak), max(bound, placement.bound), placement.method
        methods += [] if method in methods else [method]
    return Placement(offsets, peak, min(bound, peak), "; ".join(methods))


def _placed_together(
    graph: ConflictGraph, buffers: Mapping[str, JointBuffer], bound: int, effort: LayoutEffort
) -> Placement:
    """The placement of a component. Buffers that share bytes between calls of a stage keep their distance."""
    whole, home = grouped_by_calls(graph, buffers)
    placement = place_graph(whole, bound=bound, effort=effort)
    return replace(placement, offsets={name: placement.offsets[first] + at for name, (first, at) in home.items()})


def grouped_by_calls(
    graph: ConflictGraph, buffers: Mapping[str, JointBuffer]
) -> tuple[ConflictGraph, Mapping[str, tuple[str, int]]]:
    """The graph with such buffers merged; for each buffer, the first of its group and the offset from it."""
    home: dict[str, tuple[str, int]] = {}
    sizes: dict[str, int] = {}
    starts = {name: buffers[name].planned or 0 if _life(buffers[name]) else 0 for name in graph.sizes}
    for name, at in sorted(starts.items(), key=lambda entry: entry[::-1]):
        for first in sizes:
            is_alike = _life(buffers[name]) is not None and _life(buffers[first]) == _life(buffers[name])
            inside = at - starts[first]
            if is_alike and not {(name, first), (first, name)} & graph.gaps.keys() and inside < sizes[first]:
                home[name], sizes[first] = (first, inside), max(sizes[first], inside + graph.sizes[name])
                break
        else:
            home[name], sizes[name] = (name, 0), graph.sizes[name]
    alone = {name for name in sizes if sizes[name] == graph.sizes[name]}
    conflicting = {(home[x][0], home[y][0]) for x, y in graph.pairs if home[x][0] != home[y][0]}
    gaps = {pair: gap for pair, gap in graph.gaps.items() if alone.issuperset(pair)}
    return ConflictGraph(sizes, frozenset(conflicting), gaps, graph.alignment), home


def _life(buffer: JointBuffer) -> tuple[str, int, int] | None:
    """The only part that uses the buffer, and the stages from which to which."""
    if len(buffer.uses) != 1 or buffer.is_always:
        return None
    return buffer.uses[0].part, buffer.uses[0].first, buffer.uses[0].last


def _around_the_largest(
    graph: ConflictGraph, buffers: Mapping[str, JointBuffer], plans: Mapping[str, Plan]
) -> Placement | None:
    """The largest plan as it was laid out alone, with the others around it, as blocks or buffer by buffer.

    This keeps its overlaps between calls. None if buffers belong to several parts, or to none.
    """
    own: dict[str, dict[str, int]] = {}
    for name in graph.sizes:
        if (at := buffers[name].planned) is None:
            return None
        own.setdefault(buffers[name].uses[0].part, {})[name] = at
    first, *others = sorted(own, key=lambda part: (-plans[part].peak_bytes, part))
    block = _stacked_blocks(graph, own[first], [own[part] for part in others])
    rest = sorted((name for part in others for name in own[part]), key=lambda name: (-graph.sizes[name], name))
    single = _stacked_blocks(graph, own[first], [{name: 0} for name in rest])
    best = min((single, block), key=lambda offsets: _peak(graph, offsets))
    return Placement(best, _peak(graph, best), 0, "around the largest plan")


def is_conflict_free(graph: ConflictGraph, buffers: Mapping[str, JointBuffer], placement: Placement) -> bool:
    """Whether conflicting buffers do not overlap. Buffers that share bytes between calls of a stage may, unless they
    are kept."""
    return all(
        _life(buffers[x]) is not None and _life(buffers[x]) == _life(buffers[y])
        for x, y in conflicts(graph.problem(), placement)
    )


def _stacked_blocks(
    graph: ConflictGraph, there: Mapping[str, int], blocks: Sequence[Mapping[str, int]]
) -> dict[str, int]:
    """Places the blocks one after the other, each at the lowest address where it overlaps no conflicting buffer. Blocks
    move by multiples of the alignment, and scratch needs a larger alignment than other buffers."""
    placed = dict(there)
    for block in blocks:
        near = [(mine, other) for mine in block for other in placed if graph.meets(mine, other)]
        above = (placed[other] + graph.gap(other, mine) - block[mine] for mine, other in near)
        steps = {0, *(align_up(step, graph.alignment) for step in above)}
        by = min(
            step
            for step in steps
            if step >= 0
            and not any(
                -graph.gap(mine, other) < block[mine] + step - placed[other] < graph.gap(other, mine)
                for mine, other in near
            )
        )
        placed |= {name: at + by for name, at in block.items()}
    return placed


def _peak(graph: ConflictGraph, offsets: Mapping[str, int]) -> int:
    return max(at + graph.sizes[name] for name, at in offsets.items())


def _as_planned(piece: ConflictGraph, buffers: Mapping[str, JointBuffer]) -> Placement | None:
    """The addresses of these buffers in their only plan; None if others use them, or if some are kept from others."""
    offsets = {name: at for name in piece.sizes if (at := buffers[name].planned) is not None}
    if len(offsets) < len(piece.sizes) or len({buffers[name].uses[0].part for name in offsets}) > 1:
        return None
    peak = max(offsets[name] + size for name, size in piece.sizes.items())
    placement = Placement(offsets, peak, 0, "as planned")
    is_kept = any(buffers[name].is_always for name in piece.sizes)
    return None if is_kept and conflicts(piece.problem(), placement) else placement
