"""Random programs: what the interpreter computes, and what their C computes, is what the network computes."""

from __future__ import annotations

import pytest

from edgewright.program.lower import lower
from tests.helpers.emitting_batch import check_together
from tests.helpers.interpreting import check_interpreted
from tests.helpers.random_programs import RandomProgram, random_program
from tests.helpers.unrolling import unrolled

FAMILIES = ("host", "cortex-m4", "rv32imc", "cortex-m55")
TOGETHER = 48  # in one shared object


def check(seeds: range, compiled: int = 1) -> list[RandomProgram]:
    """The programs of these seeds: judged, lowered, interpreted, and one of `compiled` run as C, families in turn."""
    programs = []
    for seed in seeds:
        program = random_program(seed)
        check_interpreted(program.network, program.plan)
        for stage in program.plan.program.stages:
            lowered = lower(program.plan, stage)
            assert list(unrolled(lowered)) == list(program.plan.program.steps(stage)), (seed, stage)
        programs.append(program)
    turn = seeds.start // len(seeds) % len(FAMILIES)
    families = FAMILIES[turn:] + FAMILIES[:turn]
    some = programs[::compiled]
    check_together([p.network for p in some], families, [p.plan for p in some])
    return programs


def test_random_programs() -> None:
    """And programs are what they should be: fused, nested, by rows, in parts of sums."""
    programs = check(range(TOGETHER), compiled=3)
    schedules = [schedule for program in programs for schedule in program.schedules]
    assert sum(len(schedule.layers) > 1 for schedule in schedules) > 15
    assert sum(len(schedule.splits) > 1 for schedule in schedules) > 8
    assert sum(schedule.streamed and bool(schedule.splits) for schedule in schedules) > 4
    plans = [program.plan for program in programs]
    assert any(plan.program.partial(stage) for plan in plans for stage in plan.program.stages)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(TOGETHER, 3000 + TOGETHER, TOGETHER))
def test_many_random_programs(first: int) -> None:
    check(range(first, first + TOGETHER))
