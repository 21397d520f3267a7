"""What layouts of applications claim, against an exact model that shares no code with them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from edgewright.application.outcome import plan_application
from edgewright.errors import EdgewrightError
from tests.application.cases import random_application
from tests.application.exact import ExactProblem, compared
from tests.application.test_random import is_refused, laid_out, overlaid

# Small ones. In those from the second row on, less than what was proven least was once enough: an output may lie closer
# to its input than in the plan alone, a buffer of the firmware over what is dead when its network interrupts another,
# two tiles of a fused stage that take turns over each other.
FEW = (1, 3, 13, 34, 36, 40, *(32, 33, 47, 48, 53, 118), 127, 194)
DEAR = (118, 194)  # in `make check-all`
MANY = [seed for seed in range(60) if seed not in FEW]
SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] * (seed in (*DEAR, *MANY))) for seed in (*FEW, *MANY)]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_proven_least_is_least(seed: int, tmp_path: Path) -> None:
    try:
        joint = plan_application(random_application(seed, tmp_path), steps=0).joint
    except EdgewrightError as error:
        pytest.skip(f"refused: {error}")
    assert joint is not None
    verdict = compared(joint.layout)
    assert verdict["verdict"] == "true" or (seed in MANY and verdict["verdict"] in ("loose", "undecided")), verdict


@pytest.mark.parametrize("seed", [3, 9, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 30))])
def test_two_judges_agree_on_planted_overlaps(seed: int, tmp_path: Path) -> None:
    try:
        layout = laid_out(seed, tmp_path)
    except EdgewrightError as error:
        pytest.skip(f"refused: {error}")
    for one, other in random.Random(seed).sample(sorted(layout.graph.pairs), min(6, len(layout.graph.pairs))):
        wrong = overlaid(layout, one, other)
        found = ExactProblem(wrong.deployment, layout.problem.plans, is_free=True).wrong()
        assert is_refused(wrong) == bool(list(found)), (one, other)


def test_a_false_claim_and_a_loose_bound_are_noticed(tmp_path: Path) -> None:
    layout = laid_out(3, tmp_path)
    assert compared(layout)["verdict"] == "true"
    loose = replace(layout, placement=replace(layout.placement, bound=layout.placement.bound - 8))
    assert compared(loose)["verdict"] == "loose"
    apart = dict(layout.placement.offsets)  # everything beside everything else
    for name in apart:
        apart[name] = sum(size for other, size in layout.graph.sizes.items() if other < name)
    peak = sum(layout.graph.sizes.values())
    wasteful = replace(layout.placement, offsets=apart, peak=peak, bound=peak)
    assert compared(replace(layout, placement=wasteful))["verdict"] == "false"
