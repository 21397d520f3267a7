"""Converts inputs and outputs between two forms: as in the model file, and as stored by a network without the file's
first and last conversions (`Network.file_tensors`). The forms differ in element type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..errors import InputError
from .builder import random_inputs
from .kernels import compute_whole
from .network import Arithmetic, Network
from .operators import Dequantize, Quantize
from .tensor import Array, Tensor


def stored_inputs(network: Network, values: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs as the network takes them; inputs in the file's form are converted as the file's layer does."""
    return {name: _stored(network, name, value) for name, value in values.items()}


def file_inputs(network: Network, values: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs as the file takes them; for stored ones, values that the file's layer converts to exactly these."""
    return {name: _unpacked(network, name, value) for name, value in values.items()}


def file_outputs(network: Network, values: Mapping[str, Array]) -> dict[str, Array]:
    """The network's outputs as the file returns them."""
    return {name: _in_file(network, name, value) for name, value in values.items()}


def random_file_inputs(network: Network, seed: int = 0) -> dict[str, Array]:
    """Seeded random inputs, as the file takes them."""
    return random_inputs(replace(network, tensors={**network.tensors, **network.file_tensors}), seed)


def conversion(network: Network, name: str) -> str:
    """A sentence on how stored inputs follow from the file's, or the file's outputs from stored ones."""
    stored, theirs = network.tensors[name], network.file_tensors[name]
    assert stored.quant is not None
    scale, zero = stored.quant.scale[0], stored.quant.zero[0]
    if not theirs.dtype.is_float:
        return f"{_shifted(stored, theirs)}; real = {scale!r} * (stored{_plus(-zero)})"
    if name in network.outputs:
        return f"real = {scale!r} * (stored{_plus(-zero)})"
    info = np.iinfo(stored.dtype.numpy)
    halves = "away from zero" if network.arithmetic is Arithmetic.TFLITE else "to even"
    return f"stored = round(real / {scale!r}){_plus(zero)}, halves {halves}, kept within {info.min} and {info.max}"


def _shifted(stored: Tensor, theirs: Tensor) -> str:
    assert stored.quant is not None and theirs.quant is not None
    if stored.quant.scale == theirs.quant.scale:
        return f"stored = the file's {theirs.dtype.value}{_plus(stored.quant.zero[0] - theirs.quant.zero[0])}"
    return f"of another scale than the file's {theirs.dtype.value}"


def _plus(value: int) -> str:
    return f" {'-' if value < 0 else '+'} {abs(value)}" if value else ""


def _stored(network: Network, name: str, value: Array) -> Array:
    theirs = network.file_tensors.get(name)
    if theirs is None or value.dtype != theirs.dtype.numpy:
        return value
    return _converted(network, value, theirs, network.tensors[name])


def _in_file(network: Network, name: str, value: Array) -> Array:
    theirs = network.file_tensors.get(name)
    if theirs is None or value.dtype == theirs.dtype.numpy:
        return value
    return _converted(network, value, network.tensors[name], theirs)


def _unpacked(network: Network, name: str, value: Array) -> Array:
    in_file = _in_file(network, name, value)
    if in_file is not value and not np.array_equal(_stored(network, name, in_file), value):
        kind = network.file_tensors[name].dtype.value
        raise InputError(
            f"input '{name}' holds stored values that no {kind} value of the model file gives; give it as {kind}"
        )
    return in_file


def _converted(network: Network, value: Array, source: Tensor, target: Tensor) -> Array:
    if value.shape != source.shape:
        raise InputError(f"'{source.name}' must have the shape {source.shape}; got {value.shape}")
    op = Dequantize() if target.dtype.is_float else Quantize()
    return compute_whole(op, [value], [source], target, network.arithmetic)
