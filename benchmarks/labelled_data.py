"""Labelled data from a file that the reader of a benchmark has: images or series, split in three; no data comes along.

An .npz holds `x` and `y`. Whole numbers in `x` are images, (N, height, width) or (N, height, width, channels); real
numbers are series, (N, time, channels). With `subject`, no person is in two parts. Images may also be JPEG files in one
array of bytes: `train_blob` from `train_off[i]` to `train_off[i + 1]` with `train_y`, and the same for `test`.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SPLIT_SEED = 0  # which samples are held out is part of the data, not of the training
VALIDATION, TEST = 0.2, 0.2  # shares of the samples, or of the people


@dataclass(frozen=True)
class Samples:
    """Inputs as ONNX orders their axes, with zero mean and unit variance over the training part; and their classes."""

    x: Array  # (N, channels, height, width)
    y: Array

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class LabelledData:
    """One data set: what networks are trained on, what thresholds are chosen on, and what is left to judge by."""

    name: str
    train: Samples
    validation: Samples
    test: Samples

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.train.x.shape[1:])

    @property
    def classes(self) -> int:
        return int(max(self.train.y.max(), self.validation.y.max(), self.test.y.max())) + 1


def read_labelled(path: Path) -> LabelledData:
    """The data of a file in three parts."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    if "train_blob" in arrays:
        x, y = jpeg_images(arrays, "train"), arrays["train_y"]
        held = np.random.default_rng(SPLIT_SEED).random(len(y)) < VALIDATION / 2
        return _standardised(
            path.stem, (x[~held], y[~held]), (x[held], y[held]), (jpeg_images(arrays, "test"), arrays["test_y"])
        )
    if not {"x", "y"} <= arrays.keys():
        raise click.UsageError(f"{path} holds {', '.join(arrays)}; expected x and y")
    x, y = arrays["x"], arrays["y"]
    if x.ndim not in (3, 4):
        raise click.UsageError(f"{path}: x has {x.ndim} axes; expected 3 or 4")
    is_series = x.ndim == 3 and np.issubdtype(x.dtype, np.floating)
    images = x[:, :, None, :] if is_series else x[..., None] if x.ndim == 3 else x
    groups = arrays.get("subject", np.arange(len(y)))
    names = np.random.default_rng(SPLIT_SEED).permutation(np.unique(groups))
    tested, validated = round(len(names) * TEST), round(len(names) * (TEST + VALIDATION))
    parts = (np.isin(groups, part) for part in (names[validated:], names[tested:validated], names[:tested]))
    train, validation, test = ((images[part], y[part]) for part in parts)
    return _standardised(path.stem, train, validation, test)


def jpeg_images(arrays: dict[str, Array], part: str) -> Array:
    """The images of a part, (N, height, width, 3)."""
    from PIL import Image

    blob, ends = arrays[f"{part}_blob"].tobytes(), arrays[f"{part}_off"]
    files = (BytesIO(blob[begin:end]) for begin, end in pairwise(ends))
    return np.stack([np.asarray(Image.open(file).convert("RGB")) for file in files])


def _standardised(name: str, *parts: tuple[Array, Array]) -> LabelledData:
    inputs = [np.moveaxis(x.astype(np.float32), -1, 1) for x, _ in parts]
    mean, deviation = inputs[0].mean((0, 2, 3), keepdims=True), inputs[0].std((0, 2, 3), keepdims=True)
    train, validation, test = (
        Samples(np.ascontiguousarray((x - mean) / deviation), y.astype(np.int64))
        for x, (_, y) in zip(inputs, parts, strict=True)
    )
    return LabelledData(name, train, validation, test)
