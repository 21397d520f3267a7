"""Large drivers: laid out soundly, and better than one register for each field in every mode."""

from __future__ import annotations

import pytest

from edgewright.hal.design_flow import analyse, naive, real_joints
from edgewright.hal.layout.cost import WEIGHTS, LayoutGoal
from edgewright.hal.layout.judge import faults
from edgewright.hal.layout_choice import chosen_design, total_accesses
from tests.hal.large import Shape, draw_large

SMALL = Shape(fields=80, functions=60, reach=12)


def check(shape, mode, seed, tmp_path):
    (tmp_path / "driver.c").write_text(draw_large(seed, shape))
    analysis = analyse([tmp_path / "driver.c"])
    made, plain = chosen_design(analysis, goal=LayoutGoal(minimise=mode)), naive(analysis)
    assert not faults(analysis.description, analysis.spaces, made.layout, real_joints(made))
    assert made.layout.map_bytes(analysis.description) < plain.layout.map_bytes(analysis.description)
    assert mode == "map" or total_accesses(made) < total_accesses(plain)
    return made


def test_a_driver_with_one_large_group(tmp_path):
    first = check(SMALL, "accesses", 1, tmp_path)
    assert check(SMALL, "accesses", 1, tmp_path).layout == first.layout  # the same on every run


@pytest.mark.slow
@pytest.mark.parametrize("mode", WEIGHTS)
@pytest.mark.parametrize(("groups", "reach"), [(1, 12), (1, 0), (5, 10), (10, 8)])
def test_260_fields_and_230_functions(groups, reach, mode, tmp_path):
    check(Shape(groups=groups, reach=reach), mode, groups, tmp_path)
