"""One random model of one operator for each function: the operators of TFLite in all the types it runs them in.

Each function draws shapes, scales and attributes from `rng` and gives a model; `CASES` lists functions and types.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from edgewright.network import Network
from edgewright.network.tflite import read_tflite
from tests.helpers.tflite_models import Array, Node, Spec, constant, model, options, packed, unpacked

Rng = np.random.Generator
Case = Callable[[Rng, str], bytes]

FLOAT, INT8, UINT8, INT16 = "float32", "int8", "uint8", "int16"
SMALL, QUANTISED, ALL = (INT8, UINT8), (INT8, UINT8, INT16), (FLOAT, INT8, UINT8, INT16)

CASES: dict[tuple[str, str], Case] = {}


def case(*dtypes: str) -> Callable[[Case], Case]:
    def register(function: Case) -> Case:
        for dtype in dtypes:
            CASES[function.__name__, dtype] = function
        return function

    return register


def quant(rng: Rng, dtype: str, low: float = 0.005, high: float = 0.1) -> dict[str, Any]:
    """A random scale, one in three a power of two, and zero point; 16-bit types are symmetric."""
    if dtype == FLOAT:
        return {}
    scale = float(np.float32(np.exp(rng.uniform(np.log(low), np.log(high)))))
    if rng.random() < 1 / 3:
        scale = 2.0 ** round(np.log2(scale))
    if dtype == INT16:
        return {"scale": scale / 64}
    return {"scale": scale, "zero": int(rng.integers(-100, 100)) + (128 if dtype == UINT8 else 0)}


def spec(rng: Rng, name: str, shape: tuple[int, ...], dtype: str, **fixed: Any) -> Spec:
    return Spec(name, shape, dtype, **{**quant(rng, dtype), **fixed} if dtype != FLOAT else {})


def like(source: Spec, name: str, shape: tuple[int, ...]) -> Spec:
    return Spec(name, shape, source.dtype, source.scale, source.zero)


def pick(rng: Rng, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def image(rng: Rng, most: int = 9) -> tuple[int, int, int, int]:
    return tuple(int(v) for v in (rng.integers(1, 3), rng.integers(4, most), rng.integers(4, most), rng.integers(1, 6)))


def activation(rng: Rng) -> int:
    return int(rng.integers(0, 4))


def one(kind: str, inputs: list[Spec], out: Spec, made: Any = None) -> bytes:
    given = [i.name for i in inputs if i.data is None]
    node = Node(kind, tuple(i.name for i in inputs), (out.name,), made)
    return model([*inputs, out], [node], given, [out.name])


# Windows and products


def weights(rng: Rng, shape: tuple[int, ...], dtype: str, axis: int, per_channel: bool) -> Spec:
    if dtype == FLOAT:
        return constant("w", rng.standard_normal(shape), FLOAT)
    reach = pick(rng, 1, 10, 127)  # small sums need multipliers near 1, which show how results are rounded
    if dtype == UINT8:
        zero = int(rng.integers(reach, 256 - reach))
        return constant("w", rng.integers(-reach, reach + 1, shape) + zero, UINT8, scale=0.02, zero=zero)
    scales = np.exp(rng.uniform(np.log(0.002), np.log(0.02), shape[axis] if per_channel else 1))
    scale = tuple(float(np.float32(s)) for s in scales)
    return constant("w", rng.integers(-reach, reach + 1, shape), INT8, scale=scale, zero=0, axis=axis)


def bias(rng: Rng, size: int, dtype: str, x: Spec, w: Spec) -> Spec:
    if dtype == FLOAT:
        return constant("b", rng.standard_normal(size), FLOAT)
    scale = tuple(float(np.float32(s) * np.float32(x.scale)) for s in np.atleast_1d(w.scale))
    kind = "int64" if dtype == INT16 else "int32"
    return constant("b", rng.integers(-200, 200, size), kind, scale=scale, zero=0)


def product_out(rng: Rng, shape: tuple[int, ...], dtype: str) -> Spec:
    """An output of any scale, so that multipliers are of all sizes."""
    if dtype == FLOAT:
        return Spec("y", shape)
    return spec(rng, "y", shape, dtype, **quant(rng, dtype, 0.001, 0.5))


def windows(rng: Rng, kind: str, shape: tuple[int, ...], kernel: tuple[int, int]) -> dict[str, Any]:
    fields = {
        "padding": int(rng.integers(0, 2)),
        "strideH": int(rng.integers(1, 4)),
        "strideW": int(rng.integers(1, 3)),
        "fusedActivationFunction": activation(rng),
    }
    if kind != "Pool2D" and rng.random() < 0.4:
        fields |= {
            "strideH": 1,
            "strideW": 1,
            "dilationHFactor": 2,
            "dilationWFactor": int(rng.integers(1, 3)),
        }
    return fields


@case(*ALL)
def conv_2d(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    groups = pick(rng, 1, 1, shape[3])
    depth = int(rng.integers(1, 4)) * groups
    kernel = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    x = spec(rng, "x", shape, dtype)
    w = weights(rng, (depth, *kernel, shape[3] // groups), dtype, 0, per_channel=bool(rng.integers(2)))
    y = product_out(rng, (1,), dtype)
    return one(
        "CONV_2D",
        [x, w, bias(rng, depth, dtype, x, w)],
        y,
        options("Conv2D", **windows(rng, "Conv2D", shape, kernel)),
    )


@case(*ALL)
def depthwise_conv_2d(rng: Rng, dtype: str) -> bytes:
    shape, times = image(rng), int(rng.integers(1, 4))
    kernel = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    x = spec(rng, "x", shape, dtype)
    depth = shape[3] * times
    w = weights(rng, (1, *kernel, depth), dtype, 3, per_channel=bool(rng.integers(2)))
    fields = windows(rng, "DepthwiseConv2D", shape, kernel) | {"depthMultiplier": times}
    fields["strideW"] = fields["strideH"]  # all that TFLite allows here
    made = options("DepthwiseConv2D", **fields)
    return one("DEPTHWISE_CONV_2D", [x, w, bias(rng, depth, dtype, x, w)], product_out(rng, (1,), dtype), made)


@case(*ALL)
def transpose_conv(rng: Rng, dtype: str) -> bytes:
    shape, depth = image(rng, 7), int(rng.integers(1, 5))
    kernel, stride = (int(rng.integers(1, 5)), int(rng.integers(1, 5))), int(rng.integers(1, 4))
    padding = int(rng.integers(0, 2))
    size = [s * stride if padding == 0 else (s - 1) * stride + k for s, k in zip(shape[1:3], kernel, strict=True)]
    x = spec(rng, "x", shape, dtype)
    w = weights(rng, (depth, *kernel, shape[3]), dtype, 0, per_channel=bool(rng.integers(2)))
    made = options("TransposeConv", padding=padding, strideH=stride, strideW=stride)
    target = constant("size", [shape[0], *size, depth])
    y = product_out(rng, (shape[0], *size, depth), dtype)
    return one("TRANSPOSE_CONV", [target, w, x, bias(rng, depth, dtype, x, w)], y, made)


@case(*ALL)
def fully_connected(rng: Rng, dtype: str) -> bytes:
    rows, depth, width = int(rng.integers(1, 5)), int(rng.integers(1, 40)), int(rng.integers(1, 9))
    shape = pick(rng, (rows, depth), (rows, 2, depth))
    x = spec(rng, "x", shape, dtype)
    w = weights(rng, (width, depth), dtype, 0, per_channel=dtype == INT8 and bool(rng.integers(2)))
    made = options("FullyConnected", fusedActivationFunction=activation(rng), keepNumDims=bool(rng.integers(2)))
    extra = [bias(rng, width, dtype, x, w)] if rng.random() < 0.8 else []
    return one("FULLY_CONNECTED", [x, w, *extra], product_out(rng, (1,), dtype), made)


@case(FLOAT, INT8, INT16)
def batch_matmul(rng: Rng, dtype: str) -> bytes:
    m, k, n = (int(size) for size in rng.integers(1, 12, 3))
    lead, other = pick(rng, ((), ()), ((2,), (2,)), ((1, 3), (2, 3)), ((2, 1), (3,)))
    flips = [bool(flip) for flip in rng.integers(2, size=2)]
    a = spec(rng, "a", (*lead, *((k, m) if flips[0] else (m, k))), dtype)
    b = spec(rng, "b", (*other, *((n, k) if flips[1] else (k, n))), dtype)
    made = options("BatchMatMul", adjX=flips[0], adjY=flips[1])
    return one("BATCH_MATMUL", [a, b], product_out(rng, (1,), dtype), made)


# Real activations, stored weights ("dynamic range")


def stored_weights(rng: Rng, shape: tuple[int, ...], axis: int, scales: int) -> Spec:
    """int8 with one scale, or one for each channel."""
    found = tuple(float(np.float32(s)) for s in rng.uniform(0.002, 0.02, scales))
    return constant("w", rng.integers(-127, 128, shape), INT8, scale=found, zero=0, axis=axis)


def real_bias(rng: Rng, size: int) -> Spec:
    return constant("b", rng.standard_normal(size), FLOAT)


@case(FLOAT)
def dynamic_conv_2d(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    groups = pick(rng, 1, 1, shape[3])
    depth = int(rng.integers(1, 4)) * groups
    kernel = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    # With groups LiteRT wants a scale for each channel.
    w = stored_weights(rng, (depth, *kernel, shape[3] // groups), 0, depth if groups > 1 else pick(rng, 1, depth))
    made = options("Conv2D", **windows(rng, "Conv2D", shape, kernel))
    return one("CONV_2D", [Spec("x", shape), w, real_bias(rng, depth)], Spec("y", (1,)), made)


@case(FLOAT)
def dynamic_depthwise_conv_2d(rng: Rng, dtype: str) -> bytes:
    shape, times = image(rng), int(rng.integers(1, 4))
    kernel, depth = (int(rng.integers(1, 3)), int(rng.integers(1, 3))), shape[3] * times
    fields = windows(rng, "DepthwiseConv2D", shape, kernel) | {"depthMultiplier": times}
    fields["strideW"] = fields["strideH"]
    w = stored_weights(rng, (1, *kernel, depth), 3, depth)
    made = options("DepthwiseConv2D", **fields)
    return one("DEPTHWISE_CONV_2D", [Spec("x", shape), w, real_bias(rng, depth)], Spec("y", (1,)), made)


@case(FLOAT)
def dynamic_transpose_conv(rng: Rng, dtype: str) -> bytes:
    shape, depth = image(rng, 7), int(rng.integers(1, 5))
    kernel, stride = (int(rng.integers(1, 5)), int(rng.integers(1, 5))), int(rng.integers(1, 4))
    size = [(s - 1) * stride + k for s, k in zip(shape[1:3], kernel, strict=True)]
    w = stored_weights(rng, (depth, *kernel, shape[3]), 0, depth)
    made = options("TransposeConv", padding=1, strideH=stride, strideW=stride)
    target, y = constant("size", [shape[0], *size, depth]), Spec("y", (shape[0], *size, depth))
    return one("TRANSPOSE_CONV", [target, w, Spec("x", shape), real_bias(rng, depth)], y, made)


@case(FLOAT)
def dynamic_fully_connected(rng: Rng, dtype: str) -> bytes:
    rows, depth, width = int(rng.integers(1, 5)), int(rng.integers(1, 40)), int(rng.integers(1, 9))
    w = stored_weights(rng, (width, depth), 0, pick(rng, 1, width))
    made = options(
        "FullyConnected",
        fusedActivationFunction=activation(rng),
        keepNumDims=bool(rng.integers(2)),
        asymmetricQuantizeInputs=bool(rng.integers(2)),
    )
    extra = [real_bias(rng, width)] if rng.random() < 0.8 else []
    x = Spec("x", pick(rng, (rows, depth), (rows, 2, depth)))
    return one("FULLY_CONNECTED", [x, w, *extra], Spec("y", (1,)), made)


@case(*ALL)
def average_pool_2d(rng: Rng, dtype: str) -> bytes:
    return _pool(rng, dtype, "AVERAGE_POOL_2D")


@case(*ALL)
def max_pool_2d(rng: Rng, dtype: str) -> bytes:
    return _pool(rng, dtype, "MAX_POOL_2D")


def _pool(rng: Rng, dtype: str, kind: str) -> bytes:
    shape, kernel = image(rng), (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    x = spec(rng, "x", shape, dtype)
    fields = windows(rng, "Pool2D", shape, kernel) | {"filterHeight": kernel[0], "filterWidth": kernel[1]}
    return one(kind, [x], like(x, "y", (1,)), options("Pool2D", **fields))


# Two operands


def _two(rng: Rng, dtype: str, kind: str, made: Any = None, same: bool = False) -> bytes:
    shape = image(rng)
    other = pick(rng, shape, (1, 1, 1, shape[3]), (shape[3],), (shape[0], shape[1], 1, 1), ())
    a = spec(rng, "a", shape, dtype)
    b = like(a, "b", other) if same else spec(rng, "b", other, dtype)
    if rng.random() < 0.3:
        b = replace(b, data=random_value(rng, other, dtype))
    y = like(a, "y", shape) if same else spec(rng, "y", shape, dtype)
    return one(kind, [a, b], y, made)


@case(*ALL)
def add(rng: Rng, dtype: str) -> bytes:
    made = options("Add", fusedActivationFunction=activation(rng), potScaleInt16=False)
    return _two(rng, dtype, "ADD", made)


@case(*ALL)
def sub(rng: Rng, dtype: str) -> bytes:
    made = options("Sub", fusedActivationFunction=activation(rng), potScaleInt16=False)
    return _two(rng, dtype, "SUB", made)


@case(*ALL)
def mul(rng: Rng, dtype: str) -> bytes:
    return _two(rng, dtype, "MUL", options("Mul", fusedActivationFunction=activation(rng)))


@case(FLOAT, *SMALL)
def div(rng: Rng, dtype: str) -> bytes:
    """With a fine output scale: LiteRT shifts by more than 31 bits, and so by any number, when it is coarse."""
    shape = image(rng)
    a, b = spec(rng, "a", shape, dtype), spec(rng, "b", shape, dtype)
    made = options("Div", fusedActivationFunction=activation(rng))
    if dtype == FLOAT:
        return one("DIV", [a, constant("b", rng.uniform(0.5, 2, shape), FLOAT)], Spec("y", shape), made)
    middle = 128 if dtype == UINT8 else 0
    divisor = constant("b", middle + pick(rng, -1, 1) * rng.integers(1, 128, shape), dtype, scale=b.scale, zero=middle)
    fine = float(np.float32(a.scale) / np.float32(b.scale)) / float(rng.uniform(64, 200))
    return one("DIV", [a, divisor], Spec("y", shape, dtype, fine, middle), made)


@case(*ALL)
def minimum(rng: Rng, dtype: str) -> bytes:
    return _two(rng, dtype, "MINIMUM", options("MaximumMinimum"), same=True)


@case(*ALL)
def maximum(rng: Rng, dtype: str) -> bytes:
    return _two(rng, dtype, "MAXIMUM", options("MaximumMinimum"), same=True)


@case(FLOAT, INT8)
def squared_difference(rng: Rng, dtype: str) -> bytes:
    return _two(rng, dtype, "SQUARED_DIFFERENCE", options("SquaredDifference"))


# Functions of one element


def _one(rng: Rng, dtype: str, kind: str, made: Any = None, out: dict[str, Any] | None = None) -> bytes:
    shape = (1, 8, 16, 2)  # room for all 8-bit values
    y = spec(rng, "y", shape, dtype) if out is None or dtype == FLOAT else Spec("y", shape, dtype, **out)
    return one(kind, [spec(rng, "x", shape, dtype)], y, made)


@case(*ALL)
def relu(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "RELU")


@case(*ALL)
def relu6(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "RELU6")


@case(FLOAT, *SMALL)
def relu_n1_to_1(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "RELU_N1_TO_1")


@case(FLOAT, *SMALL)
def relu_0_to_1(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "RELU_0_TO_1")


@case(*ALL)
def leaky_relu(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "LEAKY_RELU", options("LeakyRelu", alpha=float(rng.uniform(-0.3, 1.5))))


@case(FLOAT, *SMALL)
def prelu(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    x = spec(rng, "x", shape, dtype)
    size = (1, 1, shape[3])
    if dtype == FLOAT:
        slope = constant("slope", rng.standard_normal(size), FLOAT)
    else:
        info = np.iinfo(dtype)
        slope = constant("slope", rng.integers(info.min, info.max + 1, size), dtype, **quant(rng, dtype))
    return one("PRELU", [x, slope], spec(rng, "y", shape, dtype))


@case(FLOAT, INT8)
def elu(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "ELU")


@case(*ALL)
def gelu(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "GELU", options("Gelu", approximate=bool(rng.integers(2))))


@case(*ALL)
def logistic(rng: Rng, dtype: str) -> bytes:
    out = {
        INT8: {"scale": 1 / 256, "zero": -128},
        UINT8: {"scale": 1 / 256, "zero": 0},
        INT16: {"scale": 1 / 32768},
    }
    if dtype == INT16:
        return _sixteen_bits(rng, "LOGISTIC")
    return _one(rng, dtype, "LOGISTIC", out=out.get(dtype))


@case(*ALL)
def tanh(rng: Rng, dtype: str) -> bytes:
    return _sixteen_bits(rng, "TANH") if dtype == INT16 else _one(rng, dtype, "TANH")


def _sixteen_bits(rng: Rng, kind: str) -> bytes:
    """TFLite treats scales near powers of two apart."""
    scale = pick(rng, 2.0**-12, 2.0**-11, float(rng.uniform(1e-5, 1e-3)))
    shape = image(rng)
    return one(kind, [Spec("x", shape, INT16, scale)], Spec("y", shape, INT16, 1 / 32768))


@case(FLOAT, *SMALL)
def hard_swish(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "HARD_SWISH", options("HardSwish"))


@case(FLOAT, INT8, INT16)
def abs_(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "ABS", options("Abs"))


@case(FLOAT, INT8, INT16)
def exp(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "EXP", options("Exp"))


@case(INT8, INT16)
def log(rng: Rng, dtype: str) -> bytes:
    return _one(rng, dtype, "LOG")


@case(INT8, INT16)
def rsqrt(rng: Rng, dtype: str) -> bytes:
    return _root(rng, dtype, "RSQRT")


@case(INT8, INT16)
def sqrt(rng: Rng, dtype: str) -> bytes:
    return _root(rng, dtype, "SQRT")


def _root(rng: Rng, dtype: str, kind: str) -> bytes:
    shape = image(rng)
    x = spec(rng, "x", shape, dtype, zero=-128 if dtype == INT8 else 0)
    return one(kind, [x], spec(rng, "y", shape, dtype))


def _float_function(kind: str, made: str | None = None) -> None:
    def build(rng: Rng, dtype: str) -> bytes:
        return _one(rng, dtype, kind, None if made is None else options(made))

    CASES[kind.lower(), FLOAT] = build


for _kind, _made in (
    ("CEIL", None),
    ("COS", "Cos"),
    ("FLOOR", None),
    ("NEG", "Neg"),
    ("ROUND", None),
    ("SIGN", "Sign"),
    ("SIN", None),
    ("SQUARE", "Square"),
):
    _float_function(_kind, _made)


def _comparison(kind: str, made: str, dtypes: tuple[str, ...]) -> None:
    """Compares, and chooses by the result: often equal numbers."""

    def build(rng: Rng, dtype: str) -> bytes:
        shape = image(rng)
        x = spec(rng, "x", shape, dtype)
        other = pick(rng, shape, shape[-1:], ())
        values = rng.integers(-3, 3, other) if dtype == FLOAT else rng.integers(100, 110, other)
        specs = [x, replace(like(x, "c", other), data=np.array(values, dtype)), Spec("is", shape, "bool")]
        specs += [like(x, "y", shape)]
        choose = pick(rng, ("x", "c"), ("c", "x"))
        nodes = [
            Node(kind, ("x", "c"), ("is",), options(made)),
            Node("SELECT_V2", ("is", *choose), ("y",), options("SelectV2")),
        ]
        return model(specs, nodes, ["x"], ["y", "is"])

    for dtype in dtypes:
        CASES[kind.lower(), dtype] = build


for _kind, _made in (("EQUAL", "Equal"), ("NOT_EQUAL", "NotEqual"), ("GREATER", "Greater"), ("LESS", "Less")):
    _comparison(_kind, _made, (FLOAT, *SMALL))
for _kind, _made in (("GREATER_EQUAL", "GreaterEqual"), ("LESS_EQUAL", "LessEqual")):
    _comparison(_kind, _made, (FLOAT, INT8))


@case(*SMALL)
def compare_scales(rng: Rng, dtype: str) -> bytes:
    """A constant of another scale, near the middle."""
    kind, made = pick(
        rng,
        *(("GREATER", "Greater"), ("LESS", "Less")),
        *([("GREATER_EQUAL", "GreaterEqual")] if dtype == INT8 else []),
    )
    shape = image(rng)
    other = spec(rng, "c", pick(rng, (), shape[-1:]), dtype)
    near = replace(other, data=np.array(other.zero + rng.integers(-2, 3, other.shape), dtype))
    return one(kind, [spec(rng, "x", shape, dtype), near], Spec("y", shape, "bool"), options(made))


def _logic(kind: str, made: str, count: int) -> None:
    def build(rng: Rng, dtype: str) -> bytes:
        shape = image(rng)
        inputs = [Spec(name, shape, "bool") for name in "ab"[:count]]
        return one(kind, inputs, Spec("y", shape, "bool"), options(made))

    CASES[kind.lower(), "bool"] = build


_logic("LOGICAL_AND", "LogicalAnd", 2)
_logic("LOGICAL_OR", "LogicalOr", 2)
_logic("LOGICAL_NOT", "LogicalNot", 1)


@case(*ALL)
def select(rng: Rng, dtype: str) -> bytes:
    x = spec(rng, "x", (shape := image(rng)), dtype)
    inputs = [Spec("is", pick(rng, shape, ()), "bool"), x, like(x, "z", shape)]
    return one("SELECT", inputs, like(x, "y", shape), options("Select"))


# Along an axis


@case(*ALL)
def softmax(rng: Rng, dtype: str) -> bytes:
    out = {INT8: {"scale": 1 / 256, "zero": -128}, UINT8: {"scale": 1 / 256}, INT16: {"scale": 1 / 32768}}
    shape = (*image(rng)[: int(rng.integers(0, 3))], int(rng.integers(1, 20)))
    y = Spec("y", shape, dtype, **out.get(dtype, {}))
    return one("SOFTMAX", [spec(rng, "x", shape, dtype)], y, options("Softmax", beta=float(rng.uniform(0.3, 2))))


@case(FLOAT, *SMALL)
def log_softmax(rng: Rng, dtype: str) -> bytes:
    out = {INT8: {"scale": 1 / 16, "zero": 127}, UINT8: {"scale": 1 / 16, "zero": 255}}
    shape = (int(rng.integers(1, 4)), int(rng.integers(1, 20)))
    y = Spec("y", shape, dtype, **out.get(dtype, {}))
    return one("LOG_SOFTMAX", [spec(rng, "x", shape, dtype)], y, options("LogSoftmax"))


@case(FLOAT, *SMALL)
def l2_normalization(rng: Rng, dtype: str) -> bytes:
    out = {INT8: {"scale": 1 / 128, "zero": 0}, UINT8: {"scale": 1 / 128, "zero": 128}}
    shape = (int(rng.integers(1, 4)), int(rng.integers(1, 20)))
    y = Spec("y", shape, dtype, **out.get(dtype, {}))
    return one("L2_NORMALIZATION", [spec(rng, "x", shape, dtype)], y, options("L2Norm"))


@case(FLOAT)
def local_response_normalization(rng: Rng, dtype: str) -> bytes:
    made = options("LocalResponseNormalization", radius=int(rng.integers(1, 4)), bias=1.5, alpha=0.3, beta=0.6)
    return _one(rng, dtype, "LOCAL_RESPONSE_NORMALIZATION", made)


def _reduce(rng: Rng, dtype: str, kind: str, same: bool) -> bytes:
    shape = image(rng)
    axes = pick(rng, [1, 2], [2, 1], [3], [-1], [0, 1, 2, 3], [1], [0, 3])
    x = spec(rng, "x", shape, dtype)
    y = like(x, "y", (1,)) if same else spec(rng, "y", (1,), dtype)
    return one(kind, [x, constant("axes", axes)], y, options("Reducer", keepDims=bool(rng.integers(2))))


@case(*ALL)
def mean(rng: Rng, dtype: str) -> bytes:
    return _reduce(rng, dtype, "MEAN", same=False)


@case(*ALL)
def sum_(rng: Rng, dtype: str) -> bytes:
    return _reduce(rng, dtype, "SUM", same=False)


@case(*ALL)
def reduce_max(rng: Rng, dtype: str) -> bytes:
    return _reduce(rng, dtype, "REDUCE_MAX", same=True)


@case(*ALL)
def reduce_min(rng: Rng, dtype: str) -> bytes:
    return _reduce(rng, dtype, "REDUCE_MIN", same=True)


@case(FLOAT)
def reduce_prod(rng: Rng, dtype: str) -> bytes:
    return _reduce(rng, dtype, "REDUCE_PROD", same=True)


@case(FLOAT, *SMALL)
def arg_max(rng: Rng, dtype: str) -> bytes:
    return _arg(rng, dtype, "ARG_MAX", "ArgMax")


@case(FLOAT, *SMALL)
def arg_min(rng: Rng, dtype: str) -> bytes:
    return _arg(rng, dtype, "ARG_MIN", "ArgMin")


def _arg(rng: Rng, dtype: str, kind: str, made: str) -> bytes:
    shape = image(rng)
    x = spec(rng, "x", shape, dtype)
    axis = int(rng.integers(-4, 4))
    out = Spec("y", tuple(s for i, s in enumerate(shape) if i != axis % 4), "int32")
    return one(kind, [x, constant("axis", axis)], out, options(made, outputType=2))


@case(FLOAT, *QUANTISED)
def top_k(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    x, count = spec(rng, "x", shape, dtype), int(rng.integers(1, shape[3] + 1))
    best = (*shape[:3], count)
    specs = [x, constant("k", count), like(x, "y", best), Spec("at", best, "int32")]
    node = Node("TOPK_V2", ("x", "k"), ("y", "at"), options("TopKV2"))
    return model(specs, [node], ["x"], ["y", "at"])


@case(FLOAT)
def cum_sum(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    flags = {name: bool(rng.integers(2)) for name in ("exclusive", "reverse")}
    axis = constant("axis", int(rng.integers(-4, 4)))
    return one("CUMSUM", [Spec("x", shape), axis], Spec("y", shape), options("Cumsum", **flags))


@case("int32")
def one_hot(rng: Rng, dtype: str) -> bytes:
    shape, axis, depth = image(rng), int(rng.integers(-1, 5)), int(rng.integers(1, 7))
    at = 4 if axis == -1 else axis
    values = [constant(name, rng.standard_normal(), FLOAT) for name in ("on", "off")]
    out = Spec("y", (*shape[:at], depth, *shape[at:]))
    return one(
        "ONE_HOT", [Spec("x", shape, dtype), constant("depth", depth), *values], out, options("OneHot", axis=axis)
    )


@case(FLOAT, "int32")
def floor_div(rng: Rng, dtype: str) -> bytes:
    return _floored(rng, dtype, "FLOOR_DIV", "FloorDiv")


@case(FLOAT, "int32")
def floor_mod(rng: Rng, dtype: str) -> bytes:
    return _floored(rng, dtype, "FLOOR_MOD", "FloorMod")


def _floored(rng: Rng, dtype: str, kind: str, made: str) -> bytes:
    shape = image(rng)
    divisor = constant("b", pick(rng, -7, 3) if dtype != FLOAT else pick(rng, -0.7, 1.3), dtype)
    return one(kind, [Spec("x", shape, dtype), divisor], Spec("y", shape, dtype), options(made))


@case("bool")
def reduce_any(rng: Rng, dtype: str) -> bytes:
    return _reduce(rng, dtype, pick(rng, "REDUCE_ANY", "REDUCE_ALL"), same=True)


@case(FLOAT)
def add_n(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    return one("ADD_N", [Spec(name, shape) for name in "abc"], Spec("y", shape), options("AddN"))


# Element types


@case(*QUANTISED)
def quantize(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    source = pick(rng, FLOAT, *{INT8: SMALL, UINT8: SMALL, INT16: (INT8, INT16)}[dtype])
    return one("QUANTIZE", [spec(rng, "x", shape, source)], spec(rng, "y", shape, dtype), options("Quantize"))


@case(*QUANTISED)
def dequantize(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    return one("DEQUANTIZE", [spec(rng, "x", shape, dtype)], Spec("y", shape), options("Dequantize"))


@case("int32", "uint8")
def cast(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    return one("CAST", [Spec("x", shape, dtype)], Spec("y", shape), options("Cast"))


# Places


def _move(rng: Rng, dtype: str, kind: str, extra: list[Spec], made: Any = None, shape: Any = None) -> bytes:
    x = spec(rng, "x", shape or image(rng), dtype)
    return one(kind, [x, *extra], like(x, "y", (1,) * len(x.shape)), made)


@case(*ALL)
def reshape(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    wanted = pick(rng, [-1], [shape[0], -1], [shape[1], shape[0], -1, 1], [-1, shape[3]])
    if rng.random() < 0.5:
        return _move(rng, dtype, "RESHAPE", [], options("Reshape", newShape=wanted), shape)
    return _move(rng, dtype, "RESHAPE", [constant("shape", wanted)], options("Reshape"), shape)


@case(FLOAT, INT8)
def squeeze(rng: Rng, dtype: str) -> bytes:
    return _move(rng, dtype, "SQUEEZE", [], options("Squeeze", squeezeDims=pick(rng, [], [0], [-2])), (1, 3, 1, 4))


@case(FLOAT, INT8)
def expand_dims(rng: Rng, dtype: str) -> bytes:
    axis = constant("axis", int(rng.integers(-4, 4)))
    return _move(rng, dtype, "EXPAND_DIMS", [axis], options("ExpandDims"), (2, 3, 4))


@case(*ALL)
def transpose(rng: Rng, dtype: str) -> bytes:
    return _move(rng, dtype, "TRANSPOSE", [constant("perm", rng.permutation(4))], options("Transpose"))


@case(*ALL)
def concatenation(rng: Rng, dtype: str) -> bytes:
    shape, axis = list(image(rng)), int(rng.integers(-4, 4))
    first = spec(rng, "a", tuple(shape), dtype)
    shape[axis] += int(rng.integers(1, 4))
    second = spec(rng, "b", tuple(shape), dtype) if dtype == UINT8 else like(first, "b", tuple(shape))
    shape[axis] += first.shape[axis]
    y = spec(rng, "y", tuple(shape), dtype) if dtype == UINT8 else like(first, "y", tuple(shape))
    return one("CONCATENATION", [first, second], y, options("Concatenation", axis=axis))


@case(FLOAT, INT8)
def pack(rng: Rng, dtype: str) -> bytes:
    a = spec(rng, "a", (2, 3, 4), dtype)
    made = options("Pack", axis=int(rng.integers(-4, 4)), valuesCount=2)
    return one("PACK", [a, like(a, "b", (2, 3, 4))], like(a, "y", (1,)), made)


def _several(x: Spec, node: str, before: list[Spec], after: list[Spec], count: int, made: Any) -> bytes:
    outs = [like(x, f"y{i}", (1,)) for i in range(count)]
    inputs = [*before, x, *after]
    names = tuple(out.name for out in outs)
    nodes = [Node(node, tuple(i.name for i in inputs), names, made)]
    return model([*inputs, *outs], nodes, ["x"], names)


@case(FLOAT, INT8)
def unpack(rng: Rng, dtype: str) -> bytes:
    axis = int(rng.integers(-3, 3))
    x = spec(rng, "x", (2, 3, 4), dtype)
    return _several(x, "UNPACK", [], [], x.shape[axis], options("Unpack", axis=axis, num=x.shape[axis]))


@case(FLOAT, INT8)
def split(rng: Rng, dtype: str) -> bytes:
    x = spec(rng, "x", (2, 4, 4, 6), dtype)
    axis = constant("axis", int(rng.integers(-4, 4)))
    return _several(x, "SPLIT", [axis], [], 2, options("Split", numSplits=2))


@case(FLOAT, INT8)
def split_v(rng: Rng, dtype: str) -> bytes:
    x = spec(rng, "x", (2, 4, 5, 6), dtype)
    after = [constant("sizes", pick(rng, [1, 2, 3], [2, -1, 3])), constant("axis", pick(rng, 3, -1))]
    return _several(x, "SPLIT_V", [], after, 3, options("SplitV", numSplits=3))


@case(FLOAT, INT8)
def gather_nd(rng: Rng, dtype: str) -> bytes:
    shape, depth = image(rng), int(rng.integers(1, 5))
    places = np.stack([rng.integers(0, size, (2, 3)) for size in shape[:depth]], axis=-1)
    if rng.random() < 0.5:  # indices that are given: below any size
        x = spec(rng, "x", (12, *shape[1:]), dtype)
        return one("GATHER_ND", [x, Spec("at", (2, 3, 1), "int32")], like(x, "y", (1, 1, 1, 1, 1)), options("GatherNd"))
    return _move(rng, dtype, "GATHER_ND", [constant("places", places)], options("GatherNd"), shape)


@case(FLOAT)
def reverse_sequence(rng: Rng, dtype: str) -> bytes:
    shape, axes = image(rng), pick(rng, (1, 0), (2, 1), (1, 3))
    lengths = constant("lengths", rng.integers(1, shape[axes[0]] + 1, shape[axes[1]]))
    return _move(
        rng, dtype, "REVERSE_SEQUENCE", [lengths], options("ReverseSequence", seqDim=axes[0], batchDim=axes[1]), shape
    )


@case(FLOAT, INT8)
def slice_(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    begin = [int(rng.integers(0, s)) for s in shape]
    size = [int(rng.integers(1, s - b + 1)) for s, b in zip(shape, begin, strict=True)]
    asked = [pick(rng, n, -1 if b + n == s else n) for n, b, s in zip(size, begin, shape, strict=True)]
    x = spec(rng, "x", shape, dtype)
    extra = [constant("begin", begin), constant("size", asked)]
    return one("SLICE", [x, *extra], like(x, "y", tuple(size)), options("Slice"))


@case(FLOAT, INT8)
def strided_slice(rng: Rng, dtype: str) -> bytes:
    begin, end, step, masks = pick(
        rng,
        ([0, 1, 1, 0], [2, 5, 6, 3], [1, 2, 1, 1], {}),
        ([0, -1, 0, 0], [0, -6, 6, 3], [1, -2, 3, 1], {"beginMask": 1, "endMask": 1}),
        ([1, 2], [2, 4], [1, 1], {"shrinkAxisMask": 1}),
        ([0, 0, 1], [0, 0, 3], [1, 1, 1], {"ellipsisMask": 1, "newAxisMask": 2}),
        ([-1, 0], [0, 0], [1, 1], {"shrinkAxisMask": 1, "endMask": 2}),
    )
    extra = [constant(n, v) for n, v in (("begin", begin), ("end", end), ("step", step))]
    return _move(rng, dtype, "STRIDED_SLICE", extra, options("StridedSlice", **masks), (2, 6, 6, 3))


@case(*ALL)
def pad(rng: Rng, dtype: str) -> bytes:
    extra = constant("pads", rng.integers(0, 3, (4, 2)))
    return _move(rng, dtype, "PAD", [extra], options("Pad"))


@case(FLOAT, *SMALL)
def padv2(rng: Rng, dtype: str) -> bytes:
    shape = image(rng)
    x = spec(rng, "x", shape, dtype)
    quant_of_x = {} if dtype == FLOAT else {"scale": x.scale, "zero": x.zero}
    value = constant("value", [int(rng.integers(0, 100))], dtype, **quant_of_x)
    return one(
        "PADV2",
        [x, constant("pads", rng.integers(0, 3, (4, 2))), value],
        like(x, "y", (1,)),
        options("PadV2"),
    )


@case(FLOAT, INT8)
def mirror_pad(rng: Rng, dtype: str) -> bytes:
    mode = int(rng.integers(2))
    pads = rng.integers(0, 3, (4, 2)) * np.array([[0], [1], [1], [0]])
    return _move(rng, dtype, "MIRROR_PAD", [constant("pads", pads)], options("MirrorPad", mode=mode))


@case(FLOAT, INT8)
def tile(rng: Rng, dtype: str) -> bytes:
    return _move(rng, dtype, "TILE", [constant("times", rng.integers(1, 3, 4))], options("Tile"))


@case(FLOAT, INT8)
def broadcast_to(rng: Rng, dtype: str) -> bytes:
    extra = constant("shape", [2, 3, 4, 5])
    return _move(rng, dtype, "BROADCAST_TO", [extra], options("BroadcastTo"), pick(rng, (3, 1, 5), (2, 1, 1, 5)))


@case(FLOAT, INT8)
def gather(rng: Rng, dtype: str) -> bytes:
    shape, axis = image(rng), int(rng.integers(0, 4))
    indices = constant("indices", rng.integers(0, shape[axis], pick(rng, (3,), (2, 2), ())))
    if rng.random() < 0.3:
        one_of = constant("indices", rng.integers(0, shape[2], (1, 3)))
        return _move(rng, dtype, "GATHER", [one_of], options("Gather", axis=2, batchDims=1), (1, *shape[1:]))
    return _move(rng, dtype, "GATHER", [indices], options("Gather", axis=axis), shape)


@case(FLOAT)
def embedding_lookup(rng: Rng, dtype: str) -> bytes:
    table = constant("table", rng.standard_normal((10, 4)), FLOAT)
    return one("EMBEDDING_LOOKUP", [Spec("x", (5,), "int32"), table], Spec("y", (5, 4)))


@case(FLOAT, INT8, UINT8)
def space_to_depth(rng: Rng, dtype: str) -> bytes:
    return _move(rng, dtype, "SPACE_TO_DEPTH", [], options("SpaceToDepth", blockSize=2), (2, 4, 6, 3))


@case(FLOAT, INT8, UINT8)
def depth_to_space(rng: Rng, dtype: str) -> bytes:
    return _move(rng, dtype, "DEPTH_TO_SPACE", [], options("DepthToSpace", blockSize=2), (2, 3, 4, 8))


@case(*ALL)
def reverse_v2(rng: Rng, dtype: str) -> bytes:
    axes = constant("axes", pick(rng, [1], [-1]))
    return _move(rng, dtype, "REVERSE_V2", [axes], options("ReverseV2"))


@case(*ALL)
def space_to_batch_nd(rng: Rng, dtype: str) -> bytes:
    block = [int(b) for b in rng.integers(1, 4, 2)]
    shape, pads = image(rng), rng.integers(0, 3, (2, 2))
    for i in range(2):
        pads[i, 1] += -(shape[1 + i] + pads[i].sum()) % block[i]
    return _move(
        rng,
        dtype,
        "SPACE_TO_BATCH_ND",
        [constant("block", block), constant("pads", pads)],
        options("SpaceToBatchND"),
        shape,
    )


@case(*ALL)
def batch_to_space_nd(rng: Rng, dtype: str) -> bytes:
    block = [int(b) for b in rng.integers(1, 4, 2)]
    batch, *rest = image(rng)
    extra = [constant("block", block), constant("crops", rng.integers(0, 2, (2, 2)))]
    shape = (batch * block[0] * block[1], *rest)
    return _move(rng, dtype, "BATCH_TO_SPACE_ND", extra, options("BatchToSpaceND"), shape)


@case(FLOAT, INT8)
def dilated_by_blocks(rng: Rng, dtype: str) -> bytes:
    """TensorFlow's dilated convolution, perhaps with strides or with stored weights, which make it another one."""
    is_stored = dtype == FLOAT and bool(rng.integers(2))
    x, stride = spec(rng, "x", (1, 8, 8, 3), dtype), int(rng.integers(1, 3))
    w = stored_weights(rng, (4, 3, 3, 3), 0, 4) if is_stored else weights(rng, (4, 3, 3, 3), dtype, 0, dtype == INT8)
    y = product_out(rng, (1,), dtype)
    inner = replace(y, name="inner")
    made = options("Conv2D", strideH=stride, strideW=stride, dilationHFactor=1, dilationWFactor=1, padding=1)
    nodes = [
        Node("SPACE_TO_BATCH_ND", ("x", "block", "pads"), ("dealt",), options("SpaceToBatchND")),
        Node("CONV_2D", ("dealt", "w", "b"), ("inner",), made),
        Node("BATCH_TO_SPACE_ND", ("inner", "block", "crops"), ("y",), options("BatchToSpaceND")),
    ]
    margins = [constant("block", [2, 2]), constant("pads", [[2, 2], [2, 2]]), constant("crops", [[0, 0], [0, 0]])]
    b = real_bias(rng, 4) if dtype == FLOAT else bias(rng, 4, dtype, x, w)
    return model([x, *margins, w, b, like(x, "dealt", (1,)), inner, y], nodes, ["x"], ["y"])


def _resize(rng: Rng, dtype: str, kind: str, made: str) -> bytes:
    mode = int(rng.integers(3))
    size = constant("size", rng.integers(1, 20, 2))
    fields = {"alignCorners": mode == 1, "halfPixelCenters": mode == 2}
    return _move(rng, dtype, kind, [size], options(made, **fields))


@case(*ALL)
def resize_nearest_neighbor(rng: Rng, dtype: str) -> bytes:
    return _resize(rng, dtype, "RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighbor")


@case(*ALL)
def resize_bilinear(rng: Rng, dtype: str) -> bytes:
    return _resize(rng, dtype, "RESIZE_BILINEAR", "ResizeBilinear")


def lstm(kind: str, rng: Rng, cell: int = -11, time_major: bool = False, clip: float = 0.0) -> bytes:
    """An LSTM layer of real numbers, of stored weights (`dynamic`, `asymmetric`), or of integers alone (`int8`)."""
    batch, steps, depth, size = (int(rng.integers(1, high)) for high in (3, 6, 6, 6))
    is_stored, has_bytes = kind == "int8", kind != "float32"
    dtype = "int8" if is_stored else "float32"
    lead = (steps, batch) if time_major else (batch, steps)

    def quant(scale: float, zero: int = 0) -> dict[str, float]:
        return {"scale": scale * rng.uniform(0.8, 1.2), "zero": zero} if is_stored else {}

    state = quant(1 / 128, int(rng.integers(-9, 9)))
    specs = [Spec("x", (*lead, depth), dtype, **quant(0.03, int(rng.integers(-9, 9))))]
    specs += [Spec("h", (batch, size), dtype, special={"isVariable": True}, **state)]
    cells = {"scale": 2.0**cell} if is_stored else {}
    specs += [Spec("c", (batch, size), "int16" if is_stored else dtype, special={"isVariable": True}, **cells)]
    names = ["x"]
    for i in range(1, 9):
        shape = (size, depth if i < 5 else size)
        specs.append(
            constant(f"w{i}", rng.integers(-127, 128, shape), "int8", scale=0.02 * rng.uniform(0.8, 1.2))
            if has_bytes
            else constant(f"w{i}", rng.standard_normal(shape), "float32")
        )
        names.append(f"w{i}")
    for i in range(4):
        many = rng.integers(-3000, 3000, size) if is_stored else rng.standard_normal(size)
        specs.append(constant(f"b{i}", many, "int32" if is_stored else "float32"))
    names += ["", "", "", "b0", "b1", "b2", "b3", "", "", "h", "c", "", "", "", ""]
    specs.append(Spec("y", (*lead, size), dtype, **state))
    between = [Spec(f"between{i}", (), "int16", scale=2.0**-12) for i in range(4)] if is_stored else []
    between += [Spec("hidden", (), "int8", **state)] if is_stored else []
    made = options(
        "UnidirectionalSequenceLSTM", fusedActivationFunction=4, timeMajor=time_major, cellClip=clip,
        asymmetricQuantizeInputs=kind == "asymmetric",
    )  # fmt: skip
    node = Node("UNIDIRECTIONAL_SEQUENCE_LSTM", tuple(names), ("y",), made)
    content = unpacked(model([*specs, *between], [node], ["x"], ["y"]))
    content.subgraphs[0].operators[0].intermediates = list(range(len(specs), len(specs) + len(between)))
    return packed(content)


@case(FLOAT, INT8)
def sequence_lstm(rng: Rng, dtype: str) -> bytes:
    return lstm(dtype, rng, int(rng.integers(-15, -8)), bool(rng.random() < 0.5), pick(rng, 0.0, 0.11))


def random_value(rng: Rng, shape: tuple[int, ...], dtype: str, low: int | None = None) -> Array:
    """Values for an input: normal for floats, the whole range for small integers, small indices for others."""
    if dtype == FLOAT:
        return (rng.standard_normal(shape) * 3).astype(np.float32)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in ("int32", "int64"):
        return rng.integers(0, 10, shape).astype(dtype)
    info = np.iinfo(dtype)
    every = np.arange(info.min if low is None else low, info.max + 1)
    if len(every) > 256:
        return rng.choice(every, shape).astype(dtype)
    return np.resize(rng.permutation(every), shape).astype(dtype)  # none twice before all were drawn


def drawn(name: str, dtype: str, seed: int) -> tuple[bytes, Network, dict[str, Array]]:
    """A model of one operator, as read, and inputs for it."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    content = CASES[name, dtype](rng, dtype)
    network = read_tflite(content)
    low = 0 if name in ("rsqrt", "sqrt") and dtype == INT16 else None  # roots of negatives are undefined
    values = {}
    for tensor in (network.tensors[i] for i in network.inputs):
        values[tensor.name] = random_value(rng, tensor.shape, tensor.dtype.value, low)
    return content, network, values
