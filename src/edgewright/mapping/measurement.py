"""Runs a mapping on this machine: builds it into a folder, alternates with onnxruntime, compares with predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ..network import Array, Network, random_inputs
from ..network.interface import file_inputs, stored_inputs
from ..network.reference import to_file_layout
from ..program.deployment import Deployment
from ..run.measurement import CompetitorFigures, compared, measured, onnxruntime_session
from ..run.pipeline import Pipeline
from ..run.statistics import RunStatistics
from .answer import MappingAnswer

VARIETY = 4  # random frames, used in turn


@dataclass(frozen=True)
class MeasuredMapping:
    """Measurements of a mapping, and of onnxruntime on the same number of threads (None for other files)."""

    ours: RunStatistics
    onnxruntime: CompetitorFigures | None

    def busy(self, answer: MappingAnswer, deployment: Deployment) -> tuple[float, ...]:
        """The share of time that each stage's workers computed."""
        shares = []
        for number, stage in enumerate(answer.mapping.stages):
            part = deployment.parts[_first_part(answer, number)].name
            names = [worker.name for worker in deployment.workers if part in worker.parts]
            total = sum(self.ours.workers[name].busy for name in names)
            shares.append(total / stage.replicas / self.ours.seconds if self.ours.seconds else 0.0)
        return tuple(shares)

    def to_dict(self) -> Mapping[str, float | None]:
        """The measurements as `--json` prints them."""
        return {
            "measured_throughput": self.ours.frames_per_s,
            "measured_latency_s": self.ours.latency_s,
            "onnxruntime_throughput": self.onnxruntime.frames_per_s if self.onnxruntime else None,
        }


def _first_part(answer: MappingAnswer, number: int) -> int:
    return sum(len(stage.parts) for stage in answer.mapping.stages[:number])


def measure_mapping(
    answer: MappingAnswer, network: Network, model: Path, running: Pipeline, frames: int
) -> MeasuredMapping:
    """Measures `frames` frames on each side, alternating."""
    samples = [random_inputs(network, seed) for seed in range(VARIETY)]
    stored = [stored_inputs(network, sample) for sample in samples]
    if model.suffix != ".onnx":
        return MeasuredMapping(measured(running, stored, frames), None)
    threads = sum(count for name, count in answer.mapping.busy.items() if not answer.mapping.problem.pool[name].is_gpu)
    load = partial(onnxruntime_session, model, _feed(network, samples[0]), threads)
    return MeasuredMapping(*compared(running, stored, frames, load))


def _feed(network: Network, sample: Mapping[str, Array]) -> dict[str, Array]:
    """A sample in the layout of the model file."""
    theirs = file_inputs(network, sample)
    return {name: np.ascontiguousarray(to_file_layout(network, name, value)) for name, value in theirs.items()}
