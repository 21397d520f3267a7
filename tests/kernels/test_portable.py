"""int8 products in plain C: all arithmetics, all ways through memory, against the numpy kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import measure
from edgewright.kernels.requantise.multipliers import Rule, fit_even
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Clamp, Conv2d, Dense
from tests.helpers.emitting import WARNINGS, check_emitted, native
from tests.helpers.emitting_batch import check_together
from tests.helpers.emitting_cases import plans
from tests.helpers.tools import needs_board
from tests.kernels.fixed_point import even_stored, is_near_tie
from tests.kernels.product_chains import chain

BATCH = 6  # networks in one call of the compiler


def pointwise(depth: int, channels: int, size: int = 6, kernel: int = 1) -> Network:
    rng = np.random.default_rng(depth)
    b = Builder("pointwise", Arithmetic.TFLITE)
    x = b.input("x", (1, size, size, depth), DType.INT8, Quant.of(0.05, -3))
    w = b.constant("w", rng.integers(-127, 128, (channels, kernel, kernel, depth)).astype(np.int8), Quant.of(0.004))
    y = b.layer(
        Conv2d(pads=(kernel // 2,) * 4, activation=Clamp(0.0)),
        [x, w],
        "y",
        dtype=DType.INT8,
        quant=Quant.of(0.1, -128),
    )
    return b.build([y])


def text_of(network: Network, target: str = "rv32imc") -> str:
    library = emit(make_plan(network), TARGETS[target], network)
    return str(library.files[f"{library.name}.c"])


@settings(max_examples=2, phases=[Phase.generate])  # to shrink a batch of networks takes minutes
@given(data=st.data(), seed=st.integers(0, 1 << 20))
def test_chains_of_products_are_exact(data, seed):
    networks = [chain(seed + i) for i in range(BATCH)]
    check_together(networks, ["rv32imc", "cortex-m0plus"], [data.draw(plans(network)) for network in networks])


def test_the_code_for_few_registers_is_exact():
    flags = [*WARNINGS, *(f"-DN{i}_FEW_REGISTERS=1" for i in range(BATCH))]
    check_together([chain(seed) for seed in range(BATCH)], ["cortex-m0plus"], flags=flags)


def unequal(low: float, depth: int, channels: int = 8) -> Network:
    """A convolution and a dense layer whose channels have scales far apart: no multipliers of 32 bits are exact."""
    rng = np.random.default_rng(depth)
    scales = tuple(float(scale) for scale in 0.02 / np.geomspace(1, 4000, channels))
    b = Builder("unequal", Arithmetic.TFLITE)
    y = b.input("x", (1, 3, 3, depth), DType.INT8, Quant.of(0.05, -3))
    for name, shape, op in (
        ("conv", (channels, 1, 1, depth), Conv2d(activation=Clamp(low))),
        ("dense", (channels, channels), Dense(activation=Clamp(low))),
    ):
        w = b.constant(f"{name}.w", rng.integers(-127, 128, shape).astype(np.int8), Quant(scales, (0,) * channels, 0))
        bias = b.constant(f"{name}.b", rng.integers(-9000, 9000, channels).astype(np.int32))
        y = b.layer(op, [y, w, bias], name, dtype=DType.INT8, quant=Quant.of(0.07, -128 if low == 0 else 5))
    return b.build([y])


@pytest.mark.parametrize("low", [0.0, -3.0])
def test_multipliers_of_more_than_32_bits_keep_their_kernels(low):
    networks = [unequal(low, depth) for depth in (64, 99, 250)]
    wide = [emit(make_plan(network), TARGETS["rv32imc"], network) for network in networks]
    assert all("IS_WIDE(p) ((p).shift" in str(one.files[f"{one.name}_kernels.h"]) for one in wide)
    assert all("_portable_pairs(" in str(one.files[f"{one.name}.c"]) for one in wide)
    check_together(networks, ["rv32imc", "cortex-m0plus"])
    check_together(networks, ["cortex-m0plus"], flags=[*WARNINGS, *(f"-DN{i}_FEW_REGISTERS=1" for i in range(3))])


def halves(depth: int, channels: int, dtype: DType) -> Network:
    """A convolution and dense layers whose float products often lie just between two steps."""
    rng = np.random.default_rng(depth)
    b = Builder("halves", Arithmetic.ONNX)
    low = 0 if dtype is DType.UINT8 else -128
    y = b.input("x", (1, 3, 5, depth), dtype, Quant.of(0.5, low + 125))
    for name, shape, op in (
        ("conv", (channels, 3, 3, depth), Conv2d(pads=(1, 1, 1, 1))),
        ("dense", (channels + 16, channels), Dense(activation=Clamp(0.0))),
        ("few", (3, channels + 16), Dense()),
    ):
        scales = tuple(float(scale) for scale in 1 / rng.integers(3, 9, shape[0]))
        w = b.constant(f"{name}.w", rng.integers(-127, 128, shape).astype(np.int8), Quant(scales, (0,) * shape[0], 0))
        bias = b.constant(f"{name}.b", rng.integers(-900, 900, shape[0]).astype(np.int32))
        y = b.layer(op, [y, w, bias], name, dtype=dtype, quant=Quant.of(30.0, low + 100))
    return b.build([y])


def test_float_products_that_round_to_even_numbers_keep_their_kernels():
    networks = [halves(depth, channels, dtype) for depth, channels, dtype in
                ((5, 8, DType.INT8), (4, 7, DType.INT8), (7, 12, DType.UINT8))]  # fmt: skip
    made = [emit(make_plan(network), TARGETS["rv32imc"], network) for network in networks]
    assert all("IS_EVEN(p) ((p).shift" in str(one.files[f"{one.name}_kernels.h"]) for one in made)
    assert all("_portable_pairs(" in str(one.files[f"{one.name}.c"]) for one in made[::2])
    check_together(networks, ["rv32imc", "cortex-m0plus", "cortex-m55"])
    check_together(networks, ["cortex-m0plus"], flags=[*WARNINGS, *(f"-DN{i}_FEW_REGISTERS=1" for i in range(3))])


@pytest.mark.parametrize("target", ["rv32imc", "cortex-m55"])
def test_chips_round_float_products_alike(target):
    needs_board(target)
    network = halves(5, 7, DType.INT8)
    inputs = random_inputs(network, 0)
    measured = measure(emit(make_plan(network), TARGETS[target], network), inputs)
    np.testing.assert_array_equal(measured.outputs["few"], execute(network, inputs)["few"])


@given(
    st.lists(st.floats(2**-13, 0.875, width=32) | st.integers(1, 60).map(lambda n: n / 64), min_size=1, max_size=3),
    st.integers(-128, 127),
    st.integers(0, 20000),
)
def test_integers_and_float_products_agree_but_near_ties(scales, zero, last):
    factors = np.array(scales, np.float32)

    def stored(sums: np.ndarray) -> np.ndarray:
        return np.clip(np.rint(sums.astype(np.float32) * factors[:, None]) + zero, -128, 127).astype(np.int64)

    ends = np.full(len(factors), -20000), np.full(len(factors), last)
    even = fit_even(Rule(stored, -128, 127, *ends, factors.astype(np.float64)))
    assert even is not None or factors.max() / factors.min() > 100
    if even is not None:
        every = np.repeat(np.arange(-20000, last + 1)[None], len(factors), axis=0)
        is_far = ~is_near_tie(even, every)
        np.testing.assert_array_equal(even_stored(even, every, zero, -128, 127)[is_far], stored(every)[is_far])
        odd = 2 * np.abs(every * factors[:, None].astype(np.float64)) % 2 == 1
        assert not (odd & is_far & (np.abs(every * factors[:, None]) < 255)).any(), "a tie is near itself"


def test_columns_fall_back_on_the_stack_and_on_one_pixel():
    """A layer alone leaves no hole in the arena."""
    some, more, most, one = pointwise(16, 8), pointwise(145, 8), pointwise(16, 6), pointwise(300, 8)
    assert "int32_t columns[32]" in text_of(some) and "int8_t columns[64]" in text_of(most)
    assert "int8_t columns[64]" in text_of(some, "cortex-m0plus") and "int8_t columns[580]" in text_of(more)
    assert "int8_t columns[300]" in text_of(one) and "int8_t columns[145]" in text_of(more, "cortex-m0plus")
    for network in (some, more, most, one):
        check_emitted(network, "rv32imc")
    assert "portable" not in text_of(pointwise(1200, 4)), "more stack than we take"


@pytest.mark.parametrize("depth", [1, 2, 7])
@pytest.mark.parametrize("weight", [-128, 127])
def test_two_products_in_one_at_their_extremes(depth, weight):
    """Every mixture of the least and the greatest input: halves of a product must not reach into each other."""
    w = np.full((4, 1, 1, depth), weight, np.int8)
    w[1, ..., ::2], w[2, ..., ::2] = 127, -128
    network = extremes(w)
    library = native(network, "rv32imc")
    for seed in range(6):
        values = np.random.default_rng(seed).choice([-128, 127], (1, 3, 5, depth)).astype(np.int8)
        inputs = {"x": np.full_like(values, -128 if seed else 127) if seed < 2 else values}
        np.testing.assert_array_equal(library.run(inputs)["y"], execute(network, inputs)["y"])


def extremes(weights: np.ndarray) -> Network:
    b = Builder("ends", Arithmetic.ONNX)
    x = b.input("x", (1, 3, 5, weights.shape[3]), DType.INT8, Quant.of(0.05, 0))
    w = b.constant("w", weights, Quant.of(0.01))
    return b.build([b.layer(Conv2d(), [x, w], "y", dtype=DType.INT8, quant=Quant.of(0.5 * weights.shape[3], 3))])


def test_sums_at_the_ends_of_their_range():
    """Inputs and weights at their extremes: the sum is as large as the proof assumes."""
    b = Builder("ends", Arithmetic.TFLITE)
    x = b.input("x", (1, 300), DType.INT8, Quant.of(0.05, -128))
    w = b.constant("w", np.stack([np.full(300, 127), np.full(300, -127)]).astype(np.int8), Quant.of(0.01))
    network = b.build([b.layer(Dense(), [x, w], "y", dtype=DType.INT8, quant=Quant.of(20.0, 3))])
    library = native(network, "rv32imc")
    for value in (-128, 127):
        inputs = {"x": np.full((1, 300), value, np.int8)}
        np.testing.assert_array_equal(library.run(inputs)["y"], execute(network, inputs)["y"])


@pytest.mark.parametrize(
    ("network", "most"), [(pointwise(128, 64), 2.6), (pointwise(8, 16, 12), 5.6), (pointwise(4, 16, 12, 3), 3.8)]
)
def test_instructions_per_product_on_rv32(network, most):
    needs_board("rv32imc")
    inputs = random_inputs(network, 0)
    measured = measure(emit(make_plan(network), TARGETS["rv32imc"], network), inputs)
    np.testing.assert_array_equal(measured.outputs["y"], execute(network, inputs)["y"])
    assert measured.instructions / network.total_macs < most * (1 if "gcc" in measured.compiler else 1.2)
    assert measured.flash_code < 3500
