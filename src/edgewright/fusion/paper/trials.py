"""Evaluates paths: the RAM of the network with each, as ordered and laid out by the planner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from joblib import Parallel, delayed

from ...errors import InputError
from ...memory import PLAIN, Techniques
from ...memory.layout import critical
from ...memory.row_windows import pullable
from ...memory.streamed import lay_out
from ...network import Network
from ...program import FusionSchedule
from .paths import Path, schedule_of

MANY = 20_000  # candidates times layers; beyond it parallel processes pay


@dataclass(frozen=True)
class Trial:
    """A candidate and the RAM of its plan; None if the planner refuses it, and why."""

    path: Path
    schedule: FusionSchedule
    peak_bytes: int | None
    refusal: str = ""


@dataclass(frozen=True)
class TrialEvaluator:
    """Evaluates candidate paths of one network with fixed planning options."""

    network: Network
    techniques: Techniques
    alignment: int

    @classmethod
    def of(cls, network: Network, plain: bool, pull_rows: bool, alignment: int) -> TrialEvaluator:
        techniques = PLAIN if plain else Techniques()
        pulled = tuple(pullable(network).items()) if pull_rows else ()
        return cls(network, replace(techniques, pulled=pulled), alignment)

    def tried_all(self, chosen: Sequence[FusionSchedule], paths: Sequence[Path]) -> list[Trial]:
        """Evaluates all paths, each added to the earlier choices; in parallel if there are many."""
        ordered = sorted(paths, key=lambda path: (*_lane(path), path.partition.parts))
        lanes = [list(lane) for _, lane in groupby(ordered, key=_lane)]
        is_worth_it = len(paths) * len(self.network.layers) >= MANY
        jobs = min(len(lanes), os.cpu_count() or 1) if is_worth_it and lanes else 1
        worker = self.without_weights() if jobs > 1 else self
        results = Parallel(n_jobs=jobs)(delayed(worker.tried_along)(chosen, lane) for lane in lanes)
        return [trial for trials in results for trial in trials]

    def tried_along(self, chosen: Sequence[FusionSchedule], lane: Sequence[Path]) -> list[Trial]:
        """Evaluates one path with more and more parts, until its buffer no longer sets the peak (S 4.3.3)."""
        trials: list[Trial] = []
        for path in lane:
            trial, is_critical = self._tried(chosen, path)
            is_same = bool(trials) and trial.peak_bytes == trials[-1].peak_bytes
            trials.append(trial)
            if is_same and not is_critical:
                break
        return trials

    def _tried(self, chosen: Sequence[FusionSchedule], path: Path) -> tuple[Trial, bool]:
        """The evaluated path, and whether its critical buffer still sets the peak."""
        schedule = schedule_of(self.network, path)
        try:
            solution = lay_out(self.network, self.techniques, self.alignment, with_schedule(chosen, schedule))
        except InputError as error:
            return Trial(path, schedule, None, str(error)), False
        layout = solution.problem.layout_problem(solution.order.steps)
        root = solution.problem.views.places[path.critical].root
        return Trial(path, schedule, solution.peak), root in critical(layout, solution.placement)

    def without_weights(self) -> TrialEvaluator:
        """A copy for other processes: planning needs to know which tensors are constant, not their values."""
        nothing = dict.fromkeys(self.network.constants, np.empty(0))
        return replace(self, network=replace(self.network, constants=nothing))


def with_schedule(chosen: Sequence[FusionSchedule], schedule: FusionSchedule) -> tuple[FusionSchedule, ...]:
    """The schedules with one more, without those that share layers with it."""
    return (*(other for other in chosen if not set(other.layers) & set(schedule.layers)), schedule)


def _lane(path: Path) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return path.layers, path.partition.axes
