"""Stages of a plan as the work they consist of, for fitting."""

from __future__ import annotations

from collections.abc import Sequence

from ..platform.target import Target
from ..program import Plan
from .cost_facts import Facts
from .cost_fit import Sample
from .cost_settings import Settings
from .cost_stages import alike_steps
from .cost_work import Work, finish, work_of


def sample_stages(plan: Plan, target: Target, counts: Sequence[int], name: str) -> list[Sample]:
    """A sample for each stage that was counted."""
    settings, facts, found = Settings(plan), Facts(plan.network, target), []
    for index, stage in enumerate(plan.program.stages):
        works = []
        for step, count in alike_steps(plan.program, stage):
            layer = plan.network.by_name[step.layer]
            work = work_of(facts, layer, step.region, settings.of(index, step), step.share)
            works.append((work, count))
        works += [(finish(facts, plan.network.by_name[each]), 1) for each in plan.program.partial(stage)]
        found.append(Sample(name, _joined(works), counts[index]))
    return found


def _joined(works: Sequence[tuple[Work, int]]) -> tuple[Work, ...]:
    """Work of one kind taken together: amounts add up."""
    sums: dict[str, dict[str, float]] = {}
    for work, count in works:
        kept = sums.setdefault(work.kind, {})
        for key, amount in work.amounts.items():
            kept[key] = kept.get(key, 0.0) + count * amount
    return tuple(Work(kind, amounts) for kind, amounts in sums.items())
