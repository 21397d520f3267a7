"""Several memories: against every assignment, and the cases that matter."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import Infeasible, InputError
from edgewright.memory.layout import (
    Item,
    LayoutProblem,
    NotFound,
    conflicts,
    place_in_memories,
    place_optimal,
)


def part(problem: LayoutProblem, names: set[str]) -> LayoutProblem:
    gaps = {pair: g for pair, g in problem.gaps.items() if names.issuperset(pair)}
    return LayoutProblem(tuple(i for i in problem.items if i.name in names), gaps, problem.alignment)


def least_cost(problem: LayoutProblem, capacities: list[int], traffic: dict[str, int]) -> int | None:
    best = None
    for ranks in itertools.product(range(len(capacities)), repeat=len(problem.items)):
        at = dict(zip((i.name for i in problem.items), ranks, strict=True))
        parts = [part(problem, {n for n, r in at.items() if r == m}) for m in range(len(capacities))]
        if all(place_optimal(p).peak <= c for p, c in zip(parts, capacities, strict=True)):
            cost = sum(traffic[n] * r for n, r in at.items())
            best = cost if best is None else min(best, cost)
    return best


@st.composite
def cases(draw: st.DrawFn) -> tuple[LayoutProblem, list[int], dict[str, int]]:
    items = []
    for n in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, 3))
        items.append(Item(f"b{n}", start, start + draw(st.integers(1, 3)), draw(st.integers(1, 9))))
    gaps = {}
    if len(items) > 1 and draw(st.booleans()):
        gaps["b0", "b1"] = (draw(st.integers(0, items[0].size)), draw(st.integers(0, items[1].size)))
    capacities = draw(st.lists(st.integers(0, 16), min_size=2, max_size=3))
    return (
        LayoutProblem(tuple(items), gaps, draw(st.sampled_from((1, 4)))),
        capacities,
        {i.name: draw(st.integers(0, 9)) for i in items},
    )


@given(cases())
@settings(max_examples=40)
def test_least_cost_is_that_of_all_assignments(case: tuple[LayoutProblem, list[int], dict[str, int]]) -> None:
    problem, capacities, traffic = case
    memories = [(f"m{n}", c) for n, c in enumerate(capacities)]
    expected = least_cost(problem, capacities, traffic)
    if expected is None:
        with pytest.raises(Infeasible, match="no placement exists in the memories m0") as raised:
            place_in_memories(problem, memories, traffic)
        assert not isinstance(raised.value, NotFound)
        return
    found = place_in_memories(problem, memories, traffic)
    assert found.optimal
    assert found.cost == expected
    for name, capacity in memories:
        inside = part(problem, {n for n, m in found.memory.items() if m == name})
        assert conflicts(inside, found.placements[name]) == []
        assert found.placements[name].peak <= capacity


def test_everything_in_the_fastest_if_it_fits() -> None:
    problem = LayoutProblem((Item("a", 0, 2, 6), Item("b", 1, 3, 4)))
    found = place_in_memories(problem, [("tcm", 10), ("sram", 100)], {})
    assert set(found.memory.values()) == {"tcm"}
    assert found.placements["tcm"].peak == 10


def test_the_busiest_stays_fast() -> None:
    problem = LayoutProblem((Item("big", 0, 2, 60), Item("busy", 0, 2, 50), Item("small", 0, 2, 10)))
    found = place_in_memories(problem, [("tcm", 64), ("sram", 100)], {"big": 60, "busy": 500, "small": 20})
    assert found.memory == {"big": "sram", "busy": "tcm", "small": "tcm"}
    assert (found.cost, found.bound) == (60, 60)


def test_an_impossible_one_has_numbers() -> None:
    problem = LayoutProblem((Item("a", 3, 4, 60), Item("b", 3, 4, 50)))
    with pytest.raises(Infeasible, match=r"tcm \(16 bytes\), sram \(60 bytes\); 110 bytes are live at once at time 3"):
        place_in_memories(problem, [("tcm", 16), ("sram", 60)], {})
    with pytest.raises(InputError, match="different names"):
        place_in_memories(problem, [("a", 1), ("a", 1)], {})
