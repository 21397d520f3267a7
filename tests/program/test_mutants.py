"""Mutated plan files: whatever would compute wrongly is refused in a sentence, and nothing crashes."""

from __future__ import annotations

import pytest

from tests.program.mutants import check_mutants

TOGETHER = 60  # in one shared object, as far as they are accepted


def test_mutants() -> None:
    """And most of them are no good."""
    found = check_mutants(range(TOGETHER))
    assert len([each for each in found if each.refusal]) > TOGETHER // 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(TOGETHER, 3000 + TOGETHER, TOGETHER))
def test_many_mutants(first: int) -> None:
    check_mutants(range(first, first + TOGETHER), with_samples=True)
