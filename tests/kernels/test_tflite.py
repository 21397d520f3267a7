"""Every operator of TFLite, in every type that it runs in, through emitted C: bit for bit as the numpy kernels."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from edgewright.emit import TARGETS, emit
from edgewright.emit.native import build
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant
from edgewright.network.kernels import execute
from edgewright.network.operators import (
    Clamp,
    LeakyRelu,
    LogSoftmax,
    PRelu,
    Quantize,
    Resize,
    ResizeMode,
    Softmax,
    Unary,
    UnaryKind,
)
from edgewright.network.tflite import read_tflite
from tests.helpers.emitting import WARNINGS, check_emitted
from tests.helpers.emitting_batch import agree, build_together, libraries
from tests.helpers.quantised_cases import cut_up
from tests.helpers.tflite_cases import CASES, INT16, random_value

TARGET_TURNS = ("host", "cortex-m4", "rv32imc")


def drawn(name: str, dtype: str, seed: int) -> tuple[Network, dict]:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    network = read_tflite(CASES[name, dtype](rng, dtype))
    low = 0 if name in ("rsqrt", "sqrt") and dtype == INT16 else None  # roots of negatives are undefined
    tensors = [network.tensors[i] for i in network.inputs]
    return network, {t.name: random_value(rng, t.shape, t.dtype.value, low) for t in tensors}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_every_operator(dtype: str, seed: int) -> None:
    """As planned, or each layer in parts."""
    drawings = [drawn(name, kind, seed + 10) for name, kind in CASES if kind == dtype]
    networks = [network for network, _ in drawings]
    plans = None
    if seed % 2:
        rng = np.random.default_rng(seed)
        plans = [cut_up(make_plan(network, plain=True), rng) for network in networks]
    for native, (network, values) in zip(
        build_together(libraries(networks, TARGET_TURNS, plans)), drawings, strict=True
    ):
        agree(network, native.run(values, poison=0x55), execute(network, values))


def one_layer(op, dtype: DType, quants: list[Quant], out: tuple[DType, Quant], shape=(2, 3, 5)) -> Network:
    b = Builder("layer", Arithmetic.TFLITE)
    names = [b.input(f"x{i}", shape, dtype, quant) for i, quant in enumerate(quants)]
    return b.build([b.layer(op, names, "y", dtype=out[0], quant=out[1])])


def code(network: Network) -> str:
    library = emit(make_plan(network), TARGETS["host"])
    return str(library.files[f"{library.name}.c"])


def test_a_table_that_is_a_clamp_is_written_as_one() -> None:
    quant = Quant.of(0.05, -3)
    relu = code(one_layer(Clamp(0.0, 6.0), DType.INT8, [quant], (DType.INT8, quant)))
    assert "between(-3, px[i0], 117)" in relu
    tanh = code(one_layer(Unary(UnaryKind.TANH), DType.INT8, [quant], (DType.INT8, Quant.of(1 / 128, 0))))
    assert "_c0[(uint8_t)px[i0]]" in tanh


def test_a_change_of_sign_alone_is_a_sum() -> None:
    network = one_layer(Quantize(), DType.UINT8, [Quant.of(0.1, 128)], (DType.INT8, Quant.of(0.1, 0)))
    assert "px[i0] - 128" in code(network)


def test_softmax_of_many_lines_and_sizes() -> None:
    """Lines of one element up to beyond what the exponent of the shares can hold; scales that saturate."""
    networks = [
        one_layer(op, dtype, [Quant.of(scale, 0)], (dtype, Quant.of(1 / 256, -128)), (3, size))
        for size, scale in ((1, 0.1), (2, 3.0), (17, 0.02), (1001, 0.3), (3000, 0.001))
        for op, dtype in ((Softmax(beta=1.5), DType.INT8), (Softmax(), DType.UINT8), (LogSoftmax(), DType.INT8))
    ]
    wide = DType.INT16, Quant.of(1 / 65536, -32768)
    networks += [one_layer(Softmax(), DType.INT8, [Quant.of(0.1, 5)], wide, (4, size)) for size in (1, 10, 500)]
    for i, native in enumerate(build_together(libraries(networks))):
        network = native.network
        x = network.tensors["x0"]
        values = {"x0": random_value(np.random.default_rng(i), x.shape, x.dtype.value)}
        agree(network, native.run(values), execute(network, values))


def test_every_16_bit_number() -> None:
    """All 65536 of them, through every function that has code of its own for 16 bits."""
    scales = [1 / 4096, 2 / 4096, 3e-4, 2e-3]
    ops = [Unary(kind) for kind in (UnaryKind.SIGMOID, UnaryKind.TANH, UnaryKind.EXP, UnaryKind.ABS)]
    networks = [
        one_layer(op, DType.INT16, [Quant.of(scale)], (DType.INT16, Quant.of(1 / 32768)), (65536,))
        for op in [*ops, LeakyRelu(0.1), Clamp(-0.5, 0.75)]
        for scale in scales
    ]
    every = np.arange(-32768, 32768).astype(np.int16)
    for native in build_together(libraries(networks)):
        agree(native.network, native.run({"x0": every}), execute(native.network, {"x0": every}))


def test_every_slope_of_every_byte() -> None:
    every = np.arange(-128, 128).astype(np.int8)
    quants = [Quant.of(0.05, 9), Quant.of(0.01, -7)]
    network = one_layer(PRelu(), DType.INT8, quants, (DType.INT8, Quant.of(0.03, 5)), (256, 256))
    values = {"x0": np.repeat(every, 256).reshape(256, 256), "x1": np.tile(every, (256, 1))}
    native = build(emit(make_plan(network), TARGETS["host"]), flags=WARNINGS)
    agree(network, native.run(values), execute(network, values))


def test_real_numbers_at_ties_and_beyond_every_range() -> None:
    b = Builder("layer", Arithmetic.TFLITE)
    x = b.input("x", (10,))
    network = b.build([b.layer(Quantize(), [x], "y", dtype=DType.INT8, quant=Quant.of(0.5, 3))])
    values = {"x": np.array([0.25, -0.25, 0.75, 1e30, -1e30, np.inf, -np.inf, 0.24999999, 63.9, -0.0], np.float32)}
    native = build(emit(make_plan(network), TARGETS["host"]), flags=WARNINGS)
    np.testing.assert_array_equal(native.run(values)["y"], execute(network, values)["y"])


@pytest.mark.parametrize("mode", [ResizeMode.NEAREST, ResizeMode.LINEAR])
def test_a_line_longer_than_16_bits_count_is_resized(mode: ResizeMode) -> None:
    b, quant = Builder("long", Arithmetic.TFLITE), Quant.of(0.05, -3)
    b.input("x", (1, 1, 40_000, 1), DType.INT8, quant)
    check_emitted(b.build([b.layer(Resize((1, 20_000), mode), ["x"], "y", dtype=DType.INT8, quant=quant)]), "rv32imc")
