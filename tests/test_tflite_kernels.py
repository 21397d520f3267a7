"""Every TFLite operator in every type that LiteRT runs it in: read, computed, and compared with LiteRT itself.

Integers must agree bit for bit, real numbers to a few units in the last place of float32.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from edgewright.network import Arithmetic, Network, Region
from edgewright.network.kernels import Operand, compute, execute
from edgewright.network.kernels.tflite import TFLITE, has_tflite_kernel, needs_one_scale
from edgewright.network.operators import Concat, Unary, UnaryKind
from edgewright.network.tensor import DType
from edgewright.network.tflite import read_tflite
from tflite_cases import CASES, FLOAT, INT8, INT16, random_value
from tflite_models import Array, Node, Spec, constant, model, options, run_litert

SEEDS = range(6)

# LiteRT 2.3's reference kernels write nothing for a SUM of these types; the optimised ones round otherwise.
NOT_WRITTEN = {("sum_", INT8), ("sum_", INT16)}
# Its reference kernel leaves out the last channel of the window, unlike TensorFlow and its optimised kernel.
NOT_AS_DEFINED = {("local_response_normalization", FLOAT)}


def drawn(name: str, dtype: str, seed: int) -> tuple[bytes, Network, dict[str, Array]]:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    content = CASES[name, dtype](rng, dtype)
    network = read_tflite(content)
    low = 0 if name == "rsqrt" and dtype == INT16 else None  # roots of negatives are undefined
    values = {}
    for tensor in (network.tensors[i] for i in network.inputs):
        values[tensor.name] = random_value(rng, tensor.shape, tensor.dtype.value, low)
    return content, network, values


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_as_litert_computes_it(name: str, dtype: str, seed: int) -> None:
    content, network, values = drawn(name, dtype, seed)
    is_reference = (name, dtype) not in NOT_WRITTEN | NOT_AS_DEFINED
    expected = run_litert(content, list(values.values()), is_reference)
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


@pytest.mark.parametrize("seed", range(3))
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
