"""Samplers of optuna on the same space, with limits as constraints and optuna's own journal of all trials."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from .architecture import CnnArchitecture, Shape3
from .candidates import CandidateOrigin, CnnCandidate, Proposal, excess
from .evolution import settings_of
from .task import METRICS, Sampler, SearchTask

EXCESS = "excess"  # a trial's attribute: by what share it breaks a limit
TPE_BATCH = 8  # trials between two updates of the model
UNKNOWN = 1e30  # in place of a cost that is unknown


class OptunaProposer:
    """A study of optuna that is asked for candidates and told what became of them.

    Each candidate inherits the weights of the trained one that has most layers in common with it.
    """

    def __init__(self, task: SearchTask, shape: Shape3, classes: int, log: Path | None = None) -> None:
        self.task, self.shape, self.classes = task, shape, classes
        population = settings_of(task.evolution, task.training).population
        self.batch = min(TPE_BATCH, population) if task.sampler is Sampler.TPE else population
        self.trained: list[CnnCandidate] = []
        self._asked: dict[str, list[Any]] = defaultdict(list)  # trials without an answer, by architecture
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parts that optuna calls experimental
            self.study = _study(task, population, log)

    @property
    def ancestors(self) -> set[int]:
        return {one.number for one in self.trained}

    def propose(self, count: int, fresh: int, _progress: float) -> list[Proposal]:
        made = []
        for _ in range(min(count, fresh)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trial = self.study.ask()
                architecture = self.task.space.suggest(trial, self.shape, self.classes)
            self._asked[architecture.key].append(trial)
            made.append(Proposal(architecture, CandidateOrigin.SAMPLED, self._nearest(architecture)))
        return made

    def fallback(self, _count: int) -> list[Proposal]:
        return [Proposal(self.task.space.least(self.shape, self.classes), CandidateOrigin.LEAST)]

    def refuse(self, candidates: Sequence[CnnCandidate]) -> None:
        for one in candidates:
            self._tell(one)

    def learn(self, candidates: Sequence[CnnCandidate]) -> None:
        for one in candidates:
            self._tell(one)
        self.trained += candidates

    def _tell(self, candidate: CnnCandidate) -> None:
        """Tells optuna the costs; a candidate that was not trained has the worst accuracy and its true price."""
        if not self._asked[candidate.architecture.key]:
            return  # a fallback, which is no trial
        trial = self._asked[candidate.architecture.key].pop(0)
        trial.set_user_attr(EXCESS, excess(candidate.price, self.task.limits))
        costs = (0.0 if m in METRICS and not candidate.is_trained else candidate.cost(m) for m in self.task.measures)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.study.tell(trial, [min(cost, UNKNOWN) for cost in costs])

    def _nearest(self, architecture: CnnArchitecture) -> tuple[int, ...]:
        wanted = _shapes(architecture)
        best = max(
            self.trained,
            key=lambda one: (len(wanted & _shapes(one.architecture)), -one.cost(self.task.measures[0]), -one.number),
            default=None,
        )
        return () if best is None else (best.number,)


def _shapes(architecture: CnnArchitecture) -> set[tuple[str, tuple[int, ...] | None]]:
    return {(layer.name, layer.weight_shape) for layer in architecture.layers() if layer.weight_shape}


def _study(task: SearchTask, population: int, log: Path | None) -> Any:
    try:
        import optuna
    except ImportError as error:
        raise InputError(
            f"the sampler \"{task.sampler.value}\" is optuna's, which is missing: pip install 'edgewright[search]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def constraints(trial: Any) -> tuple[float, ...]:
        return (trial.user_attrs[EXCESS],)

    samplers = optuna.samplers
    sampler = {
        Sampler.TPE: lambda: samplers.TPESampler(seed=task.seed, constraints_func=constraints, constant_liar=True),
        Sampler.NSGA2: lambda: samplers.NSGAIISampler(
            seed=task.seed, constraints_func=constraints, population_size=population
        ),
        Sampler.RANDOM: lambda: samplers.RandomSampler(seed=task.seed),
    }[task.sampler]()
    storage = None
    if log is not None:
        log.unlink(missing_ok=True)  # a search that goes on tells all trials again
        backend = optuna.storages.journal.JournalFileBackend(str(log))
        storage = optuna.storages.JournalStorage(backend)
    directions = ["minimize"] * len(task.measures)
    return optuna.create_study(storage=storage, sampler=sampler, study_name=task.name, directions=directions)
