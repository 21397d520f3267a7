"""Architecture search on a subset of CIFAR-10 beside MLPerf Tiny's ResNet-8, trained from the start on that subset.

    python benchmarks/search_cifar.py cifar10_subset_jpg.npz mlperf_ic_resnet8_int8.tflite [--candidates 400]
        [--final-epochs 60] [--images 10000] [-o out/search_cifar]

The bar: a point within one point of the ResNet-8's accuracy on the subset's test images, which no decision sees, in at
most 10 KB of RAM and 0.7 of its instructions as whole layers. Nothing is inherited from the ResNet-8. Training takes a
GPU where PyTorch finds one. Exit status 1 where the bar is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from edgewright.network import Network
from edgewright.network.read import read
from edgewright.network.reference import reference
from edgewright.platform import load_board
from edgewright.search.front import DesignPoint
from edgewright.search.outcome import run_search
from edgewright.search.pricing import CandidatePricer, Manner
from edgewright.search.workers import LocalWorkers
from labelled_data import jpeg_images

BOARD, RAM, SHARE, POINTS = "nucleo-f446re", 10_000, 0.7, 0.01
TASK = """
name = "cifar"
board = "nucleo-f446re"
candidates = {candidates}
points = 16
objectives = ["ram_bytes", "instructions"]
seed = {seed}
[data]
kind = "numpy"
path = "{data}"
subjects = "part"
held_out = ["test"]
validation = ["validation"]
[space]
kind = "{space}"
blocks = [3, 8]
channels = [8, 64]
kernels = [3, 5]
strides = [1, 2]
pools = [1, 2]
[limits]
ram = {ram}
instructions = {instructions}
[evolution]
preset = "cifar10"
population = 40
[training]
epochs = 2.0
final_epochs = {final_epochs}
noise = 0.1
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("resnet", type=Path)
    parser.add_argument("--candidates", type=int, default=400)
    parser.add_argument("--final-epochs", type=float, default=60)
    parser.add_argument("--images", type=int, default=10_000, help="of the training images")
    parser.add_argument("--space", default="residual")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-o", "--output", type=Path, default=Path("out/search_cifar"))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    data = given.output / "cifar.npz"
    test_x, test_y = write_data(given.data, data, given.images)
    resnet = read(given.resnet)
    wanted = accuracy(given.resnet, resnet, test_x, test_y)
    price = CandidatePricer(load_board(BOARD), Manner.WHOLE).network_price(resnet)
    print(
        f"ResNet-8: {wanted:.2%} of {len(test_y)} test images, {price.ram_bytes} B, {price.instructions} instructions"
    )
    task = given.output / "cifar.toml"
    task.write_text(
        TASK.format(
            candidates=given.candidates,
            data=data.name,
            seed=given.seed,
            space=given.space,
            ram=RAM,
            instructions=int(SHARE * price.instructions),
            final_epochs=given.final_epochs,
        )
    )
    began = time.perf_counter()
    front = given.output / "front.json"
    resumed = front.with_suffix(".journal").exists()
    outcome = run_search(task, front, is_resumed=resumed, workers=LocalWorkers(given.workers), is_checked=False)
    print(f"{given.candidates} candidates in {time.perf_counter() - began:.0f} s")
    for point in sorted(outcome.front.points, key=held_out, reverse=True):
        print(
            f"  {point.name}: {held_out(point):.2%} of the test images, {point.ram_bytes} B, "
            f"{point.instructions / price.instructions:.2f} of the instructions"
        )
    best = max(map(held_out, outcome.front.points), default=0.0)
    print(f"best: {100 * (best - wanted):+.2f} points; the bar is {-100 * POINTS:+.0f}")
    return 0 if best >= wanted - POINTS else 1


def held_out(point: DesignPoint) -> float:
    return point.held_out_accuracy or 0.0


def write_data(source: Path, target: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, height, width, channels) with what part each belongs to; the test images and their classes."""
    with np.load(source) as file:
        arrays = {name: file[name] for name in file.files}
    every = np.linspace(0, len(arrays["train_y"]), count, endpoint=False).astype(int)  # they are ordered by class
    x, y = jpeg_images(arrays, "train")[every], arrays["train_y"][every]
    test_x, test_y = jpeg_images(arrays, "test"), arrays["test_y"]
    part = np.where(np.arange(len(x)) % 10 == 0, "validation", "train")
    part = np.concatenate([part, np.full(len(test_x), "test")])
    np.savez(target, x=np.concatenate([x, test_x]).astype(np.uint8), y=np.concatenate([y, test_y]), part=part)
    return test_x, test_y


def accuracy(path: Path, network: Network, x: np.ndarray, y: np.ndarray) -> float:
    """The share of images that the model file gives their class, by its own runtime."""
    (name,) = network.inputs
    quant, truth = network.tensors[name].quant, reference(path, network)
    assert quant is not None
    right = 0
    for image, label in zip(x, y, strict=True):
        stored = np.clip(np.round(image / quant.scale[0]) + quant.zero[0], -128, 127).astype(np.int8)
        right += int(next(iter(truth.run({name: stored[None]}).values())).argmax()) == label
    return right / len(y)


if __name__ == "__main__":
    sys.exit(main())
