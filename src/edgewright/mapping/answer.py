"""MappingAnswer: a mapping with its predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

from ..platform import Power
from .board_mapping import BoardMapping
from .timed_graph import MappingTiming

UNKNOWN = Power()  # of a board without power figures


@dataclass(frozen=True)
class MappingAnswer:
    """A mapping with its predictions."""

    mapping: BoardMapping
    timing: MappingTiming
    bound: float  # upper bound in frames per second
    power: Power = UNKNOWN

    def __repr__(self) -> str:
        stages = len(self.mapping.stages)
        return f"MappingAnswer('{self.mapping.problem.name}', {stages} stages, {self.throughput:.4g} frames/s)"

    @property
    def throughput(self) -> float:
        return 1 / self.timing.period if self.timing.period else inf

    @property
    def gap(self) -> float:
        """The gap between the bound and the throughput, as a share of the bound."""
        return max(0.0, 1 - self.throughput / self.bound) if self.bound else 0.0

    @property
    def latency(self) -> float:
        return self.timing.latency

    @property
    def waits(self) -> bool:
        """Whether parts of one worker wait for others, so that the period exceeds every worker's load."""
        return self.timing.period > self.mapping.load_period * (1 + 1e-9)

    @cached_property
    def memory_bytes(self) -> int:
        """The arenas of all workers, estimated by the largest layer, and the slots of all FIFOs."""
        sizes = self.mapping.problem.working_bytes
        arenas = sum(stage.replicas * max(sizes[layer] for layer in stage.layers) for stage in self.mapping.stages)
        return arenas + self.timing.fifo_bytes

    @property
    def utilisation(self) -> tuple[float, ...]:
        """The share of time that each stage's workers are busy."""
        return tuple(stage.period / self.timing.period if self.timing.period else 0.0 for stage in self.mapping.stages)

    @property
    def energy(self) -> float | None:
        """Joules per frame, an estimate: the board draws `active` if all processors are busy, `idle` if none is."""
        if self.power.active is None:
            return None
        idle = self.power.idle or 0.0
        busy = sum(
            share * sum(stage.cores.values())
            for share, stage in zip(self.utilisation, self.mapping.stages, strict=True)
        )
        cores = sum(pool.cores for pool in self.mapping.problem.pools)
        return (idle + (self.power.active - idle) * busy / cores) * self.timing.period
