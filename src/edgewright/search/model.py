"""The ONNX model of a candidate: in float32, or in int8 with quantised tensors between QuantizeLinear and
DequantizeLinear, as onnxruntime's own quantiser writes it.

Its input is `input` (batch, channels, height, width), its output `classes` (batch, classes), both real numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..kernels.dsp.numbers import channels_in_float
from ..kernels.requantise.depthwise_factors import channels_without_factors
from ..kernels.requantise.sums import sums_of_onnx
from ..network import DType, Quant, Tensor
from ..samples.builder import IR_VERSION, OPSET, same_pads
from .architecture import INPUT, CnnArchitecture, PrimitiveKind, PrimitiveLayer
from .weights import FloatArray, LayerWeights, Weights, random_weights

Range = tuple[float, float]  # the least and the largest value of a tensor
Ranges = Mapping[str, Range]  # of the input and of each layer's output, by name
Scaled = tuple[float, int]  # scale and zero point

BATCH = "batch"  # name of the open axis
LEAST, MOST = -128, 127  # of int8
LEAST_SCALE = 1e-8
BIAS_LIMIT = 1 << 30  # of int32 biases, which leaves room for the sums that they are added to
TRIES, HAIR = 48, 2.0**-12  # scales that a channel tries; each is larger than the last by this share
HOPEFUL = 4  # tries after which it gives up unless half of the channels have multipliers
SIGMOID_SCALED: Scaled = (1 / 256, LEAST)

# Layers whose outputs are values of their input: these keep its scale.
SELECTING = (PrimitiveKind.MAX_POOL, PrimitiveKind.MAX)


def onnx_model(
    architecture: CnnArchitecture,
    weights: Weights | None = None,
    ranges: Ranges | None = None,
    batch: int | None = 1,
    is_exact: bool = True,
) -> onnx.ModelProto:
    """The model: in float32, or in int8 where `ranges` gives the values that tensors take.

    Without weights it has seeded random ones; the structure depends on neither weights nor ranges. A batch of None
    leaves the number of frames open. With `is_exact`, scales of weights are such that kernels have exact multipliers,
    which takes a while to find out.
    """
    given = random_weights(architecture) if weights is None else weights
    draft = _GraphDraft(architecture, given, ranges, is_exact)
    for layer in architecture.layers():
        draft.layer(layer)
    return draft.model(batch)


def default_ranges(architecture: CnnArchitecture) -> dict[str, Range]:
    """Plausible ranges for a candidate that nobody trained."""
    return {
        INPUT: (-4.0, 4.0),
        **{layer.name: (0.0, 4.0) if layer.relu else (-4.0, 4.0) for layer in architecture.layers()},
    }


def scaled_of(values: Range) -> Scaled:
    """Scale and zero point of int8 values of this range, in which zero is exact."""
    low, high = min(values[0], 0.0), max(values[1], 0.0)
    scale = float(np.float32(max((high - low) / (MOST - LEAST), LEAST_SCALE)))
    return scale, int(np.clip(round(LEAST - low / scale), LEAST, MOST))


def tensor_scales(architecture: CnnArchitecture, ranges: Ranges) -> dict[str, Scaled]:
    """Scales and zero points of the input and of each layer's output in int8, by name."""
    scales = {INPUT: scaled_of(ranges[INPUT])}
    for layer in architecture.layers():
        low, high = ranges[layer.name]
        if layer.kind in SELECTING:
            scales[layer.name] = scales[layer.inputs[0]]
        elif layer.kind is PrimitiveKind.SIGMOID:
            scales[layer.name] = SIGMOID_SCALED
        else:
            scales[layer.name] = scaled_of((0.0, high) if layer.relu else (low, high))
    return scales


class _GraphDraft:
    """An ONNX graph under construction. The value named like a layer is what later layers read."""

    def __init__(self, architecture: CnnArchitecture, weights: Weights, ranges: Ranges | None, is_exact: bool) -> None:
        self.architecture, self.weights, self.ranges, self.is_exact = architecture, weights, ranges, is_exact
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.scaled = {} if ranges is None else tensor_scales(architecture, ranges)
        self.last = architecture.layers()[-1].name
        self.names = {INPUT: INPUT}  # of tensors in the graph
        if ranges is not None:
            self.names[INPUT] = self._stored(INPUT, INPUT, self.scaled[INPUT], f"{INPUT}.real")

    def model(self, batch: int | None) -> onnx.ModelProto:
        height, width, channels = self.architecture.input
        frames = BATCH if batch is None else batch
        graph = helper.make_graph(
            self.nodes,
            f"candidate_{self.architecture.key}",
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, (frames, channels, height, width))],
            [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, (frames, self.architecture.classes))],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets, producer_name="edgewright")

    def layer(self, layer: PrimitiveLayer) -> None:
        """Adds the layer's nodes: its own, the ReLU, and the two that quantise."""
        name = layer.name
        is_int8 = self.ranges is not None
        result = f"{name}.sum" if layer.relu or is_int8 else name
        value = self._operator(layer, [self.names[tensor] for tensor in layer.inputs], result)
        if layer.relu:
            value = self._node("Relu", [value], f"{name}.relu" if is_int8 else name)
        if is_int8:
            value = self._stored(name, value, self.scaled[name], name)
        self.names[name] = value

    def _operator(self, layer: PrimitiveLayer, inputs: list[str], output: str) -> str:
        match layer.kind:
            case PrimitiveKind.CONVOLUTION | PrimitiveKind.DEPTHWISE:
                return self._node(
                    "Conv",
                    inputs + self._weights(layer, self.weights[layer.name].kernel),
                    output,
                    kernel_shape=layer.kernel,
                    strides=layer.stride,
                    pads=same_pads(layer.source[0], layer.source[1], layer.kernel, layer.stride),
                    group=layer.source[2] if layer.kind is PrimitiveKind.DEPTHWISE else 1,
                )
            case PrimitiveKind.DENSE:
                return self._dense(layer, inputs[0], output)
            case PrimitiveKind.MAX_POOL:
                return self._node("MaxPool", inputs, output, kernel_shape=layer.kernel, strides=layer.stride)
        return self._node(PLAIN[layer.kind], inputs, output)

    def _dense(self, layer: PrimitiveLayer, source: str, output: str) -> str:
        """A product with the input flattened, where a dense layer does not come before."""
        before = next((other for other in self.architecture.layers() if other.name == layer.inputs[0]), None)
        if before is None or before.kind is not PrimitiveKind.DENSE:
            source = self._node("Flatten", [source], f"{layer.name}.flat", axis=1)
            if self.ranges is not None:
                scaled = self.scaled[layer.inputs[0]]
                source = self._stored(f"{layer.name}.flat", source, scaled, f"{layer.name}.vector")
        kernel = self.weights[layer.name].kernel
        return self._node("Gemm", [source, *self._weights(layer, kernel.reshape(len(kernel), -1))], output, transB=1)

    # Nodes and constants

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def _constant(self, name: str, values: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype, order="C"), name))
        return name

    def _stored(self, tensor: str, value: str, scaled: Scaled, output: str) -> str:
        """The value as int8 and back."""
        parameters = [
            self._constant(f"{tensor}.scale", scaled[0]),
            self._constant(f"{tensor}.zero", scaled[1], np.int8),
        ]
        stored = self._node("QuantizeLinear", [value, *parameters], f"{tensor}.int8")
        return self._node("DequantizeLinear", [stored, *parameters], output)

    def _weights(self, layer: PrimitiveLayer, kernel: npt.NDArray[np.float32]) -> list[str]:
        """The names of kernel and bias; in an int8 model with one scale per output."""
        name, bias = layer.name, self.weights[layer.name].bias
        if self.ranges is None:
            return [self._constant(f"{name}.kernel", kernel), self._constant(f"{name}.bias", bias)]
        source = self.scaled[layer.inputs[0]]
        stored = stored_weights(LayerWeights(kernel, bias), source[0])
        if self.is_exact and layer.kind is not PrimitiveKind.DENSE:
            stored = exactly_stored_weights(layer, LayerWeights(kernel, bias), source, self.scaled[name])
        return [
            self._channels(f"{name}.kernel", stored.kernel, np.int8, stored.scale),
            self._channels(f"{name}.bias", stored.bias, np.int32, stored.scale * np.float32(source[0])),
        ]

    def _channels(self, name: str, values: Any, dtype: Any, scale: npt.NDArray[np.float32]) -> str:
        parameters = [
            self._constant(f"{name}.scale", scale),
            self._constant(f"{name}.zero", np.zeros(scale.shape), dtype),
        ]
        return self._node("DequantizeLinear", [self._constant(f"{name}.int", values, dtype), *parameters], name, axis=0)


PLAIN = {
    PrimitiveKind.MEAN: "GlobalAveragePool",
    PrimitiveKind.MAX: "GlobalMaxPool",
    PrimitiveKind.ADD: "Add",
    PrimitiveKind.MULTIPLY: "Mul",
    PrimitiveKind.SIGMOID: "Sigmoid",
}


@dataclass(frozen=True)
class StoredWeights:
    """Weights in int8, with one scale for each output channel."""

    scale: FloatArray
    kernel: npt.NDArray[np.int8]
    bias: npt.NDArray[np.int32]  # in steps of the input's scale times `scale`


def stored_weights(weights: LayerWeights, input_scale: float, factor: npt.ArrayLike = 1.0) -> StoredWeights:
    """The weights in int8; `factor` makes the scales of channels larger than they must be."""
    kernel, bias = weights.kernel, weights.bias
    largest = np.abs(kernel).reshape(len(kernel), -1).max(axis=1)
    # A channel of tiny weights beside a large bias takes a larger scale, so that the bias fits.
    scale = np.maximum(largest / MOST, np.abs(bias) / (input_scale * BIAS_LIMIT))
    scale = (np.maximum(scale, LEAST_SCALE) * factor).astype(np.float32)
    shape = (-1, *(1,) * (kernel.ndim - 1))
    stored = np.clip(np.rint(kernel / scale.reshape(shape)), -MOST, MOST).astype(np.int8)
    offsets = np.rint(bias.astype(np.float64) / (scale * np.float32(input_scale))).astype(np.int32)
    return StoredWeights(scale, stored, offsets)


def exactly_stored_weights(
    layer: PrimitiveLayer, weights: LayerWeights, source: Scaled, result: Scaled
) -> StoredWeights:
    """The weights with scales for which the layer's sums are rounded exactly by integer multipliers, if it has such.

    Kernels for depthwise layers require such multipliers, and others are faster with them. onnxruntime rounds float32
    products, so that a scale may have no such multiplier while a slightly larger one has.
    """
    x, y = (
        Tensor(name, (1, 1, 1, 1), DType.INT8, Quant((s,), (z,))) for name, (s, z) in (("x", source), ("y", result))
    )
    factor, without = np.ones(len(weights.bias)), np.arange(len(weights.bias))
    plain = stored = stored_weights(weights, source[0])
    for turn in range(TRIES):
        flat = stored.kernel.reshape(len(stored.kernel), -1)
        sums = sums_of_onnx(x, y, flat, stored.scale, stored.bias, layer.relu)
        if layer.kind is PrimitiveKind.DEPTHWISE:
            without = channels_without_factors(sums)
        else:
            without = channels_in_float(sums, without)
            if turn >= HOPEFUL and len(without) > len(factor) / 2:
                break
        if not len(without):
            return stored
        factor[without] *= 1 + HAIR
        stored = stored_weights(weights, source[0], factor)
    return plain
