"""Post-training quantisation of one trained model to int8 by onnxruntime, and what it costs in accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from ..application.quantisation import PrecisionLoss, precision_loss
from ..emit.judge import judge
from ..errors import EdgewrightError, InputError, RunError, Unsupported
from ..network import Array, Network, Shape
from ..network.interface import file_outputs, stored_inputs
from ..network.kernels import execute
from ..network.onnx_writer import to_onnx
from ..network.operators import Dequantize, Quantize
from ..network.read import read
from ..network.reference import compare, reference, to_file_layout
from ..program.options import Options
from .model_data import ModelData, load_model_data, spread

CALIBRATION = 128  # samples that ranges are taken from
MOST_EVALUATED = 10_000
COMPARED = 3  # samples on which our kernels are compared with onnxruntime

# Operators whose values onnxruntime leaves as real numbers unless it is told otherwise.
FURTHER = ("Tanh", "ReduceMean", "ReduceMax", "GlobalMaxPool", "HardSwish", "HardSigmoid", "Sub")


@dataclass(frozen=True)
class QuantisedModel:
    """A model in int8, beside the one it was made of."""

    model: onnx.ModelProto
    network: Network
    trained: Network
    calibration: int  # samples
    evaluated: int
    is_overlapping: bool  # whether samples were both calibrated on and evaluated
    loss: PrecisionLoss
    accuracy: tuple[float, float] | None  # before and after; None without labels
    classes: tuple[int, ...]  # that of each evaluated sample, in int8
    real_layers: tuple[str, ...]  # layers that still compute real numbers

    def to_dict(self) -> dict[str, Any]:
        before, after = self.accuracy or (None, None)
        return {
            "calibration_samples": self.calibration,
            "evaluated_samples": self.evaluated,
            "evaluated_on_calibration": self.is_overlapping,
            "accuracy_before": before,
            "accuracy_after": after,
            "largest_difference": self.loss.largest,
            "mean_difference": self.loss.mean,
            "same_class": self.loss.same_class,
            "weight_bytes_before": self.trained.weight_bytes,
            "weight_bytes_after": self.network.weight_bytes,
            "real_layers": list(self.real_layers),
        }


def quantise_file(
    path: Path, data: Path, calibration: int = CALIBRATION, shapes: Mapping[str, Shape] | None = None
) -> QuantisedModel:
    """The float32 model of a file in int8, with ranges from the data, verified and compared on the rest of the data."""
    trained = read(path, shapes=shapes)
    check_is_float(trained, str(path))
    return quantise_network(trained, load_model_data(data, trained), calibration)


def check_is_float(network: Network, name: str) -> None:
    """Raises an error if the model is quantised already, or takes integers."""
    stored = next((layer.name for layer in network.layers if network.tensors[layer.output].quant is not None), None)
    if stored is not None:
        raise InputError(
            f"'{name}' is quantised already: layer '{stored}' gives integers; compile it as it is, or give the float32 "
            "model"
        )
    whole = next((one for one in network.inputs if not network.tensors[one].dtype.is_float), None)
    if whole is not None:
        raise InputError(
            f"input '{whole}' of '{name}' takes {network.tensors[whole].dtype.value}; only models of real numbers can "
            "be quantised"
        )


def quantise_network(trained: Network, data: ModelData, calibration: int = CALIBRATION) -> QuantisedModel:
    """The network in int8. Ranges come from at most half of the samples; accuracy is that on the others."""
    chosen = spread(len(data), min(calibration, max(1, len(data) // 2)))
    rest = sorted(set(range(len(data))) - set(chosen))
    evaluated = data.part([rest[at] for at in spread(len(rest), MOST_EVALUATED)] if rest else chosen)
    return quantise_with(trained, data.part(chosen), evaluated, not rest)


def quantise_with(
    trained: Network, calibration: ModelData, evaluated: ModelData, is_overlapping: bool = False
) -> QuantisedModel:
    """The network in int8, with ranges from some samples and figures from others."""
    source, model = int8_model(trained, calibration)
    try:
        network = read(model)
    except Unsupported as error:
        raise Unsupported(
            f"onnxruntime quantised '{trained.name}' in a way that edgewright does not read: {error}"
        ) from error
    before = model_outputs(source, read(source), evaluated)
    after = model_outputs(model, network, evaluated)
    _verify(model, network, calibration.part(range(min(COMPARED, len(calibration)))))
    accuracy = None
    if evaluated.labels is not None:
        accuracy = accuracy_of(before, evaluated), accuracy_of(after, evaluated)
    return QuantisedModel(
        model,
        network,
        trained,
        len(calibration),
        len(evaluated),
        is_overlapping,
        precision_loss(zip(before, after, strict=True)),
        accuracy,
        tuple(int(each[0].argmax()) for each in after),
        tuple(
            layer.name
            for layer in network.layers
            if network.tensors[layer.output].dtype.is_float and not isinstance(layer.op, Quantize | Dequantize)
        ),
    )


def int8_model(trained: Network, data: ModelData) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """The network as a float32 ONNX model, with foldable layers folded, and in int8."""
    from ..samples.quantise import quantise  # loads onnxruntime

    source = to_onnx(trained)
    feeds = [
        {name: np.ascontiguousarray(to_file_layout(trained, name, value)) for name, value in sample.items()}
        for sample in data.samples
    ]
    try:
        return source, quantise(source, feeds=feeds, further=FURTHER)
    except EdgewrightError:
        raise
    except Exception as error:  # onnxruntime raises exceptions of many types
        raise InputError(f"onnxruntime cannot quantise '{trained.name}': {str(error)[:300]}") from error


def model_outputs(model: onnx.ModelProto, network: Network, data: ModelData) -> list[tuple[Array, ...]]:
    """The outputs of each sample, by onnxruntime."""
    truth = reference(model.SerializeToString(), network)
    return [tuple(truth.run(sample).values()) for sample in data.samples]


def accuracy_of(outputs: Sequence[Sequence[Array]], data: ModelData) -> float:
    """The share of samples whose largest value of the first output is that of their class."""
    assert data.labels is not None
    return float(np.mean([int(each[0].argmax()) == label for each, label in zip(outputs, data.labels, strict=True)]))


def _verify(model: onnx.ModelProto, network: Network, data: ModelData) -> None:
    """Raises an error if our kernels compute other values than onnxruntime."""
    truth = judge(model.SerializeToString(), network, Options())
    for sample in data.samples:
        expected = truth.run(sample)
        found = compare(network, file_outputs(network, execute(network, stored_inputs(network, sample))), expected)
        layers = truth.by_layers(sample, expected) if not found.passes and truth.by_layers else None
        if not found.passes and not (layers and layers.passes):
            where = f", first in layer '{layers.first.layer}'" if layers and layers.first else ""
            raise RunError(
                f"edgewright and onnxruntime compute different values of the quantised model{where}: {found}"
            )
