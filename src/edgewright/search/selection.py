"""Which point of a front serves a set of requirements best: limits first, then ranking dominance or weighted min-max.

Points are numbers here: what a point is, and where it comes from, is left to others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import isfinite

from ..errors import Infeasible, InputError
from ..platform import parse_energy, parse_size, parse_time

NEARLY = Fraction(1, 10**6)  # how far from 1 the weights may add up, for thirds written in decimals


class Objective(Enum):
    """What requirements weigh, in the order of M's vectors (r_a, r_t, r_m, r_e)."""

    ACCURACY = "accuracy"
    THROUGHPUT = "throughput"  # frames per second
    MEMORY = "memory"  # bytes of RAM
    ENERGY = "energy"  # joules of a frame

    @property
    def is_maximised(self) -> bool:
        return self in (Objective.ACCURACY, Objective.THROUGHPUT)


@dataclass(frozen=True, slots=True)
class Characteristics:
    """The figures of a design point that requirements weigh."""

    accuracy: float
    throughput: float
    memory: float
    energy: float | None  # None if the board has no power data

    def loss(self, objective: Objective) -> float:
        """The figure with its sign such that less is better; 0 for an unknown energy."""
        value = getattr(self, objective.value)
        return 0.0 if value is None else -value if objective.is_maximised else value


@dataclass(frozen=True)
class Requirement:
    """How important each objective is: weights of at least 0 that add up to 1 (M table 5.2)."""

    weights: Mapping[Objective, Fraction]

    def __post_init__(self) -> None:
        for objective, weight in self.weights.items():
            if weight < 0:
                raise InputError(f"the weight of {objective.value} is {float(weight):g}; expected 0 or more")
        total = sum(self.weights.values(), Fraction())
        if not -NEARLY < total - 1 < NEARLY:
            raise InputError(f"the weights of a requirement add up to {float(total):g}; expected 1")

    @classmethod
    def of(cls, weights: Mapping[str, float | str]) -> Requirement:
        """The requirement of names and weights; objectives left out weigh nothing."""
        known = {one.value: one for one in Objective}
        for name in weights:
            if name not in known:
                raise InputError(f'"{name}" is not an objective; expected some of {", ".join(known)}')
        return cls({known[name]: _weight(name, value) for name, value in weights.items()})

    def weight(self, objective: Objective) -> Fraction:
        return self.weights.get(objective, Fraction())

    def __str__(self) -> str:
        return ",".join(f"{one.value}={float(self.weight(one)):g}" for one in Objective if self.weight(one))


def parse_requirement(value: str) -> Requirement:
    """The requirement in a text such as "accuracy=.5,throughput=.25,energy=.25"."""
    weights: dict[str, str] = {}
    for entry in value.split(","):
        name, equals, weight = (part.strip() for part in entry.partition("="))
        if not equals:
            raise InputError(f'"{entry}" is not of the form NAME=WEIGHT, such as accuracy=0.5')
        if name in weights:
            raise InputError(f"{name} is weighed twice; expected each objective at most once")
        weights[name] = weight
    return Requirement.of(weights)


def _weight(name: str, value: float | str) -> Fraction:
    try:
        return Fraction(str(value))  # the decimal that was written, so that equal scores are equal
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f'the weight of {name} is "{value}"; expected a number from 0 to 1') from error


class Figure(Enum):
    """A figure of a point that may be limited."""

    ACCURACY = "accuracy"
    MACRO_F1 = "macro_f1"
    THROUGHPUT = "throughput"
    RAM = "ram"
    FLASH = "flash"
    INSTRUCTIONS = "instructions"
    MACS = "macs"
    LATENCY = "latency"
    ENERGY = "energy"

    @property
    def is_floor(self) -> bool:
        """Whether its limit is the least that is accepted, not the most."""
        return self in (Figure.ACCURACY, Figure.MACRO_F1, Figure.THROUGHPUT)


@dataclass(frozen=True, slots=True)
class FigureLimit:
    """The least or the most that is accepted of a figure."""

    figure: Figure
    value: float

    @classmethod
    def of(cls, name: str, value: object) -> FigureLimit:
        """The limit on the figure of that name; sizes, times and energies may have units: "10K", "5 ms", "2 mJ"."""
        known = {one.value: one for one in Figure}
        if name not in known:
            raise InputError(f'"{name}" is not a figure of a point; expected one of {", ".join(known)}')
        figure = known[name]
        match figure:
            case Figure.RAM | Figure.FLASH:
                return cls(figure, parse_size(value))
            case Figure.LATENCY:
                return cls(figure, parse_time(value))
            case Figure.ENERGY:
                return cls(figure, parse_energy(value))
        return cls(figure, _number(name, value))

    def holds(self, value: float) -> bool:
        return value >= self.value if self.figure.is_floor else value <= self.value

    def __str__(self) -> str:
        return f"{self.figure.value} {'≥' if self.figure.is_floor else '≤'} {self.value:,.12g}"


def parse_limit(value: str) -> FigureLimit:
    """The limit in a text such as "ram=10K"."""
    name, equals, figure = (part.strip() for part in value.partition("="))
    if not equals:
        raise InputError(f'"{value}" is not of the form NAME=LIMIT, such as ram=10K')
    return FigureLimit.of(name, figure)


def _number(name: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not isfinite(number) or number < 0:
        raise InputError(f'the limit on {name} is "{value}"; expected a number of 0 or more')
    return number


class SelectionMethod(Enum):
    """How the objectives of a point become one score, of which the least is best."""

    DOMINANCE = "dominance"  # ranking dominance (Kukkonen and Lampinen 2007): the weighted sum of ranks
    MIN_MAX = "min-max"  # the largest weighted distance from the best value


@dataclass(frozen=True)
class Rated:
    """A point that no other dominates, with its score."""

    index: int  # among the points that were given
    ranks: Mapping[Objective, int]  # 1 is best; equal values have equal ranks
    score: Fraction

    @property
    def order(self) -> tuple[Fraction, int, tuple[int, ...]]:
        """Where points of equal scores stand: by the plain sum of their ranks, then by rank, accuracy first."""
        return self.score, sum(self.ranks.values()), tuple(self.ranks.values())


def pareto_indices(points: Sequence[Characteristics]) -> tuple[int, ...]:
    """The points that no other dominates; of equal points all."""
    losses = [tuple(point.loss(one) for one in Objective) for point in points]
    return tuple(index for index, own in enumerate(losses) if not any(_dominates(other, own) for other in losses))


def _dominates(other: tuple[float, ...], own: tuple[float, ...]) -> bool:
    return other != own and all(a <= b for a, b in zip(other, own, strict=True))


def rate(
    points: Sequence[Characteristics], requirement: Requirement, method: SelectionMethod = SelectionMethod.DOMINANCE
) -> tuple[Rated, ...]:
    """The points that no other dominates, the best for the requirement first.

    Ranks are over all of these points. A dominated point could tie with the best where a weight is 0, so these are
    left out before.
    """
    if requirement.weight(Objective.ENERGY) and any(point.energy is None for point in points):
        raise InputError(
            "energy has a weight, and the points have no energy: their board has no power data; "
            "add [power] to the board file, or weigh something else"
        )
    front = pareto_indices(points)
    losses = {one: [points[index].loss(one) for index in front] for one in Objective}
    ranks = {one: [1 + sum(other < value for other in values) for value in values] for one, values in losses.items()}
    parts = (
        ranks if method is SelectionMethod.DOMINANCE else {one: _distances(values) for one, values in losses.items()}
    )
    rated = []
    for at, index in enumerate(front):
        weighted = [requirement.weight(one) * parts[one][at] for one in Objective]
        score = sum(weighted, Fraction()) if method is SelectionMethod.DOMINANCE else max(weighted)
        rated.append(Rated(index, {one: ranks[one][at] for one in Objective}, Fraction(score)))
    return tuple(sorted(rated, key=lambda one: (one.order, one.index)))


def _distances(values: Sequence[float]) -> list[Fraction]:
    """How far each value is from the least, as a share of the range of all."""
    exact = [Fraction(value) for value in values]
    least, most = min(exact), max(exact)
    return [(value - least) / ((most - least) or 1) for value in exact]


def within(
    figures: Sequence[Mapping[Figure, float | None]], limits: Sequence[FigureLimit], names: Sequence[str]
) -> tuple[int, ...]:
    """The points that keep all limits; an error where no point does, which says how close the nearest comes."""
    for limit in limits:
        for name, own in zip(names, figures, strict=True):
            if own.get(limit.figure) is None:
                why = "its board has no power data" if limit.figure is Figure.ENERGY else "the file does not say it"
                raise InputError(f"{limit.figure.value} is limited, and '{name}' has none: {why}")
    kept = tuple(index for index, own in enumerate(figures) if all(_holds(limit, own) for limit in limits))
    if kept or not figures:
        return kept
    for limit in limits:
        if not any(_holds(limit, own) for own in figures):
            values = [own[limit.figure] or 0.0 for own in figures]
            best = max(values) if limit.figure.is_floor else min(values)
            raise Infeasible(
                f"no point has {limit}; the {'highest' if limit.figure.is_floor else 'least'} is {best:,.12g}"
            )
    together = " and ".join(map(str, limits))
    raise Infeasible(f"no point keeps all limits at once: {together}. Each is kept by some point; loosen one of them")


def _holds(limit: FigureLimit, own: Mapping[Figure, float | None]) -> bool:
    return limit.holds(own[limit.figure] or 0.0)
