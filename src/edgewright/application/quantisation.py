"""Networks of an application in fewer bits: weights rounded to fp16, or int8 by onnxruntime.

int8 ranges come from the application's calibration data; without it there is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from ..emit.inputs import Inputs, load_inputs
from ..errors import InputError, ModelError
from ..network import Array, Network
from ..network.kernels import execute
from ..network.read import read
from ..network.reference import to_file_layout
from .description import ApplicationFile, AppNetworkEntry, Precision

MOST_SAMPLES = 64  # of the calibration data


def read_network(entry: AppNetworkEntry, folder: Path, where: str) -> Network:
    """The network of an entry in its precision; `where` names the entry in errors."""
    path = folder / entry.file
    try:
        source: Path | onnx.ModelProto = path
        if entry.quantise is Precision.INT8:
            source = _int8_model(entry, folder, where)
        network = read(
            source,
            shapes=entry.shape,
            quantised_input=entry.quantised_input,
            quantised_output=entry.quantised_output,
        )
    except ModelError as error:
        raise type(error)(_with_key(str(error), where)) from error
    if entry.quantise is Precision.FP16:
        rounded = {name: _rounded(value) for name, value in network.constants.items()}
        network = replace(network, constants=rounded)
    return replace(network, name=path.stem) if isinstance(source, onnx.ModelProto) else network


def _with_key(message: str, where: str) -> str:
    """The message about open sizes with the key of the application file in place of the option."""
    sizes = re.findall(r"--shape '?([^=']+)=([\d,]+)'?", message)
    if not sizes:
        return message
    table = ", ".join(f'"{name}" = [{dims.replace(",", ", ")}]' for name, dims in sizes)
    return re.sub(r"(--shape '?[^=']+=[\d,]+'? ?)+", f"{where}.shape = {{{table}}}", message)


def calibration_inputs(entry: AppNetworkEntry, network: Network, folder: Path, where: str) -> list[Inputs]:
    """The samples of an entry, in our layout."""
    if entry.calibration is None:
        raise InputError(
            f"{where}.calibration is missing, and int8 takes its ranges from samples; give a file of inputs, such as "
            'calibration = "samples.npz"'
        )
    try:
        return load_inputs(network, [folder / entry.calibration])[:MOST_SAMPLES]
    except InputError as error:
        raise InputError(f"{where}.calibration does not suit '{entry.name}': {error}") from error


def in_precision(file: ApplicationFile, precision: Precision) -> ApplicationFile:
    """The application with every network in this precision."""
    networks = tuple(entry.model_copy(update={"quantise": precision}) for entry in file.networks)
    return file.model_copy(update={"networks": networks})


def stored_bytes(network: Network, precision: Precision) -> Mapping[str, tuple[Array, int]]:
    """The values of each constant, and its bytes in this precision."""
    return {
        name: (
            values,
            values.nbytes // 2 if precision is Precision.FP16 and values.dtype == np.float32 else values.nbytes,
        )
        for name, values in network.constants.items()
    }


@dataclass(frozen=True, slots=True)
class PrecisionLoss:
    """The difference of outputs from those of the network as trained, over samples."""

    largest: float  # as a share of the largest value
    mean: float
    same_class: float  # share of samples whose largest output has the same index


def output_difference(trained: Network, other: Network, samples: Sequence[Inputs]) -> PrecisionLoss:
    return precision_loss(
        (tuple(execute(trained, sample).values()), tuple(execute(other, sample).values())) for sample in samples
    )


def precision_loss(outputs: Iterable[tuple[Sequence[Array], Sequence[Array]]]) -> PrecisionLoss:
    """The loss over the outputs of several samples, each as trained and in fewer bits."""
    largest, means, same = 0.0, [], []
    for ones, twos in outputs:
        for x, y in ((one.astype(float), two.astype(float)) for one, two in zip(ones, twos, strict=True)):
            scale = float(np.abs(x).max(initial=0.0)) or 1.0
            largest = max(largest, float(np.abs(x - y).max(initial=0.0)) / scale)
            means.append(float(np.abs(x - y).mean()) / scale)
            same.append(x.argmax() == y.argmax())
    return PrecisionLoss(largest, float(np.mean(means or [0.0])), float(np.mean(same or [1.0])))


def _int8_model(entry: AppNetworkEntry, folder: Path, where: str) -> onnx.ModelProto:
    from ..samples.quantise import quantise  # loads onnxruntime

    path = folder / entry.file
    trained = read(path, shapes=entry.shape)
    if path.suffix != ".onnx" or not all(trained.tensors[name].dtype.is_float for name in trained.inputs):
        raise InputError(
            f"{where}.quantise is \"int8\", which onnxruntime makes of float32 .onnx files; '{entry.file}' is none: "
            "leave quantise out, or give the model as it was trained"
        )
    samples = calibration_inputs(entry, trained, folder, where)
    feeds = [
        {name: np.ascontiguousarray(to_file_layout(trained, name, value)) for name, value in sample.items()}
        for sample in samples
    ]
    try:
        return quantise(onnx.load(path), feeds=feeds)
    except Exception as error:  # onnxruntime has many classes of errors
        raise InputError(f"{where}: onnxruntime cannot quantise '{entry.file}': {str(error)[:300]}") from error


def _rounded(values: Array) -> Array:
    """float32 rounded to fp16 values; values out of range stay."""
    if values.dtype != np.float32:
        return values
    with np.errstate(over="ignore"):
        small = values.astype(np.float16).astype(np.float32)
    return np.where(np.isfinite(small), small, values)
