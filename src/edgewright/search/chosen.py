"""Which design point of a front serves a set of requirements best: limits, then selection among the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from .front import DesignFront, DesignPoint
from .selection import (
    Characteristics,
    Figure,
    FigureLimit,
    Objective,
    Rated,
    Requirement,
    SelectionMethod,
    rate,
    within,
)

FIELDS = {  # of a design point, where not of the figure's name
    Figure.RAM: "ram_bytes",
    Figure.FLASH: "flash_bytes",
    Figure.LATENCY: "latency_s",
    Figure.ENERGY: "energy_j",
}
MOST_ACCURATE = Requirement.of({Objective.ACCURACY.value: 1})


def characteristics(point: DesignPoint, metric: str) -> Characteristics:
    """The figures that requirements weigh; `metric` is the field that counts as accuracy."""
    return Characteristics(getattr(point, metric), point.throughput, point.ram_bytes, point.energy_j)


def figures(point: DesignPoint) -> Mapping[Figure, float | None]:
    """The figures that may be limited."""
    return {one: getattr(point, FIELDS.get(one, one.value)) for one in Figure}


@dataclass(frozen=True)
class PointChoice:
    """The points of a front in the order in which they serve a requirement."""

    requirement: Requirement
    method: SelectionMethod
    limits: tuple[FigureLimit, ...]
    points: tuple[DesignPoint, ...]  # within the limits, the best first; none of them dominates another
    rated: tuple[Rated, ...]  # one for each point
    beyond: tuple[str, ...]  # names of the points that break a limit
    dominated: tuple[str, ...]  # names of the points within the limits that another dominates

    @property
    def best(self) -> DesignPoint:
        return self.points[0]

    def to_dict(self) -> dict[str, Any]:
        return {
            "requirement": {one.value: float(self.requirement.weight(one)) for one in Objective},
            "method": self.method.value,
            "limits": [str(limit) for limit in self.limits],
            "selected": self.best.model_dump(mode="json"),
            "rated": [
                {
                    "name": point.name,
                    "score": float(one.score),
                    "ranks": {objective.value: rank for objective, rank in one.ranks.items()},
                }
                for point, one in zip(self.points, self.rated, strict=True)
            ],
            "beyond_limits": list(self.beyond),
            "dominated": list(self.dominated),
        }


def choose(
    points: Sequence[DesignPoint],
    metric: str,
    requirement: Requirement,
    limits: Iterable[FigureLimit] = (),
    method: SelectionMethod = SelectionMethod.DOMINANCE,
) -> PointChoice:
    """The points within the limits that no other dominates, the best for the requirement first."""
    limits = tuple(limits)
    kept = [points[at] for at in within([figures(one) for one in points], limits, [one.name for one in points])]
    rated = rate([characteristics(one, metric) for one in kept], requirement, method)
    order = tuple(kept[one.index] for one in rated)
    names, inside = {point.name for point in order}, {point.name for point in kept}
    return PointChoice(
        requirement,
        method,
        limits,
        order,
        rated,
        tuple(point.name for point in points if point.name not in inside),
        tuple(point.name for point in kept if point.name not in names),
    )


def choose_from(
    front: DesignFront, requirement: Requirement, limits: Iterable[FigureLimit] = (), **how: Any
) -> PointChoice:
    """The choice among the points of a front file."""
    if not front.points:
        raise InputError(f"the front of task '{front.task}' has no points; search longer, or under looser limits")
    return choose(front.points, front.metric, requirement, limits, **how)
