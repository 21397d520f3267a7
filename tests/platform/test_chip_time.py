"""Times on microcontrollers: cycles by class of instruction, and the same figure from every verb."""

from __future__ import annotations

import pytest

import edgewright
from edgewright import samples
from edgewright.emit import emit
from edgewright.emit.verify import predicted
from edgewright.kernels.cost.estimate import estimate
from edgewright.network.read import read
from edgewright.platform import load_board
from edgewright.platform.board import Board
from edgewright.platform.chip_time import _M4 as M4
from edgewright.platform.chip_time import (
    InstructionMix,
    assumed_instruction_time,
    board_instruction_time,
    instruction_time,
    least_instruction_time,
)
from edgewright.platform.target import target_of
from edgewright.run.estimated_times import estimate_profile
from edgewright.search.pricing import CandidatePricer


def test_cycles_of_a_cortex_m4_by_its_manual() -> None:
    """TRM 100166, 3.3: LDR 2, SMLAD 1, STM of four 1 + 4, a taken branch 1 + 2; 7.2.3: VFMA 3; 5 waits a line."""
    mix = InstructionMix(loads=1 / 5, stores=3 / 5, branches=1 / 5, multiply_adds=1 / 5, divisions=0, lines=1 / 10)
    assert M4.per_instruction(mix, 0) == pytest.approx((2 + 1 + 4 + 3 + 3) / 5)
    assert M4.per_instruction(mix, 5) == pytest.approx((2 + 1 + 4 + 3 + 3) / 5 + 0.5)


@pytest.mark.parametrize("board", edgewright.catalogue(), ids=lambda board: board.name)
def test_no_board_is_faster_than_its_core_permits(board: Board) -> None:
    known = board_instruction_time(board)
    assert assumed_instruction_time(board) == (known or 1 / board.processors[0].clock)
    assert (known is not None) == (target_of(board).is_microcontroller and not target_of(board).is_portable)
    if known is not None:
        times = [instruction_time(board, one, is_real) for one in board.processors[:1] for is_real in (False, True)]
        assert all(time is not None and least_instruction_time(board) < time for time in times)


def test_wait_states_of_the_flash_take_time() -> None:
    board = load_board("nucleo-f446re")
    quick = board.model_copy(
        update={"memories": tuple(m.model_copy(update={"wait_states": 0}) for m in board.memories)}
    )
    assert (board_instruction_time(quick) or 0) < (board_instruction_time(board) or 0)


@pytest.mark.parametrize(("model", "is_real"), [("resnet8_int8", False), ("lenet5", True)])
def test_every_verb_tells_the_same_time(model: str, is_real: bool) -> None:
    network, board = read(samples.build(model)), load_board("nucleo-f446re")
    assert network.is_real == is_real
    plan = edgewright.plan(network, board, explain=False)
    instructions = estimate(plan, "cortex-m4").instructions
    time = board_instruction_time(board, is_real)
    assert time is not None
    price = CandidatePricer(board).price_of(plan)
    assert price.seconds == pytest.approx(price.instructions * time)
    assert predicted(emit(plan, target_of(board)), board).time_of(instructions) == pytest.approx(instructions * time)
    profile = estimate_profile(network, board)
    assert sum(layer.times[0].seconds for layer in profile.layers) == pytest.approx(instructions * time, rel=1e-3)
