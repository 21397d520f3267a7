"""Labelled data of a task: read, checked, split by subject, normalised."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .architecture import Shape3
from .task import DataEntry, DataKind, listed
from .weights import FloatArray

LabelArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm")
MOST_VALUES = 1 << 31
CALIBRATION = 1024  # training samples from which int8 takes its ranges


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Inputs, NHWC, with the number of each one's class."""

    x: FloatArray
    y: LabelArray

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, slots=True)
class SearchData:
    """The splits of a task, each channel normalised by mean and deviation of the training data."""

    classes: tuple[str, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    train: LabelledSet
    validation: LabelledSet
    held_out: LabelledSet | None
    digest: str  # of all of it

    @property
    def calibration(self) -> FloatArray:
        """Inputs for training from which int8 takes its ranges."""
        return self.train.x[:: max(1, len(self.train) // CALIBRATION)]

    @property
    def shape(self) -> Shape3:
        height, width, channels = self.train.x.shape[1:]
        return height, width, channels


@dataclass(frozen=True, slots=True)
class _RawData:
    x: FloatArray
    labels: Sequence[str]
    subjects: Sequence[str] | None
    names: tuple[str, ...]  # of the classes; labels are among them


def load_data(entry: DataEntry, base: Path, seed: int) -> SearchData:
    """The data of a task file in the folder `base`; an error says what is wrong with them, and where."""
    path = base / entry.path
    match entry.kind:
        case DataKind.NUMPY:
            raw = _from_numpy(entry, path)
        case DataKind.IMAGES:
            raw = _from_images(entry, path)
        case DataKind.WINDOWS:
            raw = _from_windows(entry, path)
    _check(raw, path)
    return _split(raw, entry, path, seed)


# Sources


def _from_numpy(entry: DataEntry, path: Path) -> _RawData:
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not hasattr(archive, "files"):
                raise InputError(f"'{path}' holds a single array; give an .npz file with inputs and labels")
            x = _array(archive, entry.inputs, "inputs", path)
            y = _array(archive, entry.labels, "labels", path)
            subjects = _array(archive, entry.subjects, "subjects", path) if entry.subjects else None
            names = _array(archive, entry.class_names, "class_names", path) if entry.class_names else None
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'; data.path is seen from the task file's folder") from None
    except (OSError, ValueError, BadZipFile, EOFError) as error:
        raise InputError(f"'{path}' is no .npz file of arrays ({error}); write it with numpy.savez") from None
    if x.ndim not in (3, 4) or not (np.issubdtype(x.dtype, np.number) or x.dtype == bool):
        raise InputError(
            f"'{path}': {entry.inputs} has shape {x.shape} of {x.dtype}; expected numbers [n, time, channels] or "
            "[n, height, width, channels]"
        )
    for what, array in (("labels", y), ("subjects", subjects)):
        if array is not None and array.shape != x.shape[:1]:
            raise InputError(f"'{path}': {len(x)} inputs, but {what} of shape {array.shape}; expected one per input")
    x = x.astype(np.float32)
    known, labels = _labels(y, names, path)
    return _RawData(
        x[:, :, None, :] if x.ndim == 3 else x, labels, None if subjects is None else _texts(subjects), known
    )


def _array(archive: Any, name: str, key: str, path: Path) -> npt.NDArray[Any]:
    if name not in archive.files:
        raise InputError(f"'{path}' has no array '{name}' (data.{key}); it has {', '.join(archive.files) or 'none'}")
    array: npt.NDArray[Any] = archive[name]
    return array


def _labels(y: npt.NDArray[Any], names: npt.NDArray[Any] | None, path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of all classes, and that of each label, which is a name already or a number into the names."""
    texts = _texts(y)
    if names is None:
        return _ordered(set(texts)), texts
    known = _texts(names)
    if not np.issubdtype(y.dtype, np.integer):
        return known, texts
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < len(known):
        raise InputError(f"'{path}': labels from {y.min()} to {y.max()}, but {len(known)} class names")
    return known, tuple(known[int(label)] for label in y)


def _texts(array: npt.NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(value) for value in array.tolist())


def _ordered(names: set[str]) -> tuple[str, ...]:
    """Numbers by value, other names by their letters."""
    return tuple(sorted(names, key=lambda name: (0, int(name), "") if name.isdecimal() else (1, 0, name)))


def _from_images(entry: DataEntry, path: Path) -> _RawData:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise InputError("image folders are read by Pillow: pip install 'edgewright[search]'") from error
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir()) if path.is_dir() else []
    if not folders:
        raise InputError(f"'{path}' is no folder with a folder of images per class")
    images, labels = [], []
    for folder in folders:
        for file in sorted(file for file in folder.iterdir() if file.suffix.lower() in IMAGE_ENDINGS):
            try:
                with Image.open(file) as image:
                    resized = image.convert("L" if entry.grey else "RGB").resize(entry.size[::-1])
                    images.append(np.asarray(resized, np.float32).reshape(*entry.size, -1))
            except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
                raise InputError(f"'{file}' is no image that Pillow reads ({error}); remove it") from None
            labels.append(folder.name)
    if not images:
        raise InputError(f"'{path}' has folders without images ({', '.join(IMAGE_ENDINGS)})")
    return _RawData(np.stack(images), labels, None, tuple(folder.name for folder in folders))


def _from_windows(entry: DataEntry, path: Path) -> _RawData:
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"'{path}' is a folder without .csv files")
    windows, labels, subjects = [], [], []
    for file in files:
        # A window lies in one run of rows of one label and one subject.
        for (label, subject), run in groupby(_rows(entry, file), key=lambda row: row[:2]):
            values = np.asarray([row[2] for row in run], np.float32)
            for start in range(0, len(values) - entry.window + 1, entry.step):
                windows.append(values[start : start + entry.window, None, :])
                labels.append(label)
                subjects.append(subject)
    if not windows:
        raise InputError(f"'{path}' has no {entry.window} rows in a row of one label; take a smaller data.window")
    return _RawData(np.stack(windows), labels, subjects if entry.subjects else None, _ordered(set(labels)))


def _rows(entry: DataEntry, file: Path) -> Iterator[tuple[str, str, list[float]]]:
    """Label, subject and values of each row."""
    wanted = [*entry.columns, entry.labels, *([entry.subjects] if entry.subjects else [])]
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in wanted if name not in (reader.fieldnames or ())]
            if missing:
                has = ", ".join(reader.fieldnames or ()) or "nothing"
                raise InputError(f"'{file}' has no column '{missing[0]}'; its first line has {has}")
            for row in reader:
                try:
                    values = [float(row[name]) for name in entry.columns]
                except (TypeError, ValueError):
                    raise InputError(f"'{file}', line {reader.line_num}: a value is no number") from None
                yield row[entry.labels], row[entry.subjects] if entry.subjects else "", values
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read '{file}' as CSV ({error}); expected a header and rows of numbers") from None


# Checks


def _check(raw: _RawData, path: Path) -> None:
    x = raw.x
    if not x.size or x.size > MOST_VALUES:
        raise InputError(f"'{path}': inputs have {x.size} values; expected 1 to {MOST_VALUES}")
    classes = set(raw.labels)
    if len(classes) < 2:
        raise InputError(f"'{path}': all labels are '{next(iter(classes))}'; expected at least two classes")
    is_bad = ~np.isfinite(x)
    if is_bad.any():
        sample, *_, channel = np.argwhere(is_bad)[0]
        raise InputError(
            f"'{path}': {int(is_bad.sum())} values are NaN or infinite, the first in sample {sample}, channel "
            f"{channel}; remove these samples or fill the gaps"
        )
    flat = x.reshape(-1, x.shape[-1])
    constant = np.flatnonzero(flat.min(0) == flat.max(0))
    if len(constant):
        raise InputError(
            f"'{path}': channel {constant[0]} is {flat[0, constant[0]]:g} everywhere"
            f"{f', and {len(constant) - 1} more channels are constant' if len(constant) > 1 else ''}; leave it out"
        )


# Splits


def _split(raw: _RawData, entry: DataEntry, path: Path, seed: int) -> SearchData:
    held_out, validation = _chosen(raw, entry, path, seed)
    training = ~(held_out | validation)
    names = tuple(name for name in raw.names if name in set(raw.labels))
    numbers = {name: number for number, name in enumerate(names)}
    y = np.asarray([numbers[label] for label in raw.labels], np.int64)
    for what, chosen in (("training", training), ("validation", validation)):
        missing = {names[at] for at in set(range(len(names))) - set(y[chosen].tolist())}
        if missing:
            raise InputError(
                f"'{path}': the {what} data have no sample of {listed(missing)}; give other subjects to data.held_out "
                "and data.validation, or more data"
            )
    flat = raw.x[training].reshape(-1, raw.x.shape[-1]).astype(np.float64)
    mean, deviation = flat.mean(0).astype(np.float32), flat.std(0).astype(np.float32)
    if not deviation.all():
        channel = int(np.flatnonzero(deviation == 0)[0])
        raise InputError(f"'{path}': channel {channel} is constant in the training data; leave it out")
    x = np.ascontiguousarray((raw.x - mean) / deviation, np.float32)
    digest = sha256()
    for array in (x, y, held_out, validation):
        digest.update(repr(array.shape).encode() + array.tobytes())
    digest.update("\n".join(names).encode())

    def part(chosen: Mask) -> LabelledSet:
        return LabelledSet(x[chosen], y[chosen])

    return SearchData(
        names,
        tuple(map(float, mean)),
        tuple(map(float, deviation)),
        part(training),
        part(validation),
        part(held_out) if held_out.any() else None,
        digest.hexdigest(),
    )


def _chosen(raw: _RawData, entry: DataEntry, path: Path, seed: int) -> tuple[Mask, Mask]:
    """Which samples are held out, and which are for validation."""
    if raw.subjects is None:
        return _by_class(raw, entry, seed)
    known = set(raw.subjects)
    held_out, validation = ({str(one) for one in given} for given in (entry.held_out, entry.validation))
    for key, given in (("held_out", held_out), ("validation", validation)):
        if given - known:
            raise InputError(f"'{path}' has no subject {listed(given - known)} (data.{key}); it has {listed(known)}")
    free = list(_ordered(known - held_out - validation))
    Random(f"subjects {seed}").shuffle(free)
    for chosen, share in ((held_out, entry.held_out_share), (validation, entry.validation_share)):
        if not chosen:
            for _ in range(max(1 if share else 0, round(share * len(known)))):
                if len(free) > 1:
                    chosen.add(free.pop())
    if not free or not validation:
        raise InputError(
            f"'{path}': {len(known)} subjects leave none for {'validation' if free else 'training'}; hold fewer out"
        )
    subjects = np.asarray(raw.subjects)
    return np.isin(subjects, list(held_out)), np.isin(subjects, list(validation))


def _by_class(raw: _RawData, entry: DataEntry, seed: int) -> tuple[Mask, Mask]:
    """The shares of each class at random."""
    labels = np.asarray(raw.labels)
    held_out, validation = np.zeros(len(labels), bool), np.zeros(len(labels), bool)
    for name in _ordered(set(raw.labels)):
        members = np.flatnonzero(labels == name).tolist()
        Random(f"samples {seed} {name}").shuffle(members)
        first = round(entry.held_out_share * len(members))
        second = first + max(1, round(entry.validation_share * len(members)))
        held_out[members[:first]] = True
        validation[members[first:second]] = True
    return held_out, validation
