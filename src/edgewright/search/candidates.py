"""Candidates of a search: who proposed them, what they cost, what training made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

from .. import text
from .architecture import CnnArchitecture
from .data import FloatArray
from .front import Measure, undominated_items
from .pricing import Price
from .task import CandidateLimits

State = Mapping[str, FloatArray]


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


def refusal(price: Price, limits: CandidateLimits) -> str:
    """The first limit that a price breaks, in words; empty where it keeps all."""
    for name, value, most, shown in (
        ("RAM", price.ram_bytes, limits.ram, text.size),
        ("flash", price.flash_bytes, limits.flash, text.size),
        ("instructions", price.instructions, limits.instructions, text.count),
    ):
        if most is not None and value > most:
            return f"needs {shown(value)} of {name}; the limit is {shown(most)}".replace(
                " of instructions", " instructions"
            )
    if limits.latency is not None and price.seconds > limits.latency:
        return f"takes {text.duration(price.seconds)}; the limit is {text.duration(limits.latency)}"
    if limits.energy is not None and price.energy_j is not None and price.energy_j > limits.energy:
        return f"takes {price.energy_j:.3g} J a frame; the limit is {limits.energy:.3g} J"
    return ""


def excess(price: Price, limits: CandidateLimits) -> float:
    """By what share the most broken limit is exceeded; 0 or less where all are kept."""
    shares = [
        value / most - 1
        for value, most in (
            (price.ram_bytes, limits.ram),
            (price.flash_bytes, limits.flash),
            (price.instructions, limits.instructions),
            (price.seconds, limits.latency),
            (price.energy_j, limits.energy),
        )
        if value is not None and most is not None
    ]
    return max(shares, default=0.0)


def front_of(candidates: Sequence[CnnCandidate], measures: Sequence[Measure]) -> tuple[CnnCandidate, ...]:
    """The trained candidates that no other dominates; of one architecture, the training that did best alone."""
    best: dict[str, CnnCandidate] = {}
    for one in candidates:
        if one.is_trained:
            known = best.get(one.architecture.key)
            if known is None or one.cost(measures[0]) < known.cost(measures[0]):
                best[one.architecture.key] = one
    return undominated_items(best.values(), lambda one: one.costs(measures))


def candidate_seed(seed: int, number: int, purpose: str = "train") -> int:
    """The seed of one candidate's training: it depends on nothing but the search's seed and the number."""
    return int.from_bytes(sha256(f"{purpose} {seed} {number}".encode()).digest()[:4]) >> 1
