"""Labelled data as benchmarks read it: axes, scales, and parts that share nothing."""

from __future__ import annotations

import io
from pathlib import Path

import click
import numpy as np
import pytest

from labelled_data import read_labelled


def written(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


def test_images_are_split_without_loss(tmp_path: Path):
    x = np.arange(200, dtype=np.uint8)[:, None, None] * np.ones((1, 4, 6), np.uint8)
    data = read_labelled(written(tmp_path, x=x, y=np.arange(200) % 3))
    assert data.shape == (1, 4, 6) and data.classes == 3
    parts = (data.train, data.validation, data.test)
    assert [len(part) for part in parts] == [120, 40, 40]
    assert len({float(value) for part in parts for value in part.x[:, 0, 0, 0]}) == 200
    assert abs(data.train.x.mean()) < 1e-4 and data.train.x.std() == pytest.approx(1)


def test_nobody_is_in_two_parts(tmp_path: Path):
    people = np.repeat(np.arange(10), 5)
    x = people[:, None, None] * np.ones((1, 8, 2), np.float16)
    data = read_labelled(written(tmp_path, x=x, y=people % 2, subject=people))
    assert data.shape == (2, 8, 1)  # time stands where images have their height
    people_of = [{float(v) for v in part.x[:, 0, 0, 0]} for part in (data.train, data.validation, data.test)]
    assert [len(each) for each in people_of] == [6, 2, 2]
    assert not (people_of[0] & people_of[1] or people_of[0] & people_of[2] or people_of[1] & people_of[2])


def test_jpeg_files_in_one_array_are_read(tmp_path: Path):
    image = pytest.importorskip("PIL.Image")
    blobs = []
    for grey in (0, 100, 200):
        image.fromarray(np.full((8, 8, 3), grey, np.uint8)).save(file := io.BytesIO(), "JPEG")
        blobs.append(file.getvalue())
    many = blobs * 20
    ends = np.cumsum([0, *map(len, many)])
    blob, y = np.frombuffer(b"".join(many), np.uint8), np.arange(60) % 3
    arrays = {
        f"{part}_{what}": v for part in ("train", "test") for what, v in (("blob", blob), ("off", ends), ("y", y))
    }
    data = read_labelled(written(tmp_path, **arrays))
    assert data.shape == (3, 8, 8) and len(data.test) == 60 and len(data.train) + len(data.validation) == 60
    for part in (data.train, data.validation, data.test):
        means = part.x.mean((1, 2, 3))
        assert all(means[part.y == 0].max() < means[part.y == 1]) and all(means[part.y == 1].max() < means[part.y == 2])


def test_other_files_are_refused(tmp_path: Path):
    with pytest.raises(click.UsageError, match="holds z; expected x and y"):
        read_labelled(written(tmp_path, z=np.zeros(3)))
    with pytest.raises(click.UsageError, match="x has 2 axes"):
        read_labelled(written(tmp_path, x=np.zeros((3, 3)), y=np.zeros(3)))
