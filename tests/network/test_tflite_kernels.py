"""Every TFLite operator in every type that LiteRT runs it in: read, computed, and compared with LiteRT itself.

Integers must agree bit for bit, real numbers to a few units in the last place of float32.
"""

from __future__ import annotations

import zlib
from itertools import product

import numpy as np
import pytest

from edgewright.network import Arithmetic, Region
from edgewright.network.kernels import Operand, compute, execute
from edgewright.network.kernels.contraction import contracted, may_be_contracted
from edgewright.network.kernels.tflite import TFLITE, has_tflite_kernel, needs_one_scale
from edgewright.network.operators import Concat, Unary, UnaryKind
from edgewright.network.tensor import DType
from edgewright.network.tflite import read_tflite
from tests.helpers.tflite_cases import CASES, FLOAT, INT8, INT16, UINT8, drawn, quant
from tests.helpers.tflite_models import Array, Node, Spec, as_litert_here, constant, model, options, run_litert

SEEDS = range(5)

# LiteRT 2.3's reference kernels write nothing for a SUM of these types; the optimised ones round otherwise.
NOT_WRITTEN = {("sum_", INT8), ("sum_", INT16)}
# Its reference kernel leaves out the last channel of the window, unlike TensorFlow and its optimised kernel.
NOT_AS_DEFINED = {("local_response_normalization", FLOAT)}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_as_litert_computes_it(name: str, dtype: str, seed: int) -> None:
    content, network, values = drawn(name, dtype, seed)
    is_reference = (name, dtype) not in NOT_WRITTEN | NOT_AS_DEFINED
    expected = run_litert(content, list(values.values()), is_reference)
    with as_litert_here():
        found = execute(network, values)
    for output, wanted in zip(network.outputs, expected, strict=True):
        assert found[output].shape == wanted.shape
        assert found[output].dtype == wanted.dtype
        if wanted.dtype == np.float32:
            np.testing.assert_allclose(found[output], wanted, rtol=2e-5, atol=2e-5)
        elif (name, dtype) in NOT_WRITTEN:
            assert np.abs(found[output].astype(int) - wanted.astype(int)).max() <= 1
        else:
            np.testing.assert_array_equal(found[output], wanted)


@pytest.mark.parametrize("fields", [{}, {"halfPixelCenters": True}, {"alignCorners": True}])
@pytest.mark.parametrize("dtype", [FLOAT, INT8])
def test_nearest_pixels_are_those_of_litert(dtype: str, fields: dict[str, bool]) -> None:
    """Places that lie on the border of two pixels but for their last bit, such as 4 * 28 / 16: which one is shown?"""
    quant = {} if dtype == FLOAT else {"scale": 0.1}
    for extent, size in [(28, 16), (7, 4), (9, 27), (11, 22), (30, 17), (5, 33), (19, 13), (1, 4)]:
        specs = [Spec("x", (1, 1, extent, 1), dtype, **quant), constant("size", [2, size])]
        specs.append(Spec("y", (1, 2, size, 1), dtype, **quant))
        node = Node("RESIZE_NEAREST_NEIGHBOR", ("x", "size"), ("y",), options("ResizeNearestNeighbor", **fields))
        content = model(specs, [node], ["x"], ["y"])
        x = np.arange(extent).astype(dtype).reshape(1, 1, extent, 1)
        np.testing.assert_array_equal(execute(read_tflite(content), {"x": x})["y"], run_litert(content, [x])[0])


@pytest.mark.parametrize("kind", ["FLOOR_MOD", "FLOOR_DIV"])
@pytest.mark.parametrize("divisor", [70000, -70000])
def test_floors_of_numbers_whose_product_overflows(kind: str, divisor: int) -> None:
    x = np.array([-50000, 50000, -140000, 0, 2**31 - 1, -(2**31) + 1], np.int32)
    specs = [Spec("x", x.shape, "int32"), constant("b", divisor), Spec("y", x.shape, "int32")]
    made = options("FloorMod" if kind == "FLOOR_MOD" else "FloorDiv")
    content = model(specs, [Node(kind, ("x", "b"), ("y",), made)], ["x"], ["y"])
    np.testing.assert_array_equal(execute(read_tflite(content), {"x": x})["y"], run_litert(content, [x])[0])


# One number of a result, as LiteRT gives it on x86-64 and on aarch64 (Neoverse-N1).
PLATFORMS = [
    ("exp", INT16, 2, (0, 5, 15, 0), 7994, 7993),
    ("log", INT16, 12, (0, 0, 6, 0), 1541, 1542),
    ("rsqrt", INT16, 9, (0, 1, 1, 1), 25492, 25491),
    ("resize_bilinear", UINT8, 23, (0, 7, 12, 2), 81, 80),
]


@pytest.mark.parametrize(("name", "dtype", "seed", "at", "on_x86", "on_arm"), PLATFORMS)
def test_both_platforms_are_known(
    name: str, dtype: str, seed: int, at: tuple[int, ...], on_x86: int, on_arm: int
) -> None:
    """Whatever this machine is: we follow x86-64, and know what Arm makes of contracted products and sums."""
    _, network, values = drawn(name, dtype, seed)
    (output,) = network.outputs
    assert may_be_contracted(network)
    assert execute(network, values)[output][at] == on_x86
    with contracted():
        assert execute(network, values)[output][at] == on_arm


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("name", "dtype"), [key for key in CASES if key[1] != FLOAT])
def test_a_region_is_that_part_of_the_whole(name: str, dtype: str, seed: int) -> None:
    _, network, values = drawn(name, dtype, seed + 100)
    rng = np.random.default_rng(seed)
    everything = execute(network, values, keep=network.tensors) | values | dict(network.constants)
    for layer in network.layers:
        result = network.tensors[layer.output]
        for _ in range(4):
            cuts = [np.sort(rng.choice(size + 1, 2, replace=False)) for size in result.shape]
            out = Region(tuple((int(a), int(b)) for a, b in cuts))
            tensors = [network.tensors[i] for i in layer.inputs]
            needs = layer.op.needs(out, [tensor.shape for tensor in tensors])
            operands = [
                Operand(everything[tensor.name][need.slices], need, tensor)
                for tensor, need in zip(tensors, needs, strict=True)
            ]
            part = compute(layer.op, out, operands, result, Arithmetic.TFLITE)
            np.testing.assert_array_equal(part, everything[layer.output][out.slices])


def product_of_nothing(
    kind: str, dtype: str, sums: Array, scales: tuple[float, float, float], is_per_channel: bool = False
) -> bytes:
    """A layer whose weights are zero, so that its sums are the biases: any number can be rounded."""
    zero, count = (128 if dtype == UINT8 else 0), len(sums)
    is_flat, is_wide = kind == "FULLY_CONNECTED", dtype == INT16
    image, weights = ((1, 1), (count, 1)) if is_flat else ((1, 1, 1, 1), (count, 1, 1, 1))
    of_weights = (scales[1],) * (count if is_per_channel else 1)
    specs = [
        constant("size", [1, 1, 1, count]),
        Spec("x", image, dtype, scales[0], zero),
        constant("w", np.full(weights, zero), INT8 if is_wide else dtype, scale=of_weights, zero=zero),
        constant("b", sums, "int64" if is_wide else "int32", scale=tuple(scales[0] * s for s in of_weights)),
        Spec("y", image, dtype, scales[2], zero),
    ]
    names = {"TRANSPOSE_CONV": ("size", "w", "x", "b")}.get(kind, ("x", "w", "b"))
    made = {"CONV_2D": "Conv2D", "TRANSPOSE_CONV": "TransposeConv", "FULLY_CONNECTED": "FullyConnected"}[kind]
    fields = {} if is_flat else {"strideH": 1, "strideW": 1}
    return model(specs, [Node(kind, names, ("y",), options(made, **fields))], ["x"], ["y"])


PRODUCTS = [
    (kind, dtype) for kind in ("CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED") for dtype in (INT8, UINT8, INT16)
]


@pytest.mark.parametrize("ratio", [0.0113, 0.137, 0.26, 0.5, 0.76, 1 - 1e-7, 1.3])
@pytest.mark.parametrize(("kind", "dtype"), PRODUCTS)
def test_sums_are_rounded_as_litert_rounds_them(kind: str, dtype: str, ratio: float) -> None:
    """Convolutions round twice, fully connected layers once: 14.485 becomes 15 (by way of 14.5) or 14.

    With a ratio of 1/2 there are ties, below 0 too; just below 1 a multiplier of 15 bits has no room.
    """
    reach = int((30000 if dtype == INT16 else 130) / ratio)
    sums = np.unique(np.linspace(-reach, reach, 6000).astype(int))
    content = product_of_nothing(kind, dtype, sums, (0.5, 0.5, 0.25 / ratio))
    _same_as_litert(content)


@pytest.mark.parametrize(
    ("total", "scales"),
    [
        (-28678997, (0.0386, 0.00107, 23.0)),  # otherwise if the first two scales are multiplied in float32
        (-3465212, (0.091430776, 0.009550965, 37.59011)),  # otherwise if the multiplier has 31 bits
        (9221496, (0.0712079, 0.0016219837, 25.06035)),
    ],
)
@pytest.mark.parametrize(
    ("kind", "dtype", "is_per_channel"),
    [(*kind, many) for kind in PRODUCTS for many in (False, True) if not (many and kind[1] == UINT8)],
)
def test_scales_are_combined_as_litert_combines_them(
    kind: str, dtype: str, total: int, scales: tuple[float, float, float], is_per_channel: bool
) -> None:
    _same_as_litert(product_of_nothing(kind, dtype, np.array([total, 7]), scales, is_per_channel))


def _same_as_litert(content: bytes) -> None:
    network = read_tflite(content)
    tensor = network.tensors["x"]
    assert tensor.quant is not None
    x = np.full(tensor.shape, tensor.quant.zero[0], tensor.dtype.numpy)
    np.testing.assert_array_equal(execute(network, {"x": x})["y"], run_litert(content, [x])[0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*product(("ADD", "SUB", "MUL"), (INT8, UINT8)), ("SQUARED_DIFFERENCE", INT8)],
)
def test_all_pairs_of_bytes(kind: str, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    specs = [
        Spec(name, shape, dtype, float(np.float32(scale)), int(rng.integers(1, 100)))
        for name, shape, scale in zip(
            "aby",
            ((256, 1), (1, 256), (256, 256)),
            rng.uniform((0.01, 0.01, 0.02), (0.1, 0.1, 0.2)),
            strict=True,
        )
    ]
    made = options({"SQUARED_DIFFERENCE": "SquaredDifference"}.get(kind, kind.capitalize()))
    content = model(specs, [Node(kind, ("a", "b"), ("y",), made)], ["a", "b"], ["y"])
    info = np.iinfo(dtype)
    every = np.arange(info.min, info.max + 1).astype(dtype)
    a, b = every.reshape(256, 1), every.reshape(1, 256)
    np.testing.assert_array_equal(execute(read_tflite(content), {"a": a, "b": b})["y"], run_litert(content, [a, b])[0])


FUNCTIONS = [
    *product(("LOGISTIC", "TANH"), (INT8, UINT8, INT16)),
    *product(("GELU", "GELU tanh", "HARD_SWISH"), (INT8, UINT8)),
    *product(("EXP", "LOG", "RSQRT"), (INT8, INT16)),
    ("ELU", INT8),
]
FIXED = {  # outputs whose scale and zero point LiteRT prescribes
    ("LOGISTIC", INT8): (1 / 256, -128),
    ("LOGISTIC", UINT8): (1 / 256, 0),
    ("LOGISTIC", INT16): (1 / 32768, 0),
    ("TANH", INT16): (1 / 32768, 0),
}


@pytest.mark.parametrize(("kind", "dtype"), FUNCTIONS)
def test_functions_are_tabulated_in_float32(kind: str, dtype: str) -> None:
    """Every stored value, for many scales: near ties, float64 that is rounded at the end gives another step."""
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    info = np.iinfo(dtype)
    inputs = [quant(rng, dtype) for _ in range(40)]
    if dtype != INT16:  # sigmoid(71 * scale) * 256 is 213.49998
        inputs[0] = {"scale": 0.02273426204919815, "zero": -13 + (128 if dtype == UINT8 else 0)}
    for found in inputs:
        out = quant(rng, dtype, 0.002, 0.2)
        y = FIXED.get((kind, dtype), (out["scale"], out.get("zero", 0)))
        every = np.arange(0 if kind in ("LOG", "RSQRT") and dtype == INT16 else info.min, info.max + 1)
        if kind == "RSQRT":
            every = every[every >= found.get("zero", 0)]  # roots of negatives are undefined
        made = options("Gelu", approximate=kind == "GELU tanh") if kind.startswith("GELU") else None
        specs = [Spec("x", every.shape, dtype, **found), Spec("y", every.shape, dtype, *y)]
        content = model(specs, [Node(kind.split()[0], ("x",), ("y",), made)], ["x"], ["y"])
        x = every.astype(dtype)
        try:
            wanted = run_litert(content, [x])[0]
        except RuntimeError:
            assert kind == "HARD_SWISH"  # a ratio of scales that it refuses
            continue
        with as_litert_here():
            np.testing.assert_array_equal(execute(read_tflite(content), {"x": x})["y"], wanted)


def test_bilinear_places_drift_in_fixed_point() -> None:
    """7 / 1000 rows have 7.168 steps of 1/1024, rounded to 7: the last row lies 0.16 pixels from where it should."""
    made = options("ResizeBilinear", alignCorners=False, halfPixelCenters=False)
    specs = [
        Spec("x", (1, 7, 2, 1), INT8, 0.1),
        constant("size", [1000, 2]),
        Spec("y", (1, 1, 1, 1), INT8, 0.1),
    ]
    content = model(specs, [Node("RESIZE_BILINEAR", ("x", "size"), ("y",), made)], ["x"], ["y"])
    network = read_tflite(content)
    x = np.arange(14, dtype=np.int8).reshape(1, 7, 2, 1) * 9
    whole = execute(network, {"x": x})["y"]
    np.testing.assert_array_equal(whole, run_litert(content, [x])[0])
    layer, result = network.layers[0], network.tensors["y"]
    for row in range(1000):
        out = Region(((0, 1), (row, row + 1), (0, 2), (0, 1)))
        (need,) = layer.op.needs(out, [x.shape])
        operand = Operand(x[need.slices], need, network.tensors["x"])
        part = compute(layer.op, out, [operand], result, Arithmetic.TFLITE)
        np.testing.assert_array_equal(part, whole[out.slices])


def test_every_kernel_has_a_case() -> None:
    """A kernel that no case reaches would go unchecked."""
    seen = set()
    for name, dtype in CASES:
        if dtype != FLOAT:
            seen |= {type(layer.op) for layer in drawn(name, dtype, 0)[1].layers}
    assert seen == set(TFLITE)


def test_types_that_tflite_does_not_run() -> None:
    assert not has_tflite_kernel(Unary(UnaryKind.SIN), DType.INT8)
    assert not has_tflite_kernel(Unary(UnaryKind.HARD_SWISH), DType.INT16)
    assert has_tflite_kernel(Unary(UnaryKind.TANH), DType.INT16)
    assert needs_one_scale(Concat(1), DType.INT8)
    assert not needs_one_scale(Concat(1), DType.UINT8)
