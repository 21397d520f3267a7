"""Any small problem: the order found is as good as the best of all orders, and the bound holds."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.memory.ordering import OrderEffort, OrderProblem, Store, is_valid, order, peak, profile
from edgewright.memory.ordering.branches import find_branches
from edgewright.memory.ordering.contract import contract
from edgewright.memory.ordering.flood import flood
from edgewright.memory.ordering.lattice import Lattice
from edgewright.memory.ordering.model import improve
from edgewright.memory.ordering.pivots import interleave
from edgewright.memory.ordering.waists import cut_at_waists
from edgewright.network.network import execution_order
from tests.memory.order_baselines import ready
from tests.memory.order_shapes import from_edges

# Little effort sends small problems through the methods meant for large ones.
EFFORTS = (
    OrderEffort(),
    OrderEffort(width=1),
    OrderEffort(width=1, flows=0),
    OrderEffort(width=1, states=1, flows=0),
)


def best_of_all(problem: OrderProblem) -> int:
    every = permutations(range(len(problem.steps)))
    return min(peak(problem, candidate) for candidate in every if is_valid(problem, candidate))


@st.composite
def problems(draw: st.DrawFn, most: int = 6, chains: bool = False) -> OrderProblem:
    """Steps with one store each, plus an input and a store written in parts, read by anybody."""
    count = draw(st.integers(1, most))
    steps = range(count)
    before: list[tuple[int, ...]] = []
    tails: list[int] = []  # ends of the chains so far
    for s in steps:
        if chains:
            tail = draw(st.sampled_from([*tails, -1]))
            before.append((tail,) if tail >= 0 else ())
            tails = [t for t in tails if t != tail] + [s]
        else:
            before.append(tuple(p for p in range(s) if draw(st.booleans())))
    size = st.sampled_from((0, 1, 2, 3, 5, 8, 13))
    some = st.lists(st.sampled_from(steps), unique=True).map(tuple)
    stores = [
        Store(
            f"t{s}",
            draw(size),
            (s,),
            tuple(t for t in steps if s in before[t]),
            is_output=draw(st.booleans()),
        )
        for s in steps
    ]
    stores.append(Store("input", draw(size), (), draw(some), is_input=True, is_output=draw(st.booleans())))
    if writers := draw(some):
        after = {w: {w} for w in writers}  # what runs after each writer in every order
        for t in steps:
            for later in after.values():
                if later & set(before[t]):
                    later.add(t)
        readers = tuple(t for t in draw(some) if any(t in after[w] - {w} for w in writers))
        stores.append(Store("concat", draw(size), writers, readers, is_output=draw(st.booleans())))
    savings = {
        (s, x, y): draw(st.integers(0, 6))
        for y, written in enumerate(stores)
        for s in written.writers
        for x, read in enumerate(stores)
        if x != y and s in read.readers and draw(st.booleans())
    }
    scratch = tuple(draw(st.sampled_from((0, 0, 4))) for _ in steps)
    return OrderProblem(tuple(f"s{s}" for s in steps), tuple(before), tuple(stores), savings, scratch)


@settings(max_examples=150, deadline=None)
@given(problems() | problems(chains=True), st.sampled_from(EFFORTS))
def test_no_order_is_better(problem: OrderProblem, effort: OrderEffort) -> None:
    found = order(problem, effort)
    assert is_valid(problem, found.steps)
    assert found.peak == peak(problem, found.steps)
    best = best_of_all(problem)
    assert found.bound <= best
    assert found.peak == best
    assert found.optimal


@settings(max_examples=150, deadline=None)
@given(problems(chains=True))
def test_branches_are_interleaved_exactly(problem: OrderProblem) -> None:
    lattice = Lattice(problem)
    branches = find_branches(lattice)
    if branches is None:
        return
    best = best_of_all(problem)
    found = interleave(lattice, branches, least=0, known=lattice.most + 1, effort=1.0)
    assert found.order is not None
    assert is_valid(problem, found.order)
    assert peak(problem, found.order) == found.bound == best
    assert interleave(lattice, branches, least=0, known=best, effort=1.0).order is None


@settings(max_examples=100, deadline=None)
@given(problems())
def test_a_flood_decides_every_budget(problem: OrderProblem) -> None:
    lattice = Lattice(problem)
    best = best_of_all(problem)
    for budget in (best - 1, best, best + 3):
        flooded = flood(lattice, budget, lattice.pred, states=1000)
        assert flooded.complete
        assert (flooded.order is not None) == (budget >= best)
        if flooded.order is not None:
            assert is_valid(problem, flooded.order)
            assert peak(problem, flooded.order) <= budget


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_integer_programme_agrees(problem: OrderProblem) -> None:
    first = execution_order(problem.before)
    found, bound = improve(problem, first, bound=0, effort=1.0)
    assert found is not None
    assert is_valid(problem, found)
    assert peak(problem, found) == bound == best_of_all(problem)


@settings(max_examples=100, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_walking_the_lattice_agrees_with_the_judge(problem: OrderProblem, rng: Random) -> None:
    lattice = Lattice(problem)
    done, held, steps, needs = 0, lattice.held(0), [], []
    while able := ready(lattice, done):
        step = rng.choice(able)
        need, held = lattice.run(done, held, step)
        done |= 1 << step
        assert held == lattice.held(done)
        steps.append(step)
        needs.append(need)
    assert needs == profile(problem, steps)


@pytest.mark.parametrize("effort", EFFORTS)
def test_the_same_problem_gets_the_same_order(effort: OrderEffort) -> None:
    before = ((), (), (0, 1), (1,), (0,), (2, 3), (3, 4), (5, 6))
    stores = tuple(Store(f"t{s}", 3 + s * 7 % 5, (s,), tuple(t for t in range(8) if s in before[t])) for s in range(8))
    problem = OrderProblem(tuple("abcdefgh"), before, stores)
    found = order(problem, effort)
    order.cache_clear()  # found again, not remembered
    assert order(problem, effort) == found
    again = OrderProblem(tuple("abcdefgh"), before, stores)
    assert order(again, effort) is order(problem, effort), "the same question is answered once"


def test_no_steps() -> None:
    found = order(OrderProblem((), (), ()))
    assert found.steps == ()
    assert found.peak == found.bound == 0


def test_a_single_step_needs_all_it_touches() -> None:
    stores = (Store("x", 5, (), (0,), is_input=True), Store("y", 3, (0,), (), is_output=True))
    found = order(OrderProblem(("s",), ((),), stores, scratch=(2,)))
    assert (found.steps, found.peak, found.optimal) == ((0,), 10, True)
    shared = order(OrderProblem(("s",), ((),), stores, savings={(0, 0, 1): 3}, scratch=(2,)))
    assert shared.peak == 7


def test_a_saving_counts_only_where_the_input_dies() -> None:
    stores = (
        Store("x", 4, (), (0, 1), is_input=True),
        Store("y", 4, (0,), (), is_output=True),
        Store("z", 1, (1,), (), is_output=True),
    )
    problem = OrderProblem(("in place", "other"), ((), ()), stores, savings={(0, 0, 1): 4})
    assert profile(problem, (0, 1)) == [8, 9]
    assert profile(problem, (1, 0)) == [5, 5]
    assert order(problem).steps == (1, 0)


def test_a_store_that_nobody_reads_lives_while_it_is_written() -> None:
    stores = (Store("dead", 9, (0,), ()), Store("y", 1, (1,), (), is_output=True))
    assert profile(OrderProblem(("a", "b"), ((), (0,)), stores), (0, 1)) == [9, 1]


def test_a_store_written_in_parts_lives_from_the_first_part() -> None:
    stores = (Store("concat", 6, (0, 1), (2,)),)
    assert profile(OrderProblem(("a", "b", "c"), ((), (0,), (1,)), stores), (0, 1, 2)) == [6, 6, 6]


def test_steps_that_wait_for_each_other_are_our_bug() -> None:
    with pytest.raises(AssertionError, match="circle"):
        order(OrderProblem(("a", "b"), ((1,), (0,)), ()))


@settings(max_examples=300, deadline=None)
@given(problems() | problems(chains=True))
def test_merging_steps_keeps_the_least_peak(problem: OrderProblem) -> None:
    smaller = contract(problem)
    assert best_of_all(smaller.problem) == best_of_all(problem)
    found = execution_order(smaller.problem.before)
    assert peak(smaller.problem, found) == peak(problem, smaller.expand(found))


def test_only_a_valley_keeps_a_chain_apart() -> None:
    sizes = (8, 5, 5, 2, 5, 5)  # the third step leaves 2: a good place to pause
    stores = tuple(
        Store(f"t{s}", size, (s,), (s + 1,) if s < 5 else (), is_output=s == 5) for s, size in enumerate(sizes)
    )
    chain = OrderProblem(tuple("abcdef"), ((), (0,), (1,), (2,), (3,), (4,)), stores)
    assert contract(chain).stands_for == ((0,), (1, 2, 3), (4, 5))


def test_segments_that_repeat_have_one_pattern() -> None:
    """The steps of an unrolled loop are alike; the first may find other stores beside it, and another base."""
    ways = ((0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5))
    edges = [(5 * turn + a, 5 * turn + b) for turn in range(20) for a, b in ways]
    problem = from_edges(edges, [1, *(3, 5, 9, 2, 1) * 20])
    segments = [part for part in cut_at_waists(problem).parts if not isinstance(part, int)]
    assert len(segments) == 20 and len({segment.pattern for segment in segments}) <= 3
    found = order(problem)
    assert found.optimal and found.peak == order(from_edges(edges[: 3 * 6], [1, *(3, 5, 9, 2, 1) * 3])).peak
