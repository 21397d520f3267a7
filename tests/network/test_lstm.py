"""TFLite's LSTM layers: real numbers, stored weights, and integers throughout, bit for bit as LiteRT computes them."""

from __future__ import annotations

import numpy as np
import pytest

from edgewright.errors import Unsupported
from edgewright.network import Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.network import Arithmetic
from edgewright.network.operators import LstmPart, LstmStep
from edgewright.network.passes import run as clean
from edgewright.network.reference import compare, reference
from edgewright.network.tflite import read_tflite
from tests.helpers.emitting import check_emitted, native
from tests.helpers.on_board import check_on_board
from tests.helpers.tflite_cases import lstm

Rng = np.random.default_rng
KINDS = ("float32", "dynamic", "asymmetric", "int8")


def read(content: bytes) -> Network:
    return clean(read_tflite(content))


@pytest.mark.parametrize("kind", KINDS)
def test_as_litert_computes_it(kind: str) -> None:
    for seed in range(10):
        content = lstm(kind, Rng(seed), -9 - seed % 7, seed % 2 == 1, 0.0 if seed % 3 else 0.11)
        network = read(content)
        truth = reference(content, network)
        for values in (random_inputs(network, i) for i in range(3)):
            verdict = compare(network, execute(network, values), truth.run(values))
            assert verdict.passes, (seed, verdict)


@pytest.mark.parametrize("kind", KINDS)
def test_emitted(kind: str) -> None:
    check_emitted(read(lstm(kind, Rng(3))), "host" if kind == "float32" else "cortex-m4")


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
def test_on_the_board(target: str) -> None:
    check_on_board(read(lstm("int8", Rng(4))), target)


@pytest.mark.parametrize("part", LstmPart)
def test_every_16_bit_number(part: LstmPart) -> None:
    """The functions of gates, and of cells of every scale, in C and in numpy."""
    for bits in (0, 3, 6):
        b = Builder("net", Arithmetic.TFLITE)
        gates = b.input("gates", (1 << 14, 16), DType.INT16, Quant.of(2.0**-12))
        cell = b.input("cell", (1 << 14, 4), DType.INT16, Quant.of(2.0 ** (bits - 15)))
        dtype, quant = (
            (DType.INT16, b.tensors[cell].quant) if part is LstmPart.CELL else (DType.INT8, Quant.of(0.01, 3))
        )
        network = b.build([b.layer(LstmStep(part), [gates, cell], "y", dtype=dtype, quant=quant)])
        every = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
        rng = np.random.default_rng(bits)
        values = {"gates": np.stack([rng.permutation(every) for _ in range(4)], 1).reshape(1 << 14, 4, 4)}
        values["gates"] = np.ascontiguousarray(values["gates"].transpose(0, 2, 1)).reshape(1 << 14, 16)
        values["cell"] = rng.permutation(every).reshape(1 << 14, 4)
        np.testing.assert_array_equal(native(network).run(values)["y"], execute(network, values)["y"])


def test_what_is_not_handled() -> None:
    with pytest.raises(Unsupported, match=r"the scale 1.52587890625e-05 of its cells is no power of two"):
        read_tflite(lstm("int8", Rng(1), -16))
