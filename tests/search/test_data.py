"""Tasks and their data: what each source gives, how subjects are split, and what is refused."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from edgewright import samples
from edgewright.errors import InputError
from edgewright.platform.schema import parse_toml
from edgewright.search.data import load_data
from edgewright.search.front import Measure
from edgewright.search.pricing import Manner
from edgewright.search.task import DataEntry, SearchTask, read_task

TASK = """
name = "moves"
board = "nucleo-f446re"
candidates = 20
metric = "macro_f1"
objectives = ["ram_bytes", "instructions"]
[data]
kind = "numpy"
path = "moves.npz"
subjects = "who"
held_out = [5]
validation = ["4"]
[space]
kind = "sensor"
"""


def read(text):
    return parse_toml(text, "task.toml", SearchTask, "a search task")


def arrays(samples=60, subjects=6, classes=3):
    random = np.random.default_rng(1)
    at = np.arange(samples)
    x = random.normal(3, 2, (samples, 16, 2)).astype(np.float32)
    return {"x": x, "y": at % classes, "who": at // classes % subjects}


def loaded(folder, seed=1, changes=None, **given):
    np.savez(folder / "moves.npz", **{**arrays(), **(changes or {})})
    return load_data(DataEntry(kind="numpy", path="moves.npz", **{"subjects": "who", **given}), folder, seed)


def test_a_task_has_the_metric_first_and_defaults():
    task = read(TASK)
    assert task.measures == (Measure.MACRO_F1, Measure.RAM, Measure.INSTRUCTIONS)
    assert (task.seed, task.manner, task.data.held_out, task.data.validation) == (1, Manner.STREAMED, (5,), ("4",))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("candidates = 20", "candidates = 0", r"candidates is 0; expected how many candidates to train, at least 1"),
        ('["4"]', "[4, 5]", r"data.validation has subjects that held_out has too \(5\)"),
        ('subjects = "who"', "", "data.subjects is missing"),
        ('"ram_bytes"', '"macro_f1"', "objectives names the metric"),
        ('"sensor"', '"sensors"', 'did you mean "sensor"'),
        ('kind = "numpy"', 'kind = "windows"', "data.columns is missing"),
    ],
)
def test_tasks_that_break_a_rule_are_refused(old, new, message):
    with pytest.raises(InputError, match=message):
        read(TASK.replace(old, new))


def test_subjects_are_in_one_split_each_and_training_data_are_normalised(tmp_path):
    data = loaded(tmp_path, held_out=(5,), validation=("4",))
    assert [len(one) for one in (data.train, data.validation, data.held_out)] == [42, 9, 9]
    raw = arrays()
    expected = (raw["x"][raw["who"] == 5] - data.mean) / data.deviation
    np.testing.assert_allclose(data.held_out.x[:, :, 0], expected, atol=1e-5)
    np.testing.assert_allclose(data.train.x.mean((0, 1, 2)), 0, atol=1e-4)
    np.testing.assert_allclose(data.train.x.std((0, 1, 2)), 1, atol=1e-4)
    assert data.shape == (16, 1, 2) and data.classes == ("0", "1", "2")


def test_drawn_splits_depend_on_the_seed_alone(tmp_path):
    one, again, other = (loaded(tmp_path, seed=seed, validation_share=0.3) for seed in (1, 1, 2))
    assert one.digest == again.digest != other.digest
    assert len(one.held_out) in (9, 12) and len(one.validation) in (18, 21, 24)  # one subject of 9 or 12 windows, two


def test_without_subjects_each_class_is_divided(tmp_path):
    data = loaded(tmp_path, subjects=None, held_out_share=0.25, validation_share=0.25)
    for part, count in ((data.train, 10), (data.validation, 5), (data.held_out, 5)):
        assert np.bincount(part.y).tolist() == [count] * 3


def test_class_names_replace_numbers(tmp_path):
    names = np.asarray(["walk", "sit", "unused", "run"])
    data = loaded(tmp_path, changes={"names": names, "y": np.arange(60) % 3 % 2 * 3}, class_names="names")
    assert data.classes == ("walk", "run")


@pytest.mark.parametrize(
    ("changes", "given", "message"),
    [
        ({"y": np.zeros(60, int)}, {}, "all labels are '0'; expected at least two classes"),
        ({"x": np.full((60, 16, 2), np.nan)}, {}, "1920 values are NaN or infinite, the first in sample 0, channel 0"),
        ({"x": arrays()["x"] * [1, 0] + [0, 7]}, {}, "channel 1 is 7 everywhere; leave it out"),
        ({"y": np.zeros(59, int)}, {}, "60 inputs, but labels of shape"),
        ({"x": np.zeros((60, 3))}, {}, r"x has shape \(60, 3\)"),
        ({}, {"inputs": "z"}, r"has no array 'z' \(data.inputs\); it has x, y, who"),
        ({}, {"held_out": (9,)}, r"has no subject 9 \(data.held_out\); it has 0, 1, 2, 3, 4 and 1 more"),
        ({}, {"held_out": (0, 1, 2, 3, 4), "validation": (5,)}, "leave none for training"),
        (
            {"y": np.where(arrays()["who"] == 5, 2, arrays()["y"] % 2)},
            {"held_out": (5,)},
            "training data have no sample",
        ),
        ({"names": np.asarray(["a", "b"])}, {"class_names": "names"}, "labels from 0 to 2, but 2 class names"),
    ],
)
def test_bad_data_are_refused(tmp_path, changes, given, message):
    with pytest.raises(InputError, match=message):
        loaded(tmp_path, changes=changes, **given)


def test_files_that_are_no_data_are_refused(tmp_path):
    entry = DataEntry(kind="numpy", path="moves.npz")
    with pytest.raises(InputError, match="there is no file"):
        load_data(entry, tmp_path, 1)
    (tmp_path / "moves.npz").write_bytes(b"PK\3\4 and then nothing")
    with pytest.raises(InputError, match=r"is no \.npz file of arrays"):
        load_data(entry, tmp_path, 1)


def rows(path, label, subject, count, columns=("a", "b")):
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow([*columns, "activity", "person"])
        for at in range(count):
            writer.writerow([at, at * 2 + len(label), label, subject])


WINDOWS = {"columns": ("a", "b"), "labels": "activity", "subjects": "person", "window": 4, "step": 2}


def test_windows_lie_in_one_label_and_one_subject(tmp_path):
    for person in "abcd":
        rows(tmp_path / f"{person}.csv", "walk", person, 9)
        rows(tmp_path / f"{person}.csv", "sit", person, 5)
        rows(tmp_path / f"{person}.csv", "walk", person, 3)  # too short for a window
    data = load_data(DataEntry(kind="windows", path=".", **WINDOWS, validation_share=0.25), tmp_path, 1)
    assert data.classes == ("sit", "walk") and data.shape == (4, 1, 2)
    assert [np.bincount(part.y).tolist() for part in (data.train, data.validation)] == [[2, 6], [1, 3]]
    values = data.train.x[..., 0] * data.deviation[0] + data.mean[0]
    np.testing.assert_allclose(np.diff(values[:, :, 0], axis=1), 1, atol=1e-4)


def test_bad_csv_files_are_refused(tmp_path):
    rows(tmp_path / "a.csv", "walk", 1, 5)
    with pytest.raises(InputError, match="has no column 'c'; its first line has a, b, activity, person"):
        load_data(DataEntry(kind="windows", path="a.csv", **{**WINDOWS, "columns": ("c",)}), tmp_path, 1)
    with pytest.raises(InputError, match="take a smaller data"):
        load_data(DataEntry(kind="windows", path="a.csv", **{**WINDOWS, "window": 6}), tmp_path, 1)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("1,much,walk,1\n")
    with pytest.raises(InputError, match="line 7: a value is no number"):
        load_data(DataEntry(kind="windows", path="a.csv", **WINDOWS), tmp_path, 1)


def test_image_folders_name_the_classes(tmp_path):
    images = pytest.importorskip("PIL.Image", reason="image folders are read by Pillow")
    random = np.random.default_rng(1)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for at in range(8):
            pixels = random.integers(0, 256, (10, 12, 3), np.uint8)
            images.fromarray(pixels).save(tmp_path / name / f"{at}.png")
    entry = DataEntry(kind="images", path=".", size=(5, 6), held_out_share=0.25, validation_share=0.25)
    data = load_data(entry, tmp_path, 1)
    assert data.classes == ("cat", "dog") and data.shape == (5, 6, 3)
    assert [len(part) for part in (data.train, data.validation, data.held_out)] == [8, 4, 4]
    (tmp_path / "cat" / "broken.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"broken\.png' is no image"):
        load_data(entry, tmp_path, 1)


def test_the_sample_task_has_data_of_which_each_class_is_in_each_split(tmp_path):
    file = samples.write_application("moves", tmp_path)
    task = read_task(file)
    data = load_data(task.data, file.parent, task.seed)
    assert data.classes == ("still", "walk", "run", "turn", "wave") and data.shape == (48, 1, 3)
    assert [np.bincount(part.y).tolist() for part in (data.train, data.validation, data.held_out)] == [
        [144] * 5,
        [48] * 5,
        [48] * 5,
    ]


@pytest.mark.skipif("EDGEWRIGHT_CORPUS" not in os.environ, reason="EDGEWRIGHT_CORPUS does not say where data are")
def test_smartwatch_windows_are_split_by_subject():
    base = Path(os.environ["EDGEWRIGHT_CORPUS"]) / "data"
    entry = DataEntry(
        kind="numpy", path="geotec_har_sw_w64.npz", subjects="subject", class_names="classes", held_out=range(19, 24)
    )
    data = load_data(entry, base, 1)
    assert len(data.train) + len(data.validation) + len(data.held_out) == 6418
    assert data.classes[0] == "SEATED" and data.shape == (64, 1, 6)
