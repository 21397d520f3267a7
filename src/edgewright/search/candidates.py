"""Candidates of a search: their origin, their price, and what training gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

from .. import text
from .architecture import CnnArchitecture
from .front import Measure, undominated_items
from .pricing import Price
from .task import CandidateLimits
from .weights import State


class CandidateOrigin(Enum):
    """How an architecture came about."""

    DRAWN = "drawn"  # at random
    LEAST = "least"  # the smallest of the space
    MUTATED = "mutated"
    RECOMBINED = "recombined"
    BOTH = "recombined and mutated"
    CONTINUED = "continued"  # that of the parent, trained on
    SAMPLED = "sampled"  # by a sampler of optuna


@dataclass(frozen=True, slots=True)
class Proposal:
    """An architecture to price and train, with the candidates whose weights it inherits, the main one first."""

    architecture: CnnArchitecture
    origin: CandidateOrigin
    parents: tuple[int, ...] = ()  # their numbers


@dataclass(frozen=True)
class Trained:
    """What a slice of training gave."""

    accuracy: float  # on the validation data
    macro_f1: float
    state: State  # weights and all else that training changes


@dataclass(frozen=True, slots=True)
class CnnCandidate:
    """An architecture after pricing, and after training where it keeps the limits."""

    number: int
    generation: int
    proposal: Proposal
    price: Price
    refusal: str = ""  # which limit it breaks; empty where it keeps all
    accuracy: float | None = None  # None until it is trained
    macro_f1: float | None = None

    @property
    def architecture(self) -> CnnArchitecture:
        return self.proposal.architecture

    @property
    def is_trained(self) -> bool:
        return self.accuracy is not None

    def cost(self, measure: Measure) -> float:
        """The figure, negated where more is better; infinite where it is unknown."""
        value = {
            Measure.ACCURACY: self.accuracy,
            Measure.MACRO_F1: self.macro_f1,
            Measure.RAM: self.price.ram_bytes,
            Measure.FLASH: self.price.flash_bytes,
            Measure.INSTRUCTIONS: self.price.instructions,
            Measure.LATENCY: self.price.seconds,
            Measure.THROUGHPUT: 1 / self.price.seconds,
            Measure.ENERGY: self.price.energy_j,
        }[measure]
        return float("inf") if value is None else -value if measure.is_maximised else value

    def costs(self, measures: Sequence[Measure]) -> tuple[float, ...]:
        return tuple(self.cost(measure) for measure in measures)


def _limited(price: Price, limits: CandidateLimits) -> Iterator[tuple[float, float, str, Callable[[float], str], str]]:
    """For each limited figure: its value, its limit, and how to put it in words."""
    for value, most, verb, shown, unit in (
        (price.ram_bytes, limits.ram, "needs", _bytes, " of RAM"),
        (price.flash_bytes, limits.flash, "needs", _bytes, " of flash"),
        (price.instructions, limits.instructions, "needs", _count, " instructions"),
        (price.seconds, limits.latency, "takes", text.duration, ""),
        (price.energy_j, limits.energy, "takes", _joules, " a frame"),
    ):
        if value is not None and most is not None:
            yield value, most, verb, shown, unit


def _bytes(value: float) -> str:
    return text.size(int(value))


def _count(value: float) -> str:
    return text.count(int(value))


def _joules(value: float) -> str:
    return f"{value:.3g} J"


def refusal(price: Price, limits: CandidateLimits) -> str:
    """The first limit that a price breaks, in words; empty if it keeps all."""
    for value, most, verb, shown, unit in _limited(price, limits):
        if value > most:
            return f"{verb} {shown(value)}{unit}; the limit is {shown(most)}"
    return ""


def excess(price: Price, limits: CandidateLimits) -> float:
    """The largest share by which a limit is exceeded; 0 or less if all are kept."""
    return max((value / most - 1 for value, most, *_ in _limited(price, limits)), default=0.0)


def front_of(candidates: Sequence[CnnCandidate], measures: Sequence[Measure]) -> tuple[CnnCandidate, ...]:
    """The trained candidates that no other dominates; each architecture counts with its best training."""
    best: dict[str, CnnCandidate] = {}
    for one in candidates:
        if one.is_trained:
            known = best.get(one.architecture.key)
            if known is None or one.cost(measures[0]) < known.cost(measures[0]):
                best[one.architecture.key] = one
    return undominated_items(best.values(), lambda one: one.costs(measures))


def architectures(candidates: Iterable[CnnCandidate]) -> set[str]:
    """The keys of the trained architectures."""
    return {one.architecture.key for one in candidates if one.is_trained}


def candidate_seed(seed: int, number: int, purpose: str = "train") -> int:
    """The seed of one candidate's training; it depends on the search's seed, the number and the purpose alone."""
    return int.from_bytes(sha256(f"{purpose} {seed} {number}".encode()).digest()[:4]) >> 1
