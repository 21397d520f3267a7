"""Programs whose stages run steps that somebody has written down, such as no schedule comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

from edgewright.program import FusedLayers, Plan, Program, Stage, Step


@dataclass(frozen=True)
class ByHand(Program):
    """A program with steps in the place of those that follow from the schedules of some stages, by their names."""

    written: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)

    def steps(self, stage: Stage) -> Iterator[Step]:
        if stage.name not in self.written:
            return super().steps(stage)
        return (replace(step, sweep=stage.sweep) for step in self.written[stage.name])

    def whole_steps(self, fused: FusedLayers) -> tuple[Step, ...]:
        return self.written.get(fused.schedule.name) or super().whole_steps(fused)

    def partial(self, stage: Stage) -> tuple[str, ...]:
        if stage.name not in self.written:
            return super().partial(stage)
        return tuple(dict.fromkeys(step.layer for step in self.written[stage.name] if step.partial))


def by_steps(plan: Plan, written: Mapping[str, tuple[Step, ...]]) -> Plan:
    """The plan with these steps in its stages."""
    own = {each.name: getattr(plan.program, each.name) for each in fields(Program)}
    return replace(plan, program=ByHand(**own, written=written))
