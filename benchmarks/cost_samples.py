"""Stages of a plan as the work they consist of, for fitting."""

from __future__ import annotations

from collections.abc import Sequence

from cost_fit import Sample
from edgewright.kernels.cost.estimate import works_of
from edgewright.kernels.cost.work import KernelWork
from edgewright.platform.target import Target
from edgewright.program import Plan


def sample_stages(plan: Plan, target: Target, counts: Sequence[int], name: str) -> list[Sample]:
    """A sample for each stage that was counted."""
    return [
        Sample(name, _joined([(work, often) for _, work, often in works]), count)
        for works, count in zip(works_of(plan, target), counts, strict=True)
    ]


def _joined(works: Sequence[tuple[KernelWork, int]]) -> tuple[KernelWork, ...]:
    """Work of one kind taken together: amounts add up."""
    sums: dict[str, dict[str, float]] = {}
    for work, count in works:
        kept = sums.setdefault(work.kind, {})
        for key, amount in work.amounts.items():
            kept[key] = kept.get(key, 0.0) + count * amount
    return tuple(KernelWork(kind, amounts) for kind, amounts in sums.items())
