"""Networks' shapes at their real sizes: ordered, and proven to be best."""

from collections.abc import Callable

import pytest

from edgewright.memory.ordering import OrderProblem, is_valid, order, peak
from edgewright.memory.ordering.cuts import MinCuts
from edgewright.memory.ordering.lattice import Lattice
from edgewright.memory.ordering.probe import Precedence, probe
from edgewright.memory.ordering.waists import Segment, cut_at_waists
from tests.memory import order_shapes as shapes
from tests.memory.order_baselines import order_depth_first


def assert_proven(problem: OrderProblem) -> None:
    found = order(problem)
    assert is_valid(problem, found.steps)
    assert found.peak == peak(problem, found.steps)
    assert found.optimal, f"{found.bound} to {found.peak} left open by {found.method}"
    assert found.peak <= order_depth_first(problem).peak


@pytest.mark.parametrize("shape", [shapes.chain, shapes.residual, shapes.u_net])
def test_long_networks(shape: Callable[[int], OrderProblem]) -> None:
    assert_proven(shape(1000))


@pytest.mark.parametrize("kind", ["ws", "er", "ba"])
@pytest.mark.parametrize("sizes", [shapes.equal_sizes, shapes.varied_sizes])
def test_randomly_wired_cells(kind: str, sizes: shapes.Sizes) -> None:
    assert_proven(shapes.randwire(2, seed=1, kind=kind, sizes=sizes))
    assert_proven(shapes.randwire(2, seed=2, kind=kind, sizes=sizes, in_place=True))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("in_place", [False, True])
def test_searched_cells(seed: int, in_place: bool) -> None:
    assert_proven(shapes.searched_cells(seed, in_place=in_place))


@pytest.mark.parametrize(
    ("fork", "concat", "in_place"),
    [(0, False, False), (20_000, False, False), (200_000, False, True), (60_000, True, False)],
)
def test_many_parallel_branches(fork: int, concat: bool, in_place: bool) -> None:
    branches = 10 if concat else 25
    assert_proven(shapes.parallel_branches(branches, 4, seed=3, fork=fork, concat=concat, in_place=in_place))


def test_waists_cut_a_network_into_its_cells() -> None:
    pieces = cut_at_waists(shapes.randwire(3, seed=0))
    assert sum(isinstance(part, Segment) for part in pieces.parts) >= 3
    assert not any(isinstance(part, Segment) for part in cut_at_waists(shapes.u_net(100)).parts)


def test_what_a_probe_learns_holds_in_an_order_within_the_budget() -> None:
    problem = shapes.randwire(1, seed=4, sizes=shapes.varied_sizes)
    best = order(problem)
    lattice = Lattice(problem)
    known = Precedence(lattice)
    constraints = sum(mask.bit_count() for mask in known.before)
    feasible, _ = probe(MinCuts(lattice), known, best.peak, flows=10_000)
    assert feasible
    assert sum(mask.bit_count() for mask in known.before) > constraints
    done = 0
    for step in best.steps:
        assert not known.before[step] & ~done
        done |= 1 << step
