"""The worked example of memory-aware scheduling, S 4.3.1 with fig. 4.5 and 4.6."""

from itertools import permutations

from edgewright.memory.ordering import OrderProblem, Store, is_valid, order, peak, profile
from tests.memory.order_baselines import order_depth_first

NAMES = ("A1", "B1", "C1", "A2", "B2", "C2", "D")
A1, B1, C1, A2, B2, C2, D = range(7)

# Sizes named in the text: A1 50, B1 30, C1 40, B2 40, C2 40. The others follow from the two peaks stated: A2 may
# have up to 40 (B1's 30 is held while A2's store and B2's 40 are alive, at most 110 in all); source and end are left
# out, since they would add to the stated sums.
PAPER = OrderProblem(
    steps=NAMES,
    before=((), (A1,), (B1,), (), (A2,), (B2,), (C1, C2)),
    stores=(
        Store("A1", 50, (A1,), (B1,)),
        Store("B1", 30, (B1,), (C1,)),
        Store("C1", 40, (C1,), (D,)),
        Store("A2", 40, (A2,), (B2,)),
        Store("B2", 40, (B2,), (C2,)),
        Store("C2", 40, (C2,), (D,)),
        Store("D", 0, (D,), (), is_output=True),
    ),
)


def test_the_order_of_the_paper_needs_110() -> None:
    best = (A1, B1, A2, B2, C2, C1, D)
    assert is_valid(PAPER, best)
    # "keeping the output of OpB1 (30) alive while computing OpC2 (40 + 40)"
    assert profile(PAPER, best)[4] == 110
    assert peak(PAPER, best) == 110


def test_depth_first_needs_120_from_either_side() -> None:
    assert order_depth_first(PAPER).peak == 120
    # "it needs to keep the output of OpC1 or OpC2 (40) alive while computing OpC2 (40 + 40) or OpB1 (50 + 30)"
    assert peak(PAPER, (A1, B1, C1, A2, B2, C2, D)) == 120
    assert peak(PAPER, (A2, B2, C2, A1, B1, C1, D)) == 120


def test_the_optimum_is_found_and_proven() -> None:
    found = order(PAPER)
    assert found.peak == found.bound == peak(PAPER, found.steps) == 110
    assert found.optimal
    every = (candidate for candidate in permutations(range(7)) if is_valid(PAPER, candidate))
    assert min(peak(PAPER, candidate) for candidate in every) == 110
