"""Additions, pooling and means for microcontrollers, against the numpy kernels."""

from __future__ import annotations

import numpy as np
import pytest

from edgewright.emit import TARGETS, emit
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant
from edgewright.network.operators import AvgPool2d, Binary, BinaryKind, Clamp, MaxPool2d, Op, Reduce
from tests.helpers.emitting import check_emitted
from tests.helpers.on_board import check_on_board


def added(scales: tuple[float, float, float], zeros: tuple[int, int, int], relu: bool = False) -> Network:
    """Two inputs, their sum, and a sum with a tensor computed on the way, so that memory is shared."""
    b = Builder("added", Arithmetic.TFLITE)
    shape = (1, 16, 16, 16)
    quants = [Quant.of(s, z) for s, z in zip(scales, zeros, strict=True)]
    x = b.input("x", shape, DType.INT8, quants[0])
    y = b.input("y", shape, DType.INT8, quants[1])
    op = Binary(BinaryKind.ADD, Clamp(0.0) if relu else None)
    return b.build([b.layer(op, [x, y], "sum", dtype=DType.INT8, quant=quants[2])])


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
@pytest.mark.parametrize("seed", range(6))
def test_sums_are_exact_for_all_pairs(seed: int, target: str) -> None:
    rng = np.random.default_rng(seed)
    scales = tuple(float(np.float32(s)) for s in np.exp(rng.uniform(np.log(0.004), np.log(0.1), 3)))
    if seed == 0:
        scales = (scales[0], scales[0], scales[0])
    zeros = tuple(int(z) for z in rng.integers(-128, 128, 3))
    network = added(scales, zeros, relu=seed % 2 == 1)
    assert "added_add_int8(" in str(emit(make_plan(network), TARGETS[target], network).files["added.c"])
    check_emitted(network, target, seeds=16)


def pooled(op: Op, arithmetic: Arithmetic, channels: int, same: bool = True) -> Network:
    """The operator between two others, so that memory is shared."""
    b = Builder("pooled", arithmetic)
    quant = Quant.of(0.05, 7)
    x = b.input("x", (1, 9, 11, channels), DType.INT8, quant)
    x = b.layer(MaxPool2d((1, 1)), [x], "first", dtype=DType.INT8, quant=quant)
    y = b.layer(op, [x], "pool", dtype=DType.INT8, quant=quant if same else Quant.of(0.02, -11))
    return b.build([y])


POOLS = {
    "average": (AvgPool2d((3, 2), (2, 1), pads=(1, 0, 1, 1)), "average"),
    "clamped": (AvgPool2d((2, 2), (1, 1), activation=Clamp(0.0, 1.0)), "average"),
    "global": (AvgPool2d((9, 11)), "average"),
    "mean": (Reduce((1, 2), keep=False), "mean"),
    "kept mean": (Reduce((2, 1)), "mean"),
    "max": (MaxPool2d((3, 3), (2, 2), pads=(0, 1, 1, 1)), "max"),
    "clamped max": (MaxPool2d((2, 3), (1, 1), activation=Clamp(0.0, 6.0)), "max"),
}


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
@pytest.mark.parametrize("name", POOLS)
def test_pools_are_exact(name: str, target: str) -> None:
    op, kind = POOLS[name]
    for arithmetic in (Arithmetic.TFLITE, Arithmetic.ONNX):
        network = pooled(op, arithmetic, 7, same=not isinstance(op, Reduce))
        check_emitted(network, target)
        text = str(emit(make_plan(network), TARGETS[target], network).files["pooled.c"])
        assert (f"pooled_pool_{kind}(" in text) == (arithmetic is Arithmetic.TFLITE or kind == "max")


def test_instructions_of_the_chip_give_the_same() -> None:
    """What is written for the Arm alone, on an emulated one."""
    network = pooled(POOLS["average"][0], Arithmetic.TFLITE, 12)
    largest = pooled(POOLS["max"][0], Arithmetic.TFLITE, 12)
    for made in (network, largest, added((0.02, 0.05, 0.06), (3, -9, 5))):
        check_on_board(made)
