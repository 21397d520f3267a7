"""The Pareto front of map size against code: layouts none of which is better than another in all respects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..analysis.spaces import Joint, Spaces
from ..language.description import Description
from .cost import DEFAULT, LayoutGoal, cost_of
from .layout import Layout
from .optimal import lay_out_optimal

PATIENCE = 0.2  # for each point
STEPS = 12  # limits tried between the least map and what an unlimited layout wants


@dataclass(frozen=True, slots=True)
class FrontPoint:
    layout: Layout
    map_bytes: int
    code: int  # estimated bytes
    accesses: int  # estimated, with loops

    def beats(self, other: FrontPoint) -> bool:
        """Whether it is as good in everything, and better in something."""
        mine, theirs = self._figures, other._figures
        return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))

    @property
    def _figures(self) -> tuple[int, int, int]:
        return self.map_bytes, self.code, self.accesses


def layout_front(
    description: Description, spaces: Spaces, joints: Sequence[Joint], target: str = DEFAULT, views: bool = True
) -> tuple[FrontPoint, ...]:
    """The points that no other beats, by size of the map: limits swept from the least map upwards."""

    def point(goal: LayoutGoal) -> FrontPoint:
        layout = lay_out_optimal(description, spaces, joints, goal, PATIENCE)
        cost = cost_of(description, spaces, layout, joints, goal.sizes)
        return FrontPoint(layout, cost.map_bytes, cost.code, cost.accesses)

    free = LayoutGoal(target=target, views=views)
    wanted = [point(replace(free, minimise=kind)) for kind in ("balanced", "code", "accesses")]
    least = point(replace(free, minimise="map", power_of_two=False))
    most = max(found.map_bytes for found in wanted)
    limits = _between(least.map_bytes, most)
    points = [least, *wanted, *(point(replace(free, max_map=limit)) for limit in limits)]
    kept = {p._figures: p for p in points if not any(other.beats(p) for other in points)}
    return tuple(sorted(kept.values(), key=lambda p: p._figures))


def _between(least: int, most: int) -> list[int]:
    """Limits to try: every word where there are few, evenly spread where there are many."""
    step = max(4, -(-(most - least) // STEPS // 4) * 4)
    return list(range(least, most, step))
