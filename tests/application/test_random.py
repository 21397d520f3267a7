"""Random applications with all relations: layouts that the judge accepts, planted overlaps that it finds, the paper's
algorithms in their order."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from edgewright.application.paper.edges import PaperEdge, paper_application
from edgewright.application.paper.reuse import exact, naive, reuse, total
from edgewright.application.planning import planners
from edgewright.application.preemption_points import with_points
from edgewright.application.slots import minimise_slots
from edgewright.errors import EdgewrightError, InputError
from edgewright.memory.joint.layout import JointLayout, lay_out_jointly
from edgewright.memory.joint.placing import is_conflict_free
from edgewright.memory.layout import ConflictGraph
from edgewright.program.deployment_check import checked_deployment
from tests.application.cases import random_application
from tests.application.judge import Interleaving

FEW, MANY = range(3), range(3, 43)
SEEDS = [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]
ORDERS = 20  # interleavings in which an overlap that the judge accepts must do no harm


def laid_out(seed: int, folder: Path) -> JointLayout:
    """The joint layout of each network's plan as asked for; some applications are refused with a sentence."""
    app = random_application(seed, folder)
    own = planners(app)
    plans = {name: planner.fastest for name, planner in own.items()}
    times = {name: planner.times(plans[name]) for name, planner in own.items()}
    sized, _ = minimise_slots(app.deployment.with_plans(plans), times)
    return lay_out_jointly(with_points(app, sized, {}))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_applications_keep_what_is_needed(seed: int, tmp_path: Path) -> None:
    try:
        layout = laid_out(seed, tmp_path)
    except EdgewrightError as error:
        pytest.skip(f"refused: {error}")
    buffers = {buffer.name: buffer for buffer in layout.buffers}
    assert is_conflict_free(layout.graph, buffers, layout.placement)
    assert layout.bound_bytes <= layout.peak_bytes <= sum(layout.graph.sizes.values())
    assert not is_refused(layout)
    for order in range(3):
        assert list(Interleaving(layout, order).run(50)) == []
    planted, harmless = random.Random(seed).sample(sorted(layout.graph.pairs), min(6, len(layout.graph.pairs))), 0
    for one, other in planted:
        if (one, other) not in layout.graph.gaps and (other, one) not in layout.graph.gaps:
            wrong = overlaid(layout, one, other)
            if not is_refused(wrong):  # a layer that may run in place: harmless
                assert not any(list(Interleaving(wrong, order).run(80)) for order in range(ORDERS)), (one, other)
                harmless += 1
    assert harmless < max(2, len(planted))


def is_refused(layout: JointLayout) -> bool:
    """Whether the judge that users get refuses the layout."""
    try:
        checked_deployment(layout.deployment)
    except InputError:
        return True
    return False


def overlaid(layout: JointLayout, one: str, other: str) -> JointLayout:
    """The layout with one buffer where another lies."""
    offsets = {**layout.placement.offsets, one: layout.at(other)}
    peak = max(layout.placement.peak, *(offsets[name] + size for name, size in layout.graph.sizes.items()))
    return replace(layout, placement=replace(layout.placement, offsets=offsets, peak=peak))


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_needs_no_more_than_algorithm_8_and_that_no_more_than_nothing(seed: int, tmp_path: Path) -> None:
    try:
        paper = paper_application(random_application(seed, tmp_path))
    except EdgewrightError as error:
        pytest.skip(f"refused: {error}")
    edges = paper.edges({})
    buffers = reuse(edges, paper.meet)
    least = exact(edges, paper.meet)
    assert least.bound <= least.peak <= total(buffers) <= naive(edges)
    for buffer in buffers:
        assert not any(paper.meet(x, y) for n, x in enumerate(buffer.edges) for y in buffer.edges[:n])
    some = edges[:8]
    assert exact(some, paper.meet).peak == lowest(some, paper.meet)


def lowest(edges: list[PaperEdge], meet: object) -> int:
    """The least peak by brute force over the orders of first fit, cut off where one is no better than the best."""
    assert callable(meet)
    graph = ConflictGraph(
        {f"e{n}": edge.size for n, edge in enumerate(edges)},
        frozenset((f"e{n}", f"e{m}") for n, x in enumerate(edges) for m, y in enumerate(edges[:n]) if meet(x, y)),
    )
    best = sum(graph.sizes.values())

    def go(at: dict[str, int], peak: int) -> None:
        nonlocal best
        if peak >= best:
            return
        if len(at) == len(graph.sizes):
            best = peak
            return
        for name, size in graph.sizes.items():
            if name in at:
                continue
            here = 0
            for low, high in sorted((at[y], at[y] + graph.sizes[y]) for y in at if graph.meets(name, y)):
                if here + size <= low:
                    break
                here = max(here, high)
            go({**at, name: here}, max(peak, here + size))

    go({}, 0)
    return best
