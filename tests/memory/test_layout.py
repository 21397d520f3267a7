"""Layout: the papers' examples, and small random problems against every possible arrangement."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import Infeasible, InputError
from edgewright.memory.layout import (
    Item,
    LayoutEffort,
    LayoutProblem,
    NotFound,
    Placement,
    conflicts,
    critical,
    lower_bound,
    place_greedy_by_size,
    place_optimal,
)
from edgewright.memory.layout.coarsen import MergeLevel, coarsen
from edgewright.memory.layout.first_fit import first_fit, in_order
from edgewright.memory.layout.grid import to_grid
from edgewright.memory.layout.lanes import to_lanes


def chain(*sizes: int) -> LayoutProblem:
    """Buffers of a chain of layers: each is alive with its neighbours."""
    return LayoutProblem(tuple(Item(f"b{n}", n, n + 2, size) for n, size in enumerate(sizes)))


def quick(problem: LayoutProblem) -> Placement:
    """By first fit alone."""
    return place_optimal(problem, effort=LayoutEffort.QUICK)


def least_peak(problem: LayoutProblem) -> int | None:
    """The optimum by trying every order of every pair that is alive together; None if there is no placement.

    One order of all pairs is a system of differences, whose least solution is a longest path.
    """
    items, a = problem.items, problem.alignment
    pairs = [
        (i, j)
        for i, j in itertools.combinations(range(len(items)), 2)
        if items[i].start < items[j].end and items[j].start < items[i].end
    ]

    def gap(i: int, j: int) -> int:
        x, y = items[i], items[j]
        g = problem.gaps.get((x.name, y.name), problem.gaps.get((y.name, x.name), (y.size, x.size))[::-1])[0]
        return -(-g // a) * a

    best = None
    for choice in itertools.product((False, True), repeat=len(pairs)):
        edges = [(j, i, gap(j, i)) if flip else (i, j, gap(i, j)) for (i, j), flip in zip(pairs, choice, strict=True)]
        at = [item.fixed or 0 for item in items]
        for _ in range(len(items) + 1):
            moved = False
            for i, j, g in edges:
                if at[i] + g > at[j]:
                    at[j], moved = at[i] + g, True
            if not moved:
                break
        if not moved and all(i.fixed in (None, o) for i, o in zip(items, at, strict=True)):
            peak = max(o + i.size for o, i in zip(at, items, strict=True))
            best = peak if best is None else min(best, peak)
    return best


@st.composite
def problems(draw: st.DrawFn, most: int = 5, special: bool = True, fixed: bool = False) -> LayoutProblem:
    items = []
    alignment = draw(st.sampled_from((1, 1, 4)))
    for n in range(draw(st.integers(1, most))):
        start = draw(st.integers(0, 4))
        end = draw(st.integers(start + 1, 6))
        at = draw(st.sampled_from((None, None, 0, 8))) if fixed else None
        items.append(Item(f"b{n}", start, end, draw(st.integers(0, 12)), at))
    gaps = {}
    for x, y in itertools.combinations(items, 2):
        if special and draw(st.integers(0, 2)) == 0:
            gaps[x.name, y.name] = (draw(st.integers(-4, x.size)), draw(st.integers(-4, y.size)))
    return LayoutProblem(tuple(items), gaps, alignment)


def test_greedy_by_size_needs_10_where_8_do() -> None:
    """S 4.3.2, fig. 4.8: a chain of buffers of 5, 3, 2 and 4 units."""
    problem = chain(5, 3, 2, 4)
    assert place_greedy_by_size(problem).peak == 10
    best = place_optimal(problem)
    assert (best.peak, best.bound, best.optimal) == (8, 8, True)


def test_running_example() -> None:
    """S 4.3.2, fig. 4.9: 24576 bytes, the outputs of Conv2 and Conv3; these are critical (S 4.3.3)."""
    sizes = [4 * n for n in (32 * 8, 16 * 4 * 32, 16 * 4 * 32, 16 * 4 * 64, 64, 6)]
    problem = chain(*sizes)
    best = place_optimal(problem)
    assert best.peak == best.bound == 24576
    assert critical(problem, best) == ("b3", "b2")


def test_critical_buffers() -> None:
    """S 4.3.3, fig. 4.10: three chains reach from 100 down to 0; B1 rests on nothing."""
    rows = {  # name: (start, end, offset, size), from the text
        "B1": (0, 1, 40, 60),
        "B2": (1, 2, 0, 10),
        "B3": (1, 2, 10, 40),
        "B4": (1, 3, 50, 20),
        "B5": (1, 3, 70, 30),
        "B6": (2, 3, 30, 20),
        "B7": (2, 3, 0, 30),
        "B8": (3, 4, 80, 20),
        "B9": (3, 4, 0, 80),
    }
    problem = LayoutProblem(tuple(Item(n, s, e, size) for n, (s, e, _, size) in rows.items()))
    placement = Placement({n: offset for n, (_, _, offset, _) in rows.items()}, 100, 100, "the figure")
    assert conflicts(problem, placement) == []
    found = critical(problem, placement)
    assert found[0] == "B9"
    assert set(found) == {"B8", "B9", "B5", "B4", "B3", "B2", "B6", "B7"}


def test_critical_follows_special_pairs() -> None:
    """y trails x at a distance of 2, so both make the peak; z lies beside them."""
    problem = LayoutProblem((Item("x", 0, 2, 10), Item("y", 1, 3, 9), Item("z", 2, 3, 1)), {("x", "y"): (2, 9)})
    placement = Placement({"x": 0, "y": 2, "z": 0}, 11, 10, "by hand")
    assert conflicts(problem, placement) == []
    assert critical(problem, placement) == ("x", "y")


def test_output_in_place_of_its_input() -> None:
    """A gap of zero lets the output begin where the input begins, or lower: one buffer, not two."""
    problem = LayoutProblem((Item("x", 0, 2, 10), Item("y", 1, 3, 10)), {("x", "y"): (10, 0)})
    best = place_optimal(problem)
    assert best.peak == best.bound == 10


@given(problems())
@settings(max_examples=150)
def test_optimum_is_that_of_all_arrangements(problem: LayoutProblem) -> None:
    best = place_optimal(problem)
    assert conflicts(problem, best) == []
    assert best.optimal
    assert best.peak == least_peak(problem)


@given(problems(most=4, fixed=True))
@settings(max_examples=100)
def test_fixed_addresses(problem: LayoutProblem) -> None:
    expected = least_peak(problem)
    if expected is None:
        for place in (place_optimal, quick):
            with pytest.raises(Infeasible, match="fixed addresses"):
                place(problem)
    else:
        assert place_optimal(problem).peak == expected


@given(problems(most=6, special=False))
def test_capacity_is_met_or_proven_impossible(problem: LayoutProblem) -> None:
    least = least_peak(problem)
    assert least is not None
    assert place_optimal(problem, least).peak == least
    if least > 0:
        with pytest.raises(Infeasible, match=f"no placement exists in {least - 1} bytes") as raised:
            place_optimal(problem, least - 1)
        assert not isinstance(raised.value, NotFound)


@given(problems(most=12))
def test_every_placement_is_valid_and_between_the_bounds(problem: LayoutProblem) -> None:
    bound = lower_bound(problem)
    greedy, first = place_greedy_by_size(problem), quick(problem)
    best = place_optimal(problem)
    for placement in (greedy, first, best):
        assert conflicts(problem, placement) == []
        assert placement.peak == max(placement.offsets[i.name] + i.size for i in problem.items)
        assert bound <= placement.bound <= placement.peak
    assert best.peak <= first.peak


@given(problems(most=12))
def test_merged_boxes_give_valid_placements(problem: LayoutProblem) -> None:
    grid = to_grid(problem)
    for merge in MergeLevel:
        coarse = coarsen(grid, merge)
        offsets = first_fit(coarse.grid, in_order(coarse.grid, "crowding"))
        named = {i.name: o * grid.unit for i, o in zip(problem.items, coarse.refine(offsets), strict=True)}
        peak = max(named[i.name] + i.size for i in problem.items)
        assert conflicts(problem, Placement(named, peak, 0, "merged")) == []
        assert coarse.grid.peak(offsets) == peak


def test_blocks_of_a_cut_up_rectangle() -> None:
    """Two halves in time, one of them two piles: one box."""
    items = (Item("a", 0, 5, 6), Item("b", 5, 9, 4), Item("c", 5, 9, 2), Item("d", 9, 10, 6))
    coarse = coarsen(to_grid(LayoutProblem(items)), MergeLevel.BLOCKS)
    assert len(coarse.grid.boxes) == 1
    assert sorted(coarse.refine([0])) == [
        0,
        0,
        0,
        1,
    ]  # in units of 2 bytes: the smaller of the pile lies below


def test_what_is_alive_is_named() -> None:
    with pytest.raises(
        Infeasible, match=r"no placement exists in 7 bytes; 8 bytes are live at once at time 1: b0 \(5\), b1"
    ):
        place_optimal(chain(5, 3, 2, 4), 7)


def test_giving_up_is_not_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    from edgewright.memory.layout import optimal

    monkeypatch.setattr(optimal, "fit", lambda *_: (optimal.Status.GAVE_UP, []))
    monkeypatch.setattr(optimal, "best_first_fit", lambda grid, *_, **__: ([100 * n for n in range(4)], "far apart"))
    with pytest.raises(NotFound, match="no placement found in 8 bytes, though one may exist"):
        place_optimal(chain(5, 3, 2, 4), 8)


def test_found_is_not_proven() -> None:
    """The quick effort stops at first fit and claims no more than the bound; the usual one proves."""
    problem = LayoutProblem(
        (
            Item("a", 0, 1, 3),
            Item("b", 0, 3, 2),
            Item("c", 1, 4, 2),
            Item("d", 3, 5, 3),
            Item("e", 4, 6, 2),
            Item("f", 5, 7, 3),
        )
    )
    quick = place_optimal(problem, effort=LayoutEffort.QUICK)
    assert quick.bound == lower_bound(problem) <= quick.peak
    assert place_optimal(problem).optimal


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"b0": -1}, ("b0", "b0")),
        ({"b1": 4}, ("b0", "b1")),
        ({"b3": 9}, ("b3", "b3")),
        ({}, None),
    ],
)
def test_the_judge_sees_every_fault(change: dict[str, int], wrong: tuple[str, str] | None) -> None:
    problem = chain(5, 3, 2, 4)
    good = {"b0": 0, "b1": 5, "b2": 0, "b3": 2}
    bad = conflicts(problem, Placement(good | change, 8, 8, ""))
    assert bad == [] if wrong is None else wrong in bad


def test_the_judge_knows_alignment_and_fixed_addresses() -> None:
    problem = LayoutProblem((Item("a", 0, 1, 3), Item("b", 0, 1, 3, fixed=8)), alignment=4)
    assert conflicts(problem, Placement({"a": 0, "b": 8}, 11, 7, "")) == []
    assert conflicts(problem, Placement({"a": 2, "b": 4}, 8, 7, "")) == [("a", "a"), ("b", "b"), ("a", "b")]


def test_same_answer_every_time() -> None:
    items = tuple(Item(f"b{n}", n * 7 % 23, n * 7 % 23 + 3 + n * 5 % 11, 1 + n * 13 % 17) for n in range(40))
    assert place_optimal(LayoutProblem(items)) == place_optimal(LayoutProblem(items))


def test_nothing_to_place() -> None:
    assert place_optimal(LayoutProblem(())) == Placement({}, 0, 0, "")
    assert quick(LayoutProblem((Item("a", 0, 1, 0),))).peak == 0


@pytest.mark.parametrize(
    ("items", "gaps", "message"),
    [
        ((Item("a", 0, 1, 1), Item("a", 0, 1, 1)), {}, "listed twice"),
        ((Item("a", 1, 1, 1),), {}, "end must come after"),
        ((Item("a", 0, 1, -1),), {}, "size must not be negative"),
        ((Item("a", 0, 1, 1, fixed=-4),), {}, "is fixed at -4"),
        ((Item("a", 0, 1, 1), Item("b", 0, 1, 1)), {("a", "c"): (0, 0)}, "two different buffers"),
        ((Item("a", 0, 1, 1), Item("b", 0, 1, 1)), {("a", "b"): (2, 0)}, "exceed the sizes"),
    ],
)
def test_bad_problems(items: tuple[Item, ...], gaps: dict[tuple[str, str], tuple[int, int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LayoutProblem(items, gaps)


def test_buffers_that_trail_each_other_share_a_lane() -> None:
    """Six buffers, each trailing the one before by 2 in either direction, beside one that lives through all."""
    items = (Item("long", 0, 7, 50), *(Item(f"b{i}", i, i + 2, 100) for i in range(6)))
    gaps = {(f"b{i}", f"b{i + 1}"): (2, 2) for i in range(5)}
    problem = LayoutProblem(items, gaps)
    lanes = to_lanes(problem)
    assert {i.name: i.size for i in lanes.problem.items} == {"long": 50, "b0": 102}
    placed = place_optimal(problem)
    assert (placed.peak, placed.optimal) == (152, True)
