"""What it is worth that a search knows the RAM after streaming: budgets of RAM, against layer-by-layer pricing.

    python benchmarks/search_budgets.py cifar10_subset_jpg.npz [--candidates 60] [--seeds 5] [--budgets 4K 8K 16K]
        [--plot budgets.svg]

Two searches per budget and seed, alike in space, data, candidates and epochs: one prices candidates streamed, the other
layer by layer, and neither trains what exceeds the budget. Hypervolumes are over accuracy, RAM and instructions, as
shares of the budget and of the largest number of instructions of both fronts; those of the layer-by-layer search are
given as it priced them, and with its front priced streamed afterwards. Accuracy is on the validation data, in float32.

Data are 10 classes of images: `x` (n, height, width[, channels]) and `y`, or JPEG blobs with offsets.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean

import numpy as np

from budgets_plot import budgets_svg
from edgewright.platform import load_board, parse_size
from edgewright.platform.schema import parse_toml
from edgewright.search.candidates import CnnCandidate
from edgewright.search.data import SearchData, load_data
from edgewright.search.front import hypervolume
from edgewright.search.journal import Journal, JournalIdentity
from edgewright.search.outcome import torch_trainer
from edgewright.search.pricing import CandidatePricer, Manner
from edgewright.search.searching import ArchitectureSearch
from edgewright.search.task import SearchTask
from edgewright.search.workers import LocalWorkers

TASK = """
name = "budgets"
board = "nucleo-f446re"
candidates = {candidates}
objectives = ["ram_bytes", "instructions"]
[data]
kind = "numpy"
path = "images.npz"
held_out_share = 0.0
validation_share = 0.2
[space]
kind = "{space}"
blocks = [2, 5]
channels = [4, 32]
channel_step = 4
kernels = [3, 5]
strides = [1, 2]
pools = [1, 2]
[limits]
ram = "{budget}"
instructions = 20_000_000
[evolution]
population = {population}
mutation_probability = 0.6
mutation_rate = 0.2
crossover_probability = 0.4
[training]
epochs = {epochs}
learning_rate = 2e-3
batch = 64
"""
VOLUME_GAIN, ACCURACY_GAIN = 1.15, 0.02  # aims


@dataclass(frozen=True)
class Searched:
    """One search: its front, and the same priced streamed."""

    front: tuple[CnnCandidate, ...]
    streamed: tuple[tuple[float, float, float], ...]
    refused: int

    @property
    def accuracy(self) -> float:
        return max(one.accuracy or 0.0 for one in self.front)

    @property
    def priced(self) -> tuple[tuple[float, float, float], ...]:
        return tuple((1 - (one.accuracy or 0.0), one.price.ram_bytes, one.price.instructions) for one in self.front)


@dataclass(frozen=True)
class SearchPair:
    """Both searches under one budget with one seed, the streaming-aware one first."""

    accuracy: tuple[float, float]
    volume: tuple[float, float]
    later: float  # the hypervolume of the layer-by-layer search, with its front priced streamed
    refused: tuple[int, int]

    def __str__(self) -> str:
        (ours, theirs), volumes, refused = self.accuracy, self.volume, self.refused
        return (
            f"{ours:.2%}, {theirs:.2%} | {volumes[0]:.4f}, {volumes[1]:.4f}, {ratio_of(self):.3f}, {self.later:.4f} "
            f"({refused[0]} and {refused[1]} refused)"
        )


def gain_of(row: SearchPair) -> float:
    return row.accuracy[0] - row.accuracy[1]


def ratio_of(row: SearchPair) -> float:
    return row.volume[0] / row.volume[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--candidates", type=int, default=60)
    parser.add_argument("--population", type=int, default=12)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--images", type=int, default=0, help="the first of them alone")
    parser.add_argument("--space", default="separable")
    parser.add_argument("--budgets", nargs="+", default=["4K", "8K", "16K"])
    parser.add_argument("--plot", type=Path, help="an .svg file")
    given = parser.parse_args()

    workers = LocalWorkers()
    found: dict[str, list[SearchPair]] = {budget: [] for budget in given.budgets}
    print("budget seed | best accuracy: streamed, by layers | hypervolume: streamed, by layers, ratio, streamed later")
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder, "images.npz"), **images(given.data, given.images))
        for budget, rows in found.items():
            for seed in range(1, given.seeds + 1):
                text = TASK.format(**{**vars(given), "budget": budget})
                task = parse_toml(text, "task", SearchTask, "a search task").model_copy(update={"seed": seed})
                rows.append(compared(task, parse_size(budget), Path(folder), workers))
                print(f"{budget:>6} {seed:>4} | {rows[-1]}", flush=True)
            gain, ratio = mean(map(gain_of, rows)), mean(map(ratio_of, rows))
            print(f"{budget:>6} mean | {100 * gain:+.2f} points | {ratio:.3f} × hypervolume", flush=True)
    gains, ratios = ([mean(map(figure, rows)) for rows in found.values()] for figure in (gain_of, ratio_of))
    print(f"{100 * ACCURACY_GAIN:g} points at one budget: {'yes' if max(gains) >= ACCURACY_GAIN else 'no'}")
    print(f"{VOLUME_GAIN:g} × hypervolume at one budget: {'yes' if max(ratios) >= VOLUME_GAIN else 'no'}")
    if given.plot:
        given.plot.write_text(plot(found))
    return 0


def compared(task: SearchTask, budget: int, folder: Path, workers: LocalWorkers) -> SearchPair:
    """Searches twice, priced streamed and layer by layer."""
    data = load_data(task.data, folder, task.seed)
    ours, theirs = (searched(task, data, manner, folder, workers) for manner in (Manner.STREAMED, Manner.WHOLE))
    most = max(cost[2] for cost in (*ours.priced, *theirs.priced))
    return SearchPair(
        (ours.accuracy, theirs.accuracy),
        (volume(ours.priced, budget, most), volume(theirs.priced, budget, most)),
        volume(theirs.streamed, budget, most),
        (ours.refused, theirs.refused),
    )


def plot(found: Mapping[str, Sequence[SearchPair]]) -> str:
    def series(pair: Callable[[SearchPair], tuple[float, float]]) -> dict[str, dict[str, list[float]]]:
        names = ("priced streamed", "priced layer by layer")
        return {
            name: {budget: [pair(row)[at] for row in rows] for budget, rows in found.items()}
            for at, name in enumerate(names)
        }

    accuracy = series(lambda row: (100 * row.accuracy[0], 100 * row.accuracy[1]))
    return budgets_svg([("best accuracy, %", accuracy), ("hypervolume", series(lambda row: row.volume))])


def images(path: Path, count: int) -> dict[str, np.ndarray]:
    """Arrays x and y of a file of images."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if "x" not in arrays:
        from PIL import Image

        blob, offsets = arrays["train_blob"].tobytes(), arrays["train_off"]
        spans = list(pairwise(offsets))[: count or None]
        x = np.stack([np.asarray(Image.open(io.BytesIO(blob[start:end])), np.uint8) for start, end in spans])
        return {"x": x, "y": arrays["train_y"][: len(x)]}
    x = arrays["x"]
    if x.ndim == 2:
        side = round(x.shape[1] ** 0.5)
        x = x.reshape(-1, side, side)
    x = x[..., None] if x.ndim == 3 else x
    order = np.random.default_rng(1).permutation(len(x))[: count or None]
    return {"x": x[order], "y": arrays["y"][order]}


def searched(task: SearchTask, data: SearchData, manner: Manner, folder: Path, workers: LocalWorkers) -> Searched:
    pricer = CandidatePricer(load_board(task.board), manner)
    path = folder / f"{task.seed}-{manner.value}-{task.limits.ram}.journal"
    journal = Journal(path, JournalIdentity(task.name, "", task.seed), is_resumed=False)
    trainer = torch_trainer(task, data)
    search = ArchitectureSearch(task, data.shape, len(data.classes), journal, workers, pricer, trainer)
    candidates = search.run()
    front = search.front()
    journal.close()
    streamed = CandidatePricer(pricer.board, Manner.STREAMED)
    prices = [one.price if manner is Manner.STREAMED else streamed.price(one.architecture) for one in front]
    later = tuple(
        (1 - (one.accuracy or 0.0), price.ram_bytes, price.instructions)
        for one, price in zip(front, prices, strict=True)
    )
    return Searched(front, later, sum(bool(one.refusal) for one in candidates))


def volume(costs: Sequence[tuple[float, float, float]], budget: int, most: float) -> float:
    return hypervolume([(error, ram / budget, work / most) for error, ram, work in costs], (1.0, 1.0, 1.0))


if __name__ == "__main__":
    sys.exit(main())
