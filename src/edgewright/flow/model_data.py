"""Inputs and labels for a trained model, from an .npz file: the values as the model takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..emit.inputs import Inputs, given_inputs, read_arrays
from ..errors import InputError
from ..network import Array, Network
from ..network.reference import to_file_shape

INPUTS, LABELS, CLASSES = "x", "y", "classes"  # names of arrays; inputs may have the model's names instead


@dataclass(frozen=True)
class ModelData:
    """Samples in our layout, and the number of each one's class where it is known."""

    samples: Sequence[Inputs]
    labels: npt.NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.samples)

    def part(self, chosen: Sequence[int]) -> ModelData:
        labels = None if self.labels is None else self.labels[list(chosen)]
        return ModelData([self.samples[at] for at in chosen], labels)


def load_model_data(path: Path, network: Network) -> ModelData:
    """The data in a file, checked: shapes, labels, no NaN."""
    content = read_arrays(path)
    arrays = content if isinstance(content, dict) else {INPUTS: content}
    given = _inputs_of(arrays, network, path)
    for name, values in given.items():
        if np.issubdtype(values.dtype, np.floating) and not np.isfinite(values).all():
            where = np.argwhere(~np.isfinite(values))
            raise InputError(
                f"'{path}': {name} has {len(where):,} values that are NaN or infinite, the first in sample "
                f"{where[0][0]}; remove these samples"
            )
        if not len(values) or not values.ndim:
            raise InputError(f"'{path}': {name} has no samples; expected at least one")
    try:
        samples = given_inputs(network, given)
    except InputError as error:
        raise InputError(f"'{path}' does not suit the model: {error}") from None
    return ModelData(samples, _labels_of(arrays, network, len(samples), path))


def spread(count: int, most: int) -> list[int]:
    """At most `most` of `count` positions, evenly spread."""
    return sorted({at * count // most for at in range(most)}) if most < count else list(range(count))


def _inputs_of(arrays: Mapping[str, Array], network: Network, path: Path) -> dict[str, Array]:
    names = tuple(network.inputs)
    given = {name: arrays[name] for name in names if name in arrays}
    if not given and len(names) == 1 and INPUTS in arrays:
        given = {names[0]: arrays[INPUTS]}
    if len(given) < len(names):
        missing = next(name for name in names if name not in given)
        wanted = f"'{missing}'" + (f" or '{INPUTS}'" if len(names) == 1 else "")
        raise InputError(
            f"'{path}' has no array {wanted} for the model's input; it has {', '.join(arrays) or 'no arrays'}"
        )
    return {name: _with_all_axes(values, network, name) for name, values in given.items()}


def _with_all_axes(values: Array, network: Network, name: str) -> Array:
    """The values with an axis of length 1 where they lack one: (n, time, channels) for (n, time, 1, channels)."""
    for shape in (to_file_shape(network, name), network.tensors[name].shape):
        if values.ndim == len(shape) - 1:
            for axis in range(1, len(shape)):
                if shape[axis] == 1 and values.shape[1:] == (*shape[1:axis], *shape[axis + 1 :]):
                    return np.expand_dims(values, axis)
    return values


def _labels_of(arrays: Mapping[str, Array], network: Network, count: int, path: Path) -> npt.NDArray[np.int64] | None:
    if LABELS not in arrays:
        return None
    labels = arrays[LABELS]
    if labels.shape != (count,):
        raise InputError(
            f"'{path}': {LABELS} has the shape {labels.shape}; expected one label for each of {count} samples"
        )
    classes = network.tensors[network.outputs[0]].size
    if labels.dtype.kind in "US":
        names = [str(name) for name in arrays[CLASSES].tolist()] if CLASSES in arrays else []
        unknown = sorted({str(label) for label in labels.tolist()} - set(names))
        if unknown:
            raise InputError(
                f"'{path}': the label '{unknown[0]}' is not in {CLASSES}; give labels as numbers from 0, or give their "
                f"names, in the order of the model's outputs, as {CLASSES}"
            )
        labels = np.array([names.index(str(label)) for label in labels.tolist()])
    if not np.issubdtype(labels.dtype, np.number) or not np.array_equal(labels, labels.astype(np.int64)):
        raise InputError(f"'{path}': {LABELS} holds {labels.dtype}; expected whole numbers from 0")
    found = labels.astype(np.int64)
    if found.min() < 0 or found.max() >= classes:
        raise InputError(
            f"'{path}': labels are from {found.min()} to {found.max()}; the model has {classes} outputs, for labels "
            f"from 0 to {classes - 1}"
        )
    return found
