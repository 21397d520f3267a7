"""Parameters of tests: real models where there are any, and combinations of which the quick suite takes a few."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest


def corpus() -> Path | None:
    """The folder of real models and data, where EDGEWRIGHT_CORPUS points to one."""
    path = os.environ.get("EDGEWRIGHT_CORPUS")
    return Path(path) if path and (Path(path) / "models").is_dir() else None


def corpus_models(*patterns: str, slow: Collection[str] = ()) -> list:
    """Parameters for a test over real models; one that is skipped, with the reason, when there are none.

    The slow ones, by name, are left to `make check-all`.
    """
    root = corpus()
    files = sorted({f for p in patterns for f in (root / "models").glob(p)}) if root else []
    if not files:
        reason = "set EDGEWRIGHT_CORPUS to a folder with models/ to test real models"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="no-corpus")]
    return [pytest.param(f, id=f.stem, marks=[pytest.mark.slow] * (f.stem in slow)) for f in files]


def each_once(*axes: Sequence[Any]) -> list:
    """Parameters for all combinations: in the quick suite every value of every axis stands once, the rest is slow."""
    quick = {tuple(turn % len(axis) for axis in axes) for turn in range(max(map(len, axes)))}
    places = product(*(range(len(axis)) for axis in axes))
    return [
        pytest.param(*(axis[i] for axis, i in zip(axes, at, strict=True)), marks=[pytest.mark.slow] * (at not in quick))
        for at in places
    ]
