"""The result of a search: design points, of which none is better than another in everything, as a JSON file.

The file holds no times and no dates: the same task and seed give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError

from ..errors import Damaged, InputError
from ..files import read_file, write_atomic
from ..platform.schema import Count, FileEntry, Positive, first_problem

FORMAT = "edgewright-front-1"
FRONT_FILE = "front.json"
MODELS = "models"  # the folder beside the front's file

Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]


class DesignPoint(FileEntry):
    """One network under one manner of execution, with its characteristics."""

    name: str
    accuracy: Share  # of the quantised model on the validation data, on which the search selects
    macro_f1: Share
    held_out_accuracy: Share | None = None  # the same on data that no decision saw
    held_out_macro_f1: Share | None = None
    float_macro_f1: Share | None = None  # before it was quantised, on the held-out data, or else the validation data
    ram_bytes: Positive
    flash_bytes: Positive
    instructions: Positive  # of one frame, as estimated
    measured_instructions: Positive | None = None  # on the virtual board
    macs: Count
    latency_s: NotNegative
    throughput: NotNegative  # frames a second
    energy_j: NotNegative | None = None  # of one frame; None if the board has no power data
    architecture: str | None = None  # as JSON; None for a model of the user
    model: str  # the file, from the folder of the front
    manner: str
    command: str  # compiles it


class Measure(Enum):
    """What points are compared by: the name is that of a point's field."""

    ACCURACY = "accuracy"
    MACRO_F1 = "macro_f1"
    RAM = "ram_bytes"
    FLASH = "flash_bytes"
    INSTRUCTIONS = "instructions"
    LATENCY = "latency_s"
    THROUGHPUT = "throughput"
    ENERGY = "energy_j"

    @property
    def is_maximised(self) -> bool:
        return self in (Measure.ACCURACY, Measure.MACRO_F1, Measure.THROUGHPUT)

    def cost(self, point: DesignPoint) -> float:
        """The figure, negated where more is better; unknown energy is infinite."""
        value = getattr(point, self.value)
        if value is None:
            return float("inf")
        return -value if self.is_maximised else value


class DesignFront(FileEntry):
    """All points of a front, and what they were searched for."""

    format: str = FORMAT
    task: str  # its name
    digest: str  # of the task: of all that decides the result
    seed: int
    board: str
    metric: Annotated[str, Field(pattern="^(accuracy|macro_f1)$")]
    measures: tuple[Measure, ...]
    classes: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()  # of each channel of the raw data: a model takes (raw - mean) / deviation
    deviation: tuple[float, ...] = ()
    points: tuple[DesignPoint, ...]

    def text(self) -> str:
        """The content of its file, the same bytes for the same front."""
        return json.dumps(self.model_dump(mode="json"), indent=1) + "\n"

    def write(self, folder: Path) -> Path:
        return write_atomic(folder / FRONT_FILE, self.text())


def read_front(path: str | Path) -> DesignFront:
    """The front in a file, or in the folder that a search wrote."""
    file = Path(path)
    if file.is_dir():
        file /= FRONT_FILE
    content = read_file(file, "give the front.json that `edgewright search` wrote")
    try:
        front = DesignFront.model_validate_json(content)
    except ValidationError as error:
        raise InputError(f"'{file}' is no front of `edgewright search`: {first_problem(error)}") from None
    if front.format != FORMAT:
        raise InputError(f"'{file}' is a front of another version ({front.format[:40]}); run the search again")
    names = [point.name for point in front.points]
    if len(set(names)) < len(names):
        raise Damaged("two points have one name", "front")
    return front


Item = TypeVar("Item")


def dominates(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether costs `a` are nowhere above costs `b`, and somewhere below."""
    return all(x <= y for x, y in zip(a, b, strict=True)) and any(x < y for x, y in zip(a, b, strict=True))


def undominated_items(items: Iterable[Item], costs: Callable[[Item], Sequence[float]]) -> tuple[Item, ...]:
    """The items that no other dominates, in their order; of several with equal costs the first."""
    every = [(item, tuple(costs(item))) for item in items]
    found: dict[tuple[float, ...], Item] = {}
    for item, cost in every:
        if cost not in found and not any(dominates(other, cost) for _, other in every):
            found[cost] = item
    return tuple(found.values())


def pareto(points: Iterable[DesignPoint], measures: Sequence[Measure]) -> tuple[DesignPoint, ...]:
    """The points that none dominates by these measures."""
    return undominated_items(points, lambda point: [measure.cost(point) for measure in measures])


def hypervolume(costs: Iterable[Sequence[float]], reference: Sequence[float]) -> float:
    """The volume between the points and the reference, where each point is better than it in every cost.

    Exact, by slices along the last cost (While et al. 2012, without its pruning).
    """
    limit = tuple(reference)
    inside = [cost for cost in map(tuple, costs) if all(a < b for a, b in zip(cost, limit, strict=True))]
    return _volume(inside, limit)


def _volume(costs: list[tuple[float, ...]], limit: tuple[float, ...]) -> float:
    if not costs:
        return 0.0
    if len(limit) == 1:
        return limit[0] - min(cost[0] for cost in costs)
    ends = [*sorted({cost[-1] for cost in costs}), limit[-1]]
    return sum(
        (upper - lower) * _volume([cost[:-1] for cost in costs if cost[-1] <= lower], limit[:-1])
        for lower, upper in pairwise(ends)
    )
