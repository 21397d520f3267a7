"""Measures a pipeline over many frames, alone or alternating with onnxruntime on the same number of threads."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from ..network.tensor import Array
from .executors.onnx_session import open_session
from .machine import resident_bytes
from .pipeline import Pipeline
from .statistics import RunStatistics, call_times, median_and_spread
from .workers import WorkerTimes

ROUNDS = 5  # of each side, alternating, so that other load affects both alike
WARM_UP = 3  # frames before measuring: caches, clocks, pages
Inputs = Mapping[str, Array]
Competitor = Callable[[], object]  # computes one frame


@dataclass(frozen=True)
class CompetitorFigures:
    """Figures of another runtime that processes one frame after the other."""

    frames_per_s: float
    latency_s: float
    grown_bytes: int  # growth of the process after loading and warm-up: an estimate of its memory


def measured(pipeline: Pipeline, inputs: Sequence[Inputs], frames: int) -> RunStatistics:
    """Measures the pipeline over `count` frames after a warm-up; inputs are used in turn."""
    _round(pipeline, inputs, WARM_UP)
    return _round(pipeline, inputs, frames)


def compared(
    pipeline: Pipeline, inputs: Sequence[Inputs], frames: int, load: Callable[[], Competitor]
) -> tuple[RunStatistics, CompetitorFigures]:
    """Measures both sides alternately: rates are medians over the rounds.

    The first frame of a turn does not count, because the other side's threads are still spinning.
    """
    before = resident_bytes()
    competitor = load()
    for _ in range(WARM_UP):
        competitor()
    grown = max(0, resident_bytes() - before)
    _round(pipeline, inputs, WARM_UP)
    rounds = min(ROUNDS, frames)
    ours: list[RunStatistics] = []
    rates, latencies = [], []
    for number in range(rounds):
        count = frames * (number + 1) // rounds - frames * number // rounds
        _round(pipeline, inputs, 1)
        ours.append(_round(pipeline, inputs, count))
        competitor()
        times = call_times(competitor, count)
        rates.append(count / sum(times))
        latencies += times
    return combine_rounds(ours), CompetitorFigures(statistics.median(rates), median_and_spread(latencies)[0], grown)


def onnxruntime_session(model: Path, feed: Mapping[str, Array], threads: int) -> Competitor:
    """The model file in onnxruntime with default settings and a number of threads."""
    session, given = open_session(str(model), threads), dict(feed)
    return lambda: session.run(None, given)


def combine_rounds(rounds: Sequence[RunStatistics]) -> RunStatistics:
    """Several rounds as one: medians of rates and latencies, sums of worker times."""
    workers: dict[str, WorkerTimes] = {}
    for each in rounds:
        for name, times in each.workers.items():
            workers[name] = workers.get(name, WorkerTimes()).plus(times)
    return RunStatistics(
        sum(each.frames for each in rounds),
        sum(each.seconds for each in rounds),
        statistics.median(each.frames_per_s for each in rounds),
        statistics.median(each.latency_s for each in rounds),
        statistics.median(each.latency_spread_s for each in rounds),
        workers,
        rounds[-1].memory,
    )


def _round(pipeline: Pipeline, inputs: Sequence[Inputs], frames: int) -> RunStatistics:
    source: Iterator[Inputs] = islice(cycle(inputs), frames)
    for _ in pipeline(source):
        pass
    assert pipeline.statistics is not None
    return pipeline.statistics
