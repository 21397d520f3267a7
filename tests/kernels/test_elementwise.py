"""Element by element, emitted as C: what the numpy kernels give, in any type, from anywhere, in parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.memory import plan as make_plan
from edgewright.network import Array, Builder, DType, Network, Quant
from edgewright.network.kernels import execute
from edgewright.network.onnx_writer import to_onnx
from edgewright.network.operators import (
    BatchNorm,
    Binary,
    BinaryKind,
    Cast,
    Clamp,
    Compare,
    CompareKind,
    Dequantize,
    Elu,
    HardSigmoid,
    LeakyRelu,
    Op,
    PRelu,
    Quantize,
    Select,
    Unary,
    UnaryKind,
)
from edgewright.network.reference import reference
from tests.helpers.emitting import check_emitted, native
from tests.helpers.emitting_batch import check_together
from tests.helpers.emitting_cases import FEW, check_layers

KINDS = (Clamp, LeakyRelu, Elu, HardSigmoid, Unary, PRelu, Binary, BatchNorm, Cast)
CHOICES = (Compare, Select)  # on what is stored
CONVERSIONS = (Quantize, Dequantize)


@FEW
@given(st.data())
def test_floats(data: st.DataObject) -> None:
    check_layers(data, (*KINDS, *CHOICES), quantised=False)


@FEW
@given(st.data())
def test_quantised_as_onnxruntime_computes(data: st.DataObject) -> None:
    check_layers(data, (*KINDS, *CONVERSIONS), quantised=True)


INTEGERS = (DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64)


def one_layer(op: Op, dtypes: Sequence[DType], result: DType) -> Network:
    b = Builder("layer")
    names = [b.input(f"x{i}", (2, 3, 5), dtype) for i, dtype in enumerate(dtypes)]
    return b.build([b.layer(op, names, "y", dtype=result)])


def test_every_function_of_one_number_in_both_float_types() -> None:
    kinds = [Unary(kind) for kind in UnaryKind] + [Clamp(0.0), LeakyRelu(), Elu(2.0, 1.5), HardSigmoid()]
    types = (DType.FLOAT32, DType.FLOAT16)
    check_together([one_layer(op, [dtype], dtype) for op in kinds for dtype in types])


def test_every_activation_folded_into_arithmetic() -> None:
    kinds = [Unary(kind) for kind in UnaryKind] + [Clamp(-1.0, 1.0), LeakyRelu(), Elu(2.0, 1.5), HardSigmoid()]
    dtypes = [DType.FLOAT32] * 2
    layers = [Binary(BinaryKind.MUL, activation) for activation in kinds]
    check_together([one_layer(op, dtypes, DType.FLOAT32) for op in layers])


def test_plain_integers_of_every_size() -> None:
    """They wrap as numpy's do."""
    unary = [Unary(kind) for kind in (UnaryKind.ABS, UnaryKind.NEG, UnaryKind.SIGN, UnaryKind.SQUARE)]
    singles = [*unary, Clamp(-3.0, 7.0), Clamp(high=2.0)]
    # A power of a negative number is left to floats, and so is one that 64 bits cannot hold.
    doubles = [Binary(kind) for kind in BinaryKind if kind is not BinaryKind.POW]
    doubles += [Binary(BinaryKind.ADD, Clamp(0.0, 50.0)), Binary(BinaryKind.SUB, Unary(UnaryKind.ABS))]
    networks = [one_layer(op, [dtype], dtype) for op in singles for dtype in INTEGERS]
    networks += [one_layer(op, [dtype] * 2, dtype) for op in doubles for dtype in INTEGERS]
    networks += [one_layer(Binary(BinaryKind.POW), [DType.INT32] * 2, DType.INT64)]
    inputs = [extreme(network, seed) for seed, network in enumerate(networks)]
    inputs[-1] = {"x0": np.full((2, 3, 5), -3, np.int32), "x1": np.arange(30, dtype=np.int32).reshape(2, 3, 5)}
    check_together(networks, inputs=inputs)


def extreme(network: Network, seed: int) -> dict[str, Array]:
    """Values up to the limits of the type, and no divisor that is 0."""
    rng = np.random.default_rng(seed)
    values = {}
    for name in network.inputs:
        info = np.iinfo(network.tensors[name].dtype.numpy)
        value = rng.integers(info.min, info.max, (2, 3, 5), info.dtype, endpoint=True)
        value.flat[:3] = (info.min, info.max, 1)
        values[name] = np.where(value == 0, info.dtype.type(1), value)
    return values


def test_comparisons_and_choices_of_every_type() -> None:
    types = [dtype for dtype in DType if dtype is not DType.BOOL]
    kinds = [kind for kind in CompareKind if kind not in (CompareKind.AND, CompareKind.OR)]
    pairs = [(kind, types[i % len(types)]) for i, kind in enumerate(kinds * 2)]
    networks = [one_layer(Compare(kind), [dtype] * 2, DType.BOOL) for kind, dtype in pairs]
    networks += [one_layer(Compare(kind), [DType.BOOL] * 2, DType.BOOL) for kind in (CompareKind.AND, CompareKind.OR)]
    networks += [one_layer(Select(), [DType.BOOL, dtype, dtype], dtype) for dtype in DType]
    check_together(networks)


def test_casts_between_all_types() -> None:
    pairs = [(a, b) for a in DType for b in DType]
    check_together([one_layer(Cast(b), [a], b) for a, b in pairs])


OUTSIDE = {  # what becomes of real numbers that the type does not hold, on whatever processor
    DType.UINT8: (0, 255, 255, 44, 127, 0, 255, 255, 0, 0),
    DType.INT8: (0, -1, -1, 44, 127, 0, -1, -1, 0, 0),
    DType.INT16: (0, -1, 255, 300, -129, 0, -1, -1, 0, 0),
    DType.INT32: (0, -1, 255, 300, -129, -(2**31), 2**31 - 1, 2**31 - 1, -(2**31), -(2**31)),
    DType.INT64: (0, -1, 255, 300, -129, -3 * 10**9, 3 * 10**9, 2**63 - 1, -(2**63), -(2**63)),
}


@pytest.mark.parametrize("dtype", OUTSIDE)
def test_a_cast_of_what_no_integer_holds_is_defined(dtype: DType) -> None:
    """Cut towards zero, kept within int32 (or int64), then the lowest bits: in C, in the kernels, in constants."""
    numbers = [-0.9, -1.5, 255.5, 300, -129, -3e9, 3e9, np.inf, -np.inf, np.nan]
    x = np.array(numbers * 3, np.float32).reshape(2, 3, 5)
    expected = np.array(OUTSIDE[dtype] * 3, dtype.numpy).reshape(x.shape)
    network = one_layer(Cast(dtype), [DType.FLOAT32], dtype)
    np.testing.assert_array_equal(native(network).run({"x0": x})["y"], expected)
    np.testing.assert_array_equal(execute(network, {"x0": x})["y"], expected)
    # Within the range of int32 onnxruntime does the same; on Arm the last few bytes come out otherwise if negative.
    held = (np.abs(x) < 2**31) & ((x > -1) | (dtype is not DType.UINT8))
    content = to_onnx(network).SerializeToString()
    np.testing.assert_array_equal(reference(content, network).run({"x0": x})["y"][held], expected[held])


def test_a_scale_for_each_channel() -> None:
    b = Builder("layer")
    quant = Quant((0.1, 0.2, 0.3, 0.4, 0.5), (1, -2, 3, 0, 5), 2)
    real = b.layer(Dequantize(), [b.input("x0", (2, 3, 5), DType.INT8, quant)], "real", dtype=DType.FLOAT32)
    again = b.layer(Quantize(), [real], "again", dtype=DType.INT16, quant=Quant((0.5, 0.25, 1.5), (3, 0, -7), 1))
    network = b.build([real, again])
    check_emitted(network)
    check_emitted(network, plan=make_plan(network, plain=True))
