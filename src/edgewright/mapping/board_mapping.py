"""BoardMapping: which workers run which layers, with lanes and replicas, and predicted times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..program.deployment import Worker
from .problem import Execution, MappingProblem


@dataclass(frozen=True)
class MappedStage:
    """Layers that one worker executes for a frame, or several workers for frames in turn.

    They are divided into parts if others must run in between; the parts run in this order.
    """

    parts: tuple[tuple[int, ...], ...]  # indices of layers
    execution: Execution
    replicas: int
    seconds: tuple[float, ...]  # of each part, including transfers

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(layer for part in self.parts for layer in part)

    @property
    def period(self) -> float:
        """Seconds per frame without waiting."""
        return sum(self.seconds) / self.replicas

    @property
    def cores(self) -> Mapping[str, int]:
        return self.execution.cores(self.replicas)


@dataclass(frozen=True)
class BoardMapping:
    problem: MappingProblem
    stages: tuple[MappedStage, ...]  # producers first, if no stage has several parts
    method: str
    optimal: bool  # no mapping of this kind has a higher throughput, or a better objective

    @cached_property
    def slowest(self) -> MappedStage:
        """The bottleneck stage."""
        return max(self.stages, key=lambda stage: stage.period)

    @property
    def load_period(self) -> float:
        """The load of the slowest stage per frame: the period, unless parts of one worker wait for others."""
        return self.slowest.period

    @cached_property
    def places(self) -> Mapping[str, tuple[int, int]]:
        """The stage and position of each part by name: stage2, or stage2-1 in a stage with several parts."""
        return {
            f"stage{number + 1}" + (f"-{place + 1}" if len(stage.parts) > 1 else ""): (number, place)
            for number, stage in enumerate(self.stages)
            for place in range(len(stage.parts))
        }

    def label(self, part: str) -> str:
        """The number of a part's stage, and of the part if the stage has several: 2, or 2.1."""
        stage, place = self.places[part]
        return f"{stage + 1}.{place + 1}" if len(self.stages[stage].parts) > 1 else f"{stage + 1}"

    def stage_of(self, part: str) -> MappedStage:
        return self.stages[self.places[part][0]]

    @property
    def workers(self) -> tuple[Worker, ...]:
        """A worker for each replica, without device and cores."""
        workers = []
        for number, stage in enumerate(self.stages):
            parts = tuple(part for part, (at, _) in self.places.items() if at == number)
            for n in range(stage.replicas):
                name = f"worker{number + 1}" + (f"-{n + 1}" if stage.replicas > 1 else "")
                workers.append(Worker(name, "", stage.execution.pool, (), parts, (n, stage.replicas)))
        return tuple(workers)

    @property
    def busy(self) -> Mapping[str, int]:
        """The number of busy cores in each pool."""
        counts: Counter[str] = Counter()
        for stage in self.stages:
            counts.update(stage.cores)
        return dict(counts)


def stage_of(
    problem: MappingProblem, parts: Sequence[Sequence[int]], execution: Execution, replicas: int = 1
) -> MappedStage:
    """The stage with its predicted times."""
    seconds = tuple(problem.time(part, execution) + problem.moving(part, execution) for part in parts)
    return MappedStage(tuple(tuple(part) for part in parts), execution, replicas, seconds)


def with_busy_cores(mapping: BoardMapping, unslowed: MappingProblem) -> BoardMapping:
    """The mapping with times for exactly the cores that it keeps busy."""
    slowed = unslowed.slowed(mapping.busy)
    place = {_key(execution): execution for execution in slowed.executions}
    stages = tuple(
        stage_of(slowed, stage.parts, place[_key(stage.execution)], stage.replicas) for stage in mapping.stages
    )
    return BoardMapping(unslowed, stages, mapping.method, mapping.optimal)


def _key(execution: Execution) -> tuple[str, int, str, str | None]:
    return execution.pool, execution.lanes, execution.executor, execution.driver
