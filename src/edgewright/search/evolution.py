"""Evolutionary piecemeal training (Sapra & Pimentel, M's [82]): a population that trains, recombines and mutates.

Each generation trains every member on a slice of the data, from the weights that it has or inherits. NSGA-II selects
the survivors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import numpy as np

from ..errors import InputError
from .architecture import Shape3
from .candidates import CandidateOrigin, CnnCandidate, Proposal
from .front import Measure
from .space import SearchSpace
from .task import EvolutionEntry, SearchTask, TrainingEntry

TRIES = 20  # draws of an architecture until one is new


@dataclass(frozen=True, slots=True)
class EvolutionSettings:
    """The parameters of M table 5.3 in its order: Q_m, P_m, P_r(0), N_p, Ω, then those of training."""

    mutation_rate: float = 0.12
    mutation_probability: float = 0.3
    crossover_probability: float = 0.3
    population: int = 30
    replacement: float = 0.03
    epochs: float = 1.0
    learning_rate: float = 1e-3
    batch: int = 64


PRESETS = {
    "voc": EvolutionSettings(0.10, 0.3, 0.3, 60, 0.02, 1, 1e-3, 10),
    "pamap2": EvolutionSettings(0.12, 0.3, 0.4, 50, 0.03, 1 / 5, 1e-4, 50),
    "cifar10": EvolutionSettings(0.12, 0.3, 0.3, 100, 0.02, 1 / 8, 1e-3, 64),
}


def settings_of(evolution: EvolutionEntry, training: TrainingEntry) -> EvolutionSettings:
    """The preset or the defaults, overridden by the keys that the task gives."""
    preset = PRESETS[evolution.preset] if evolution.preset else EvolutionSettings()
    given = {**evolution.model_dump(exclude={"preset"}), **training.model_dump()}
    return EvolutionSettings(
        **{
            name: getattr(preset, name) if given[name] is None else given[name]
            for name in EvolutionSettings.__dataclass_fields__
        }
    )


class Proposer(Protocol):
    """Proposes the next candidates from what is known about the earlier ones."""

    @property
    def batch(self) -> int:
        """How many candidates one generation trains."""

    def propose(self, count: int, fresh: int, progress: float, /) -> list[Proposal]:
        """The next candidates, of which at most `fresh` have new architectures; `progress` goes from 0 to 1."""

    def fallback(self, count: int, /) -> list[Proposal]:
        """Candidates that are known to keep the limits, for a generation in which no proposal does."""

    def refuse(self, candidates: Sequence[CnnCandidate]) -> None:
        """Learns which candidates break a limit."""

    def learn(self, candidates: Sequence[CnnCandidate]) -> None:
        """Learns what a generation's training gave."""

    @property
    def ancestors(self) -> set[int]:
        """Candidates whose weights may still be inherited."""


class Evolution:
    """A population that breeds the next generation."""

    def __init__(self, task: SearchTask, shape: Shape3, classes: int, seed: int) -> None:
        self.space: SearchSpace = task.space
        self.settings = settings_of(task.evolution, task.training)
        self.measures: tuple[Measure, ...] = task.measures
        self.shape, self.classes = shape, classes
        self.members: tuple[CnnCandidate, ...] = ()
        self._parents: list[CnnCandidate] = []
        self._next = 0
        self._random = Random(f"evolution {seed}")
        self._seen: set[str] = set()
        self._continued: set[int] = set()

    @property
    def batch(self) -> int:
        return self.settings.population

    @property
    def ancestors(self) -> set[int]:
        return {member.number for member in self.members}

    def propose(self, count: int, fresh: int, progress: float) -> list[Proposal]:
        made = []
        for _ in range(count if self._parents else min(count, fresh)):
            proposal = self._child(progress, fresh > 0) if self._parents else self._drawn()
            fresh -= proposal.origin is not CandidateOrigin.CONTINUED
            self._seen.add(proposal.architecture.key)
            made.append(proposal)
        return made

    def fallback(self, count: int) -> list[Proposal]:
        """Members that train on; in the first generation the smallest architecture of the space."""
        if not self._parents:
            return [Proposal(self.space.least(self.shape, self.classes), CandidateOrigin.LEAST)]
        chosen = self._parents[:count]
        return [Proposal(one.architecture, CandidateOrigin.CONTINUED, (one.number,)) for one in chosen]

    def refuse(self, candidates: Sequence[CnnCandidate]) -> None:
        """Nothing: parents of refused children stay as they are."""

    def learn(self, candidates: Sequence[CnnCandidate]) -> None:
        newest = {one.architecture.key: one for one in (*self.members, *candidates)}
        self.members = select(tuple(newest.values()), self.measures, self.settings.population)
        self._parents = list(self.members)
        count = round(self.settings.replacement * len(self._parents))
        best = sorted(self.members, key=lambda one: one.cost(self.measures[0]))[:count]
        if count:  # the best replace the worst
            self._parents[-count:] = best
        self._next = 0
        self._continued.clear()

    def _drawn(self) -> Proposal:
        for _ in range(TRIES):
            drawn = self.space.draw(self._random, self.shape, self.classes)
            if drawn.key not in self._seen:
                break
        return Proposal(drawn, CandidateOrigin.DRAWN)

    def _child(self, progress: float, may_be_new: bool) -> Proposal:
        """A child of the next parent, recombined and mutated at random. A parent continues unchanged at most once."""
        settings, random = self.settings, self._random
        parent = self._parents[self._next % len(self._parents)]
        self._next += 1
        if not may_be_new:
            return Proposal(parent.architecture, CandidateOrigin.CONTINUED, (parent.number,))
        for _ in range(TRIES):
            child, parents, origin = parent.architecture, [parent.number], CandidateOrigin.CONTINUED
            if len(self._parents) > 1 and random.random() < settings.crossover_probability * (1 - progress):
                other = random.choice(self._parents)
                mixed = self.space.recombine(random, child, other.architecture)[0]
                if mixed != child:
                    child, origin = mixed, CandidateOrigin.RECOMBINED
                    parents.append(other.number)
            if random.random() < settings.mutation_probability or (
                origin is CandidateOrigin.CONTINUED and parent.number in self._continued
            ):
                child = self.space.mutate(random, child, settings.mutation_rate)
                origin = CandidateOrigin.MUTATED if origin is CandidateOrigin.CONTINUED else CandidateOrigin.BOTH
            if origin is CandidateOrigin.CONTINUED or child.key not in self._seen:
                break
        else:
            child, parents, origin = parent.architecture, [parent.number], CandidateOrigin.CONTINUED
        if origin is CandidateOrigin.CONTINUED:
            self._continued.add(parent.number)
        return Proposal(child, origin, tuple(parents))


def select(candidates: Sequence[CnnCandidate], measures: Sequence[Measure], count: int) -> tuple[CnnCandidate, ...]:
    """The best by non-dominated sorting and crowding distance (NSGA-II), the best first; ties go by number."""
    fronts, crowding = _pymoo()
    values = np.asarray([one.costs(measures) for one in candidates], np.float64)
    values[~np.isfinite(values)] = np.finfo(np.float64).max ** 0.5
    ordered: list[CnnCandidate] = []
    for front in fronts().do(values):
        distances = crowding(values[front], filter_out_duplicates=False)
        ranked = sorted(
            zip(front, distances, strict=True), key=lambda pair: (-float(pair[1]), candidates[pair[0]].number)
        )
        ordered += [candidates[at] for at, _ in ranked]
        if len(ordered) >= count:
            break
    return tuple(ordered[:count])


def _pymoo() -> tuple[Any, Any]:
    try:
        from pymoo.operators.survival.rank_and_crowding.metrics import calc_crowding_distance
        from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting
    except ImportError as error:
        raise InputError("searches select with pymoo, which is missing: pip install 'edgewright[search]'") from error
    return NonDominatedSorting, calc_crowding_distance
