"""Stages as trees of loops and calls: written out again they are the steps; numbers are said as simply as can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.memory import plan as make_plan
from edgewright.program.index import AffineExpr, TableExpr, fit, value
from edgewright.program.lower import For, lower
from tests.helpers.random_networks import networks
from tests.helpers.random_trials import drawn_schedule
from tests.helpers.unrolling import unrolled


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7], 7),
        ([5, 5, 5], 5),
        ([0, 4, 8], AffineExpr(0, (("i", 4),))),
        ([9, 6, 3], AffineExpr(9, (("i", -3),))),
        ([0, 3, 7, 9], AffineExpr(-1, (("i", 4),), (0, 9))),
        ([2, 4, 6, 7], AffineExpr(2, (("i", 2),), (2, 7))),
        ([0, 1, 0], TableExpr((0, 1, 0), "i")),
    ],
)
def test_numbers_are_said_as_simply_as_can_be(values, expected):
    assert fit(values, "i") == expected


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8))
def test_fitted_numbers_are_the_numbers(values):
    assert [value(fit(values, "i"), {"i": at}) for at in range(len(values))] == values


@settings(max_examples=60, deadline=None)
@given(networks(), st.integers(0, 2**31), st.booleans())
def test_written_out_again_it_is_the_steps(network, seed, by_rows):
    """Whole layers, rows on demand, and tiles that somebody drew."""
    rng = np.random.default_rng(seed)
    plans = [make_plan(network, phases=by_rows, explain=False)]
    for _ in range(4):
        try:
            plans.append(make_plan(network, schedules=[drawn_schedule(network, rng)], explain=False))
        except Exception:  # most drawn tiles do not suit the layers
            continue
    for plan in plans:
        for stage in plan.program.stages:
            assert list(unrolled(lower(plan, stage))) == list(plan.program.steps(stage))


def test_code_does_not_grow_with_the_parts():
    """One loop, whatever the number of tiles."""
    from tests.emit.test_parts import layer, tiled

    trees = [lower(plan, plan.program.stages[0]) for plan in (tiled(layer("conv", "int8"), 1, ends) for ends in ENDS)]
    assert all(len(tree) == 1 and isinstance(tree[0], For) and len(tree[0].body) == 1 for tree in trees)


ENDS = [(6, 12), (4, 8, 12), tuple(range(1, 13))]
