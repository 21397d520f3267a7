"""A scenario as the paper's CNN(L, E) (M 2.1): layers with the attributes of table 2.1, edges with their bytes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from hashlib import blake2b

import numpy as np

from ...dataflow.cnn.counts import input_actors, output_actors
from ...network import Array, Layer, Network, Tensor
from ...network.operators import (
    ACTIVATIONS,
    AvgPool2d,
    BatchNorm,
    Binary,
    Conv2d,
    ConvTranspose2d,
    Dense,
    L2Normalize,
    LogSoftmax,
    Lrn,
    MatMul,
    MaxPool2d,
    Op,
    Pair,
    PRelu,
    Reshape,
    Softmax,
)
from ..description import LayerAttribute

TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (  # M table 2.2
    ("convolutional", (Conv2d, ConvTranspose2d)),
    ("pooling", (MaxPool2d, AvgPool2d)),
    ("activation", (*ACTIVATIONS, PRelu)),
    ("FC", (Dense, MatMul)),
    ("loss", (Softmax, LogSoftmax)),
    ("normalization", (BatchNorm, Lrn, L2Normalize)),
    ("arithmetic", (Binary,)),
)
ELSEWHERE = {"kernel", "stride", "pads", "groups"}  # fields of operators that are other attributes
Attributes = Mapping[LayerAttribute, Hashable]  # all except I, O and par


@dataclass(frozen=True)
class LayerParameters:
    """Weights, biases and scales. Equal if their values are, regardless of names."""

    digest: bytes
    blocks: Mapping[bytes, int] = field(compare=False)  # digest -> bytes, for each constant
    names: tuple[str, ...] = field(compare=False)

    @property
    def size(self) -> int:
        return sum(self.blocks.values())

    def __str__(self) -> str:
        return "{" + ", ".join(self.names) + "}"


@dataclass(frozen=True)
class AttributedLayer:
    name: str
    attributes: Attributes
    parameters: LayerParameters


@dataclass(frozen=True, slots=True)
class LayerEdge:
    """Data passed from one layer to another; both are numbers in the order of execution, from 0."""

    source: int
    target: int
    size: int  # bytes


@dataclass(frozen=True)
class ScenarioGraph:
    """The layers of a scenario in the order of execution, and its edges."""

    name: str
    layers: tuple[AttributedLayer, ...]
    edges: tuple[LayerEdge, ...]  # those of one target in the order of its inputs


def scenario_graph(name: str, network: Network) -> ScenarioGraph:
    """The network as the paper sees it. Inputs and outputs are layers; layers that only rename data are not."""
    inputs, outputs = input_actors(network), output_actors(network)
    digests = {tensor: _digest(value) for tensor, value in network.constants.items()}
    executing = [layer for layer in network.layers if not isinstance(layer.op, Reshape)]
    layers = [_data_layer(actor, "input", network.tensors[tensor]) for tensor, actor in inputs.items()]
    layers += [_layer(network, layer, digests) for layer in executing]
    layers += [_data_layer(actor, "output", network.tensors[tensor]) for tensor, actor in outputs.items()]
    number = {layer.name: at for at, layer in enumerate(layers)}
    makers = {**inputs, **{layer.output: layer.name for layer in executing}}
    reading = [(layer.name, network.activations(layer)) for layer in executing]
    reading += [(actor, (tensor,)) for tensor, actor in outputs.items()]
    edges = [
        LayerEdge(number[makers[made]], number[reader], network.tensors[made].bytes)
        for reader, tensors in reading
        for made in (_original(network, tensor) for tensor in tensors)
        if made in makers
    ]
    return ScenarioGraph(name, tuple(layers), tuple({(e.source, e.target): e for e in edges}.values()))


def _original(network: Network, tensor: str) -> str:
    """The tensor that this one is another name of."""
    while tensor in network.producers and isinstance(network.producers[tensor].op, Reshape):
        tensor = network.producers[tensor].inputs[0]
    return tensor


def _layer(network: Network, layer: Layer, digests: Mapping[str, bytes]) -> AttributedLayer:
    op, (height, width) = layer.op, _kernel(network, layer)
    down, right = getattr(op, "dilation", (1, 1))
    types = (network.tensors[name].dtype for name in (*layer.inputs, layer.output))
    attributes: Attributes = {
        LayerAttribute.TYPE: next((name for name, classes in TYPES if isinstance(op, classes)), "transformation"),
        LayerAttribute.OPERATOR: (type(op).__name__, *types, *_own_fields(network, layer)),
        LayerAttribute.WINDOW: ((height - 1) * down + 1, (width - 1) * right + 1),
        LayerAttribute.KERNEL_HEIGHT: height,
        LayerAttribute.KERNEL_WIDTH: width,
        LayerAttribute.STRIDE: getattr(op, "stride", (1, 1)),
        LayerAttribute.PADDING: getattr(op, "pads", (0, 0, 0, 0)),
    }
    return AttributedLayer(layer.name, attributes, _parameters(network, layer, digests))


def _own_fields(network: Network, layer: Layer) -> Iterator[Hashable]:
    """The operator's fields beyond the paper's attributes. Any numbers of one-channel groups are equal."""
    for one in fields(layer.op):
        if one.name not in ELSEWHERE:
            yield getattr(layer.op, one.name)
    groups = getattr(layer.op, "groups", 1)
    is_depthwise = groups > 1 and groups == network.shapes(layer)[0][-1]
    yield "depthwise" if is_depthwise else groups


def _kernel(network: Network, layer: Layer) -> Pair:
    op: Op = layer.op
    match op:
        case Conv2d() | ConvTranspose2d():
            _, height, width, _ = network.shapes(layer)[1]
            return height, width
        case MaxPool2d() | AvgPool2d():
            return op.kernel
        case Dense():  # the kernel is the whole image
            axes = network.shapes(layer)[1][1:-1]
            return (axes[0], axes[1]) if len(axes) == 2 else (1, 1)
        case _:
            return 1, 1


def _parameters(network: Network, layer: Layer, digests: Mapping[str, bytes]) -> LayerParameters:
    constants = [name for name in dict.fromkeys(layer.inputs) if name in network.constants]
    blocks = {digests[name]: network.tensors[name].bytes for name in constants}
    scales = repr([network.tensors[name].quant for name in (*layer.inputs, layer.output)]).encode()
    places = b"".join(digests.get(name, b"-") for name in layer.inputs)
    return LayerParameters(blake2b(scales + places).digest(), blocks, tuple(constants))


def _data_layer(name: str, operator: str, tensor: Tensor) -> AttributedLayer:
    """An input or an output, whose kernel is the whole image."""
    height, width = tensor.shape[1:3] if len(tensor.shape) == 4 else (1, 1)
    attributes: Attributes = {
        LayerAttribute.TYPE: "data",
        LayerAttribute.OPERATOR: (operator, tensor.dtype),
        LayerAttribute.WINDOW: (height, width),
        LayerAttribute.KERNEL_HEIGHT: height,
        LayerAttribute.KERNEL_WIDTH: width,
        LayerAttribute.STRIDE: (1, 1),
        LayerAttribute.PADDING: (0, 0, 0, 0),
    }
    return AttributedLayer(name, attributes, LayerParameters(blake2b(repr(tensor.quant).encode()).digest(), {}, ()))


def _digest(values: Array) -> bytes:
    head = f"{values.dtype}{values.shape}".encode()
    return blake2b(head + np.ascontiguousarray(values).tobytes(), digest_size=16).digest()
