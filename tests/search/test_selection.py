"""Which point of a front is selected: published scenarios, ranks by hand, random fronts, limits, every refusal."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from edgewright.errors import Infeasible, InputError
from edgewright.search.selection import (
    Characteristics,
    Figure,
    FigureLimit,
    Objective,
    Requirement,
    SelectionMethod,
    parse_limit,
    parse_requirement,
    rate,
    within,
)

NAMES = [one.value for one in Objective]
# M tables 5.2 and 5.4: requirement vectors (r_a, r_t, r_m, r_e), and the scenario published for each.
VECTORS = {
    "voc": [(1, 0, 0, 0), (0.7, 0, 0.3, 0), (0.6, 0.1, 0, 0.3), (0.5, 0.5, 0, 0), (0.1, 0.1, 0.4, 0.4)],
    "pamap2": [(1, 0, 0, 0), (0.2, 0.4, 0, 0.4), (0.5, 0, 0, 0.5), (0.5, 0.5, 0, 0)],
    "cifar10": [(1, 0, 0, 0), (0.25, 0.25, 0.25, 0.25), (0.5, 0.25, 0, 0.25), (0.5, 0, 0, 0.5)],
}
SCENARIOS = {
    "voc": [
        (77.78, 15.41, 292.61, 0.384),
        (76.28, 21.78, 210.69, 0.281),
        (77.69, 20.26, 242.72, 0.291),
        (73.99, 59.27, 155.48, 0.101),
        (72.85, 75.07, 130.21, 0.078),
    ],
    "pamap2": [
        (94.17, 510.20, 10.02, 0.0083),
        (91.34, 1333.33, 4.30, 0.0033),
        (92.56, 970.87, 4.86, 0.0037),
        (92.93, 1052.63, 4.11, 0.0039),
    ],
    "cifar10": [
        (94.86, 231.80, 52.87, 0.0242),
        (92.84, 754.15, 13.07, 0.0055),
        (93.46, 538.79, 18.30, 0.0081),
        (94.46, 403.71, 28.07, 0.0121),
    ],
}
ALL_VECTORS = [vector for vectors in VECTORS.values() for vector in vectors]


def requirement(vector) -> Requirement:
    return Requirement.of(dict(zip(NAMES, vector, strict=True)))


def points(rows) -> list[Characteristics]:
    return [Characteristics(*row) for row in rows]


def dominates(a: Characteristics, b: Characteristics) -> bool:
    """By the definition, with nothing of the code that is tested."""
    better = a.accuracy >= b.accuracy and a.throughput >= b.throughput and a.memory <= b.memory
    return better and (a.energy or 0) <= (b.energy or 0) and a != b


@pytest.mark.parametrize("method", SelectionMethod)
@pytest.mark.parametrize("vector", ALL_VECTORS, ids=str)
def test_no_selected_point_is_dominated(vector, method):
    rng = random.Random(str(vector))
    for _ in range(150):
        few = rng.choice([3, 6, 50])  # few values make ties
        front = points([tuple(rng.randint(1, few) for _ in NAMES) for _ in range(rng.randint(1, 25))])
        best = front[rate(front, requirement(vector), method)[0].index]
        assert not any(dominates(other, best) for other in front)
        if vector[0] == 1:
            assert best.accuracy == max(one.accuracy for one in front)


def test_published_scenarios():
    """Of the 13, ranking dominance over the published points alone gives 7 as published, 4 ties, 2 others (CNN 1)."""
    outcomes = []
    for name, vectors in VECTORS.items():
        for published, vector in enumerate(vectors):
            rated = rate(points(SCENARIOS[name]), requirement(vector))
            best = {one.index for one in rated if one.score == rated[0].score}
            outcome = "other" if published not in best else "tie" if len(best) > 1 else "published"
            outcomes.append((name, published + 1, outcome))
            if outcome == "other":
                assert best == {0}
    assert [outcome for _, _, outcome in outcomes].count("published") == 7
    assert [outcome for _, _, outcome in outcomes].count("tie") == 4
    assert [(name, r) for name, r, outcome in outcomes if outcome == "other"] == [("voc", 2), ("voc", 3)]


#        accuracy, frames/s, bytes, joules
SIX = [
    (0.95, 10.0, 9000.0, 0.9),  # a: ranks 1 6 6 6
    (0.93, 20.0, 8000.0, 0.7),  # b: ranks 2 5 5 5
    (0.90, 50.0, 4000.0, 0.3),  # c: ranks 3 3 4 3
    (0.90, 40.0, 3000.0, 0.4),  # d: ranks 3 4 2 4
    (0.85, 90.0, 3000.0, 0.1),  # e: ranks 5 2 2 1
    (0.80, 95.0, 2000.0, 0.2),  # f: ranks 6 1 1 2
]


def test_ranks_by_hand():
    rated = {one.index: one for one in rate(points(SIX), requirement((0.5, 0.25, 0, 0.25)))}
    assert [tuple(rated[at].ranks.values()) for at in range(6)] == [
        (1, 6, 6, 6),
        (2, 5, 5, 5),
        (3, 3, 4, 3),
        (3, 4, 2, 4),
        (5, 2, 2, 1),
        (6, 1, 1, 2),
    ]
    halves = Fraction(1, 4)
    assert [rated[at].score / halves for at in range(6)] == [14, 14, 12, 14, 13, 15]


def test_equal_scores_are_ordered_by_the_plain_sum_of_ranks():
    rated = rate(points(SIX), requirement((0.5, 0.25, 0, 0.25)))
    assert ["abcdef"[one.index] for one in rated] == list("cedbaf")  # d, b and a have equal scores: sums 13, 17, 19


def test_min_max_by_hand():
    """Accuracy from 0.80 to 0.95 and throughput from 10 to 95, half each: c is 1/3 and 45/85 from the best."""
    rated = rate(points(SIX), requirement((0.5, 0.5, 0, 0)), SelectionMethod.MIN_MAX)
    assert "abcdef"[rated[0].index] == "c"
    assert float(rated[0].score) == pytest.approx(0.5 * 45 / 85)


def test_the_order_of_points_changes_nothing():
    rng = random.Random(0)
    front = points([tuple(rng.randint(1, 6) for _ in NAMES) for _ in range(40)])
    for method in SelectionMethod:
        selected = set()
        for _ in range(10):
            rng.shuffle(front)
            selected.add(front[rate(front, requirement((0.25, 0.25, 0.25, 0.25)), method)[0].index])
        assert len(selected) == 1


def test_points_without_energy():
    without = points([(0.9, 10, 500, None), (0.8, 20, 400, None), (0.7, 15, 450, None)])
    assert [one.index for one in rate(without, requirement((0.4, 0.6, 0, 0)))] == [1, 0]
    with pytest.raises(InputError, match="energy has a weight, and the points have no energy"):
        rate(without, requirement((0.5, 0, 0, 0.5)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("accuracy=.5,throughput=.25", r"add up to 0\.75; expected 1"),
        ("accuracy=1.5,energy=-.5", r"the weight of energy is -0\.5; expected 0 or more"),
        ("accuracy=1,accuracy=0", "accuracy is weighed twice"),
        ("speed=1", '"speed" is not an objective; expected some of accuracy, throughput, memory, energy'),
        ("accuracy", "is not of the form NAME=WEIGHT"),
        ("", "is not of the form NAME=WEIGHT"),
        ("accuracy=much", 'the weight of accuracy is "much"; expected a number'),
        ("accuracy=nan", 'the weight of accuracy is "nan"; expected a number'),
        ("accuracy=1/0", 'the weight of accuracy is "1/0"; expected a number'),
    ],
)
def test_wrong_requirements(text, message):
    with pytest.raises(InputError, match=message):
        parse_requirement(text)


def test_weights_may_be_thirds():
    assert str(parse_requirement("accuracy=1/3,energy=2/3")) == "accuracy=0.333333,energy=0.666667"
    assert parse_requirement("accuracy=.333333,energy=.666667").weight(Objective.THROUGHPUT) == 0


FIGURES = [{Figure.RAM: 4096, Figure.ACCURACY: 0.8}, {Figure.RAM: 9000, Figure.ACCURACY: 0.9}]


@pytest.mark.parametrize(
    ("limits", "kept"),
    [((), (0, 1)), (("ram=4K",), (0,)), (("accuracy=0.85",), (1,)), (("accuracy=.8", "ram=10K"), (0, 1))],
    ids=str,
)
def test_limits(limits, kept):
    assert within(FIGURES, [parse_limit(one) for one in limits], "ab") == kept


@pytest.mark.parametrize(
    ("limits", "error", "message"),
    [
        (["ram=1K"], Infeasible, r"no point has ram ≤ 1,024; the least is 4,096"),
        (["accuracy=.95"], Infeasible, r"no point has accuracy ≥ 0\.95; the highest is 0\.9"),
        (
            ["ram=4K", "accuracy=.85"],
            Infeasible,
            r"no point keeps all limits at once: ram ≤ 4,096 and accuracy ≥ 0\.85",
        ),
        (["energy=1mJ"], InputError, "energy is limited, and 'a' has none: its board has no power data"),
        (["macs=10"], InputError, "macs is limited, and 'a' has none"),
    ],
)
def test_limits_that_no_point_keeps(limits, error, message):
    with pytest.raises(error, match=message):
        within(FIGURES, [parse_limit(one) for one in limits], "ab")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ram", "is not of the form NAME=LIMIT"),
        ("ram=much", "expected a size"),
        ("speed=3", '"speed" is not a figure of a point; expected one of accuracy'),
        ("macs=-1", r'the limit on macs is "-1"; expected a number of 0 or more'),
        ("accuracy=inf", r'the limit on accuracy is "inf"'),
        ("latency=5 kg", "expected a time"),
    ],
)
def test_wrong_limits(text, message):
    with pytest.raises(InputError, match=message):
        parse_limit(text)


def test_units_of_limits():
    assert parse_limit("latency=5 ms") == FigureLimit(Figure.LATENCY, 0.005)
    assert parse_limit("energy=2mJ") == FigureLimit(Figure.ENERGY, 0.002)
