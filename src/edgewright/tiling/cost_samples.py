"""Stages of a plan as the work they consist of, for fitting."""

from __future__ import annotations

from collections.abc import Sequence

from ..emit.target import Target
from ..program import Plan
from .cost_fit import Sample
from .cost_settings import Settings
from .cost_work import Work, finish, work_of


def sample_stages(plan: Plan, target: Target, counts: Sequence[int], name: str) -> list[Sample]:
    """A sample for each stage that was counted."""
    settings, found = Settings(plan), []
    for index, stage in enumerate(plan.program.stages):
        works = []
        for step in plan.program.steps(stage):
            layer = plan.network.by_name[step.layer]
            works.append(work_of(plan.network, layer, step.region, target, settings.of(index, step), step.share))
        works += [finish(plan.network, plan.network.by_name[each]) for each in stage.summing]
        found.append(Sample(f"{name}:{stage.name}", tuple((work, 1) for work in _joined(works)), counts[index]))
    return found


def _joined(works: Sequence[Work]) -> list[Work]:
    """Work of one kind taken together: amounts add up."""
    sums: dict[str, dict[str, float]] = {}
    for work in works:
        kept = sums.setdefault(work.kind, {})
        for key, amount in work.amounts.items():
            kept[key] = kept.get(key, 0.0) + amount
    return [Work(kind, amounts) for kind, amounts in sums.items()]
