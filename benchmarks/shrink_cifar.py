"""MLPerf Tiny's ResNet-8 with three quarters of its channels, on a subset of CIFAR-10, beside all of it in int8.

    python benchmarks/shrink_cifar.py cifar10_subset_jpg.npz mlperf_ic_resnet8_f32.tflite mlperf_ic_resnet8_int8.tflite
        [--share 0.75] [--epochs 12] [--seed 1] [-o narrow.onnx]

The filters with the smallest weights are removed, and the rest is trained as `flow` does with [shrink]: on the training
images, mirrored and shifted copies among them, towards the outputs of the float32 model and the labels. So the narrow
network inherits from the ResNet-8, whose own training saw all of CIFAR-10. The bar: on the subset's test images, which
no step sees, at most one point less than the ResNet-8 in int8, streamed in at most 10 KB of RAM and 0.7 of its
instructions. Exit status 1 where it is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from edgewright.flow.fine_tuning import fine_tune
from edgewright.flow.model_data import ModelData, spread
from edgewright.flow.quantisation import int8_model, model_outputs
from edgewright.flow.shrinking import shrink
from edgewright.network import Network
from edgewright.network.onnx_writer import to_onnx
from edgewright.network.read import read
from edgewright.network.reference import reference
from edgewright.platform import load_board
from edgewright.search.pricing import CandidatePricer, Manner
from labelled_data import Array, jpeg_images

BOARD, RAM, INSTRUCTIONS, POINTS = "nucleo-f446re", 10_000, 0.7, 0.01
STEP = 4  # numbers of channels are multiples of it
SHIFT = 3  # pixels at most
CALIBRATED = 256  # images that ranges are found on


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("trained", type=Path)
    parser.add_argument("whole", type=Path)
    parser.add_argument("--share", type=float, default=0.75, help="of the channels")
    parser.add_argument("--epochs", type=float, default=12)
    parser.add_argument("--learning-rate", type=float, default=0.01, help="the share by which weights change at first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path("narrow.onnx"))
    given = parser.parse_args()
    with np.load(given.data) as file:
        arrays = {name: file[name] for name in file.files}
    tested = jpeg_images(arrays, "test"), arrays["test_y"]
    trained, whole = read(given.trained), read(given.whole)
    wanted = accuracy(given.whole, whole, *tested)
    pricers = [CandidatePricer(load_board(BOARD), manner) for manner in (Manner.WHOLE, Manner.STREAMED)]
    before = [pricer.network_price(whole) for pricer in pricers]
    print(f"{whole.name}: {wanted:.2%} of {len(tested[1]):,} test images", flush=True)
    for pricer, price in zip(pricers, before, strict=True):
        print(f"  {pricer.manner.value}: {price.ram_bytes:,} B, {price.instructions:,} instructions", flush=True)

    data = augmented(jpeg_images(arrays, "train"), arrays["train_y"], trained.inputs[0], given.seed)
    began = time.process_time()
    teacher = to_onnx(trained)
    targets = [outputs[0] for outputs in model_outputs(teacher, read(teacher), data)]
    narrow = shrink(trained, given.share, STEP)
    narrow = fine_tune(narrow, data, targets, given.epochs, given.learning_rate, given.seed)
    _, model = int8_model(narrow, data.part(spread(len(data), CALIBRATED)))
    given.output.write_bytes(model.SerializeToString())
    network = read(given.output)
    reached = accuracy(given.output, network, *tested)
    print(f"{given.share:.0%} of the channels, {given.epochs:g} epochs of {len(data):,} images: {reached:.2%}")
    after = [pricer.network_price(pricer.network(model)) for pricer in pricers]
    shares = [new.instructions / old.instructions for new, old in zip(after, before, strict=True)]
    for pricer, price, share in zip(pricers, after, shares, strict=True):
        print(f"  {pricer.manner.value}: {price.ram_bytes:,} B, {price.instructions:,} instructions ({share:.2f})")
    print(f"{100 * (reached - wanted):+.2f} points after {time.process_time() - began:.0f} s of one core")
    return 0 if reached >= wanted - POINTS and after[1].ram_bytes <= RAM and shares[1] <= INSTRUCTIONS else 1


def augmented(images: Array, classes: Array, name: str, seed: int) -> ModelData:
    """Each image as it is, mirrored, and shifted by some pixels."""
    random = np.random.default_rng(seed)
    shifted = np.pad(images, ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT), (0, 0)), mode="reflect")
    places = random.integers(0, 2 * SHIFT + 1, (len(images), 2))
    size = images.shape[1]
    moved = [one[row : row + size, column : column + size] for one, (row, column) in zip(shifted, places, strict=True)]
    every = np.concatenate([images, images[:, :, ::-1], np.stack(moved)]).astype(np.float32)
    return ModelData([{name: image[None]} for image in every], np.tile(classes.astype(np.int64), 3))


def accuracy(path: Path, network: Network, images: Array, classes: Array) -> float:
    """The share of images that an int8 model gives their class, by its own runtime."""
    (name,), truth = network.inputs, reference(path, network)
    quant = network.tensors[name].quant
    right = 0
    for image, label in zip(images, classes, strict=True):
        stored = image.astype(np.float32)
        if quant is not None:
            stored = np.clip(np.round(stored / quant.scale[0]) + quant.zero[0], -128, 127).astype(np.int8)
        right += int(next(iter(truth.run({name: stored[None]}).values())).argmax()) == label
    return right / len(classes)


if __name__ == "__main__":
    sys.exit(main())
