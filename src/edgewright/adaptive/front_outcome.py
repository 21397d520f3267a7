"""The front of arena size against the worst switching delay, for output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .deploying import SwitchingApplication
from .front import SwitchLayout


@dataclass(frozen=True)
class FrontOutcome:
    """Pareto-optimal layouts, the largest arena first, and the one that would be compiled."""

    switching: SwitchingApplication

    @cached_property
    def layouts(self) -> tuple[SwitchLayout, ...]:
        return self.switching.layouts

    @cached_property
    def largest(self) -> int:
        """Bytes of the arena that the largest scenario needs alone."""
        return max(one.plan.peak_bytes for one in self.switching.plans)

    @property
    def notes(self) -> tuple[str, ...]:
        policy = self.switching.policy.value
        alone = f'under policy "{policy}" scenarios are never in memory together, so that there is one layout'
        return (*self.switching.application.notes, *([alone] if len(self.layouts) == 1 else ()))

    def to_dict(self) -> dict[str, object]:
        return {
            "policy": self.switching.policy.value,
            "largest_scenario_bytes": self.largest,
            "front": [
                {
                    "arena_bytes": one.arena_bytes,
                    "of_largest": round(one.arena_bytes / max(1, self.largest), 4),
                    "bound_bytes": one.bound_bytes,
                    "is_least": one.is_least,
                    "worst_delay": one.worst_delay,
                    "switches": [
                        {"from": old, "to": new, "worst_delay": delay} for (old, new), delay in one.delays.items()
                    ],
                }
                for one in self.layouts
            ],
            "notes": list(self.notes),
        }
