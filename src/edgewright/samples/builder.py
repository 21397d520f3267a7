"""Builds ONNX graphs layer by layer, with seeded weights; which layers make a network is left to the callers.

Every method adds one node and gives back the name of its output, so a network reads as nested calls.
"""

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from ..errors import InputError

OPSET = 17
IR_VERSION = 8

# Weights have variance gain / fan-in; the gain makes up for what the input lost on its way here.
LINEAR = 1.0  # nothing was lost
RELU = 2.0  # a ReLU halves the second moment (He et al. 2015, eq. 10)
RELU_CENTRED = 2.0 / (1.0 - 1.0 / math.pi)  # and leaves 0.34 of the variance (Brock et al. 2021, section 4)
POOLED = 10.0  # a global mean leaves little; found by trial to spread the classes by about one

SHORT = ((4,), (8,))  # a number per axis, or two

Pads = tuple[int, int, int, int]  # top, left, bottom, right, as ONNX orders them
Size = int | tuple[int, int]  # height and width


def same_pads(height: int, width: int, kernel: tuple[int, int], stride: tuple[int, int]) -> Pads:
    """The pads that give ceil(size / stride) outputs, the odd one at the end, as TensorFlow's SAME."""
    low, high = [], []
    for size, k, s in zip((height, width), kernel, stride, strict=True):
        total = max((-(-size // s) - 1) * s + k - size, 0)
        low.append(total // 2)
        high.append(total - total // 2)
    return (low[0], low[1], high[0], high[1])


class ModelBuilder:
    """A graph under construction. The weights follow from the name alone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._rng = np.random.default_rng(zlib.crc32(name.encode()))
        self._types: dict[str, Any] = {}  # tensor name -> TypeProto
        self._inputs: list[str] = []
        self._nodes: list[Any] = []
        self._weights: dict[str, Any] = {}  # initializer name -> TensorProto
        self._used: Counter[str] = Counter()

    def model(self, *outputs: str) -> onnx.ModelProto:
        """The finished model."""
        graph = helper.make_graph(
            self._nodes,
            self.name,
            [helper.make_value_info(name, self._types[name]) for name in self._inputs],
            [helper.make_value_info(name, self._types[name]) for name in outputs],
            list(self._weights.values()),
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets, producer_name="edgewright")

    def shape(self, tensor: str) -> tuple[int, ...]:
        """The shape of a tensor made so far."""
        return tuple(d.dim_value for d in self._types[tensor].tensor_type.shape.dim)

    def input(self, *shape: int, dtype: int = TensorProto.FLOAT, name: str = "input") -> str:
        self._inputs.append(name)
        return self._typed(name, helper.make_tensor_type_proto(dtype, shape))

    def constant(self, name: str, values: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
        """The name of an initializer; asking again for the same one is free."""
        if name not in self._weights:
            array = np.asarray(values, dtype)
            self._weights[name] = numpy_helper.from_array(array, name)
            self._types[name] = helper.make_tensor_type_proto(self._weights[name].data_type, array.shape)
        return name

    def node(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """The output of a new node of one output, named like the node; its shape is what ONNX infers."""
        name = name or self._fresh(op.lower())
        node = helper.make_node(op, inputs, [name], name=name, **attributes)
        # Shapes may depend on short vectors: the pads of Pad, the scales of Resize.
        known = {i: self._weights[i] for i in inputs if i in self._weights and self.shape(i) in SHORT}
        inferred = shape_inference.infer_node_outputs(
            onnx.defs.get_schema(op, OPSET),
            node,
            {i: self._types[i] for i in inputs if i},
            input_data=known,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        self._nodes.append(node)
        return self._typed(name, inferred[name])

    # Layers with weights

    def conv(
        self,
        x: str,
        channels: int,
        kernel: Size = 1,
        stride: Size = 1,
        pads: Pads | int | None = None,
        *,
        groups: int = 1,
        gain: float = RELU_CENTRED,
        name: str = "",
    ) -> str:
        """A convolution with bias, padded SAME unless told otherwise."""
        name = name or self._fresh("conv")
        weight = self._filters(name, x, channels, kernel, groups, gain)
        return self._convolution(name, (x, weight, self._bias(f"{name}.bias", channels)), stride, pads, groups)

    def unbiased_conv(
        self,
        x: str,
        channels: int,
        kernel: Size = 1,
        stride: Size = 1,
        pads: Pads | int | None = None,
        *,
        groups: int = 1,
        gain: float = RELU_CENTRED,
    ) -> str:
        """A convolution without bias, as beside a batch normalisation; padded SAME unless told otherwise."""
        name = self._fresh("conv")
        return self._convolution(
            name, (x, self._filters(name, x, channels, kernel, groups, gain)), stride, pads, groups
        )

    def depthwise(
        self, x: str, kernel: Size = 3, stride: Size = 1, pads: Pads | int | None = None, **options: Any
    ) -> str:
        channels = self.shape(x)[1]
        return self.conv(x, channels, kernel, stride, pads, groups=channels, gain=RELU, **options)

    def up_conv(self, x: str, channels: int) -> str:
        """A transposed convolution 2×2 of stride 2: twice as high and wide."""
        name = self._fresh("convtranspose")
        depth = self.shape(x)[1]
        # Each output is reached by one tap, so that only the channels add up.
        weight = self._random(f"{name}.weight", (depth, channels, 2, 2), RELU, fan_in=depth)
        bias = self._bias(f"{name}.bias", channels)
        return self.node("ConvTranspose", x, weight, bias, name=name, kernel_shape=(2, 2), strides=(2, 2))

    def dense(self, x: str, units: int, *, gain: float = RELU_CENTRED, name: str = "") -> str:
        """A fully connected layer on (1, features), its weight stored (units, features) as PyTorch does."""
        name = name or self._fresh("gemm")
        weight = self._random(f"{name}.weight", (units, self.shape(x)[1]), gain)
        return self.node("Gemm", x, weight, self._bias(f"{name}.bias", units), name=name, transB=1)

    def classifier(self, x: str, classes: int, name: str = "") -> str:
        """The mean of every channel and a dense layer on it: how most networks end."""
        return self.dense(self.global_average(x), classes, gain=POOLED, name=name)

    def batchnorm(self, x: str) -> str:
        """A batch normalisation with statistics as after training: near, not at, the identity."""
        name = self._fresh("batchnorm")
        channels = self.shape(x)[1]
        values = {
            "scale": self._rng.uniform(0.8, 1.2, channels),
            "bias": self._rng.normal(0.0, 0.1, channels),
            "mean": self._rng.normal(0.0, 0.1, channels),
            "var": self._rng.uniform(0.8, 1.2, channels),
        }
        weights = [self.constant(f"{name}.{part}", value) for part, value in values.items()]
        return self.node("BatchNormalization", x, *weights, name=name)

    def embedding(self, ids: str, words: int, width: int) -> str:
        name = self._fresh("gather")
        weight = self._random(f"{name}.weight", (words, width), LINEAR, fan_in=1)
        return self.node("Gather", weight, ids, name=name)

    # Layers without

    def relu(self, x: str) -> str:
        return self.node("Relu", x)

    def relu6(self, x: str) -> str:
        return self.node("Clip", x, self.constant("zero", 0.0), self.constant("six", 6.0))

    def hard_swish(self, x: str) -> str:
        return self.node("HardSwish", x)

    def softmax(self, x: str) -> str:
        return self.node("Softmax", x, axis=1)

    def add(self, first: str, *others: str) -> str:
        """The sum, as a chain of binary additions, which is how exporters write it."""
        for other in others:
            first = self.node("Add", first, other)
        return first

    def concat(self, *inputs: str) -> str:
        return self.node("Concat", *inputs, axis=1)

    def max_pool(self, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        return self._pool("MaxPool", x, kernel, stride, pad)

    def average_pool(self, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        return self._pool("AveragePool", x, kernel, stride, pad)

    def upsample(self, x: str) -> str:
        """Nearest neighbour, twice as high and wide."""
        scales = self.constant("twice", (1.0, 1.0, 2.0, 2.0))
        how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.node("Resize", x, "", scales, **how)

    def global_average(self, x: str) -> str:
        """The mean of every channel, flattened to (1, channels)."""
        return self.node("Flatten", self.node("GlobalAveragePool", x), axis=1)

    # Helpers

    def _filters(self, name: str, x: str, channels: int, kernel: Size, groups: int, gain: float) -> str:
        return self._random(f"{name}.weight", (channels, self.shape(x)[1] // groups, *_pair(kernel)), gain)

    def _convolution(self, name: str, inputs: Sequence[str], stride: Size, pads: Pads | int | None, groups: int) -> str:
        height, width = self.shape(inputs[0])[2:]
        rows, columns = self.shape(inputs[1])[2:]
        if pads is None:
            pads = same_pads(height, width, (rows, columns), _pair(stride))
        elif isinstance(pads, int):
            pads = (pads, pads, pads, pads)
        options = {"kernel_shape": (rows, columns), "strides": _pair(stride), "pads": pads, "group": groups}
        return self.node("Conv", *inputs, name=name, **options)

    def _pool(self, op: str, x: str, kernel: int, stride: int, pad: int) -> str:
        k, s, p = (kernel, kernel), (stride, stride), (pad, pad, pad, pad)
        return self.node(op, x, kernel_shape=k, strides=s, pads=p)

    def _typed(self, name: str, proto: Any) -> str:
        self._types[name] = proto
        if min(self.shape(name)) < 1:
            raise InputError(f"{self.name}: {name} would be of shape {self.shape(name)}. Choose larger sizes.")
        return name

    def _fresh(self, stem: str) -> str:
        self._used[stem] += 1
        return f"{stem}{self._used[stem]}"

    def _random(self, name: str, shape: Sequence[int], gain: float, fan_in: int | None = None) -> str:
        """Weights that neither fade nor swell the signal with depth, nor drown it in its own mean.

        A filter over several channels is centred: otherwise the mean that every ReLU adds takes over, and a
        deep network answers nearly the same whatever it is shown (Brock et al. 2021, section 4). Where the
        weights are no such filters, the caller says what the fan-in is.
        """
        values = self._rng.standard_normal(tuple(shape), np.float32)
        if fan_in is None:
            fan_in = math.prod(shape[1:])
            if shape[1] > 1:
                values -= values.mean(axis=tuple(range(1, len(shape))), keepdims=True)
        return self.constant(name, values * np.float32(math.sqrt(gain / fan_in)))

    def _bias(self, name: str, channels: int) -> str:
        return self.constant(name, 0.1 * self._rng.standard_normal(channels, np.float32))


def _pair(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size
