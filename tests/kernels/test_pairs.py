"""Sums and products of two bytes in integers: the answers of the numpy kernels for every pair, at any scales."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from edgewright.kernels.requantise.pairs import pair_rule
from edgewright.network import Arithmetic, Array, Builder, DType, Network, Quant
from edgewright.network.operators import Binary, BinaryKind, Clamp
from tests.helpers.emitting_batch import check_together
from tests.helpers.on_board import check_on_board

KINDS = (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)
SCALES = ("any", "powers of two", "alike", "twice", "far apart", "gate")


def random_quants(rng: np.random.Generator, scales: str, dtype: DType) -> list[Quant]:
    """Of a, b and the result."""
    info = np.iinfo(dtype.numpy)
    zeros = [int(zero) for zero in rng.integers(info.min, info.max + 1, 3)]
    match scales:
        case "any":
            found = rng.uniform(0.02, 0.06, 3)
        case "powers of two":
            found = 2.0 ** rng.integers(-8, -3, 3)
        case "alike":
            found = np.full(3, rng.uniform(0.02, 0.06))
        case "twice":
            found = np.array([1, 1, 2]) * rng.uniform(0.02, 0.06)
        case "far apart":
            found = np.exp(rng.uniform(-8, 2, 3))
        case _:
            found, zeros[1] = np.array([rng.uniform(0.02, 0.06), 1 / 256, rng.uniform(0.02, 0.06)]), int(info.min)
    return [Quant.of(float(np.float32(s)), z) for s, z in zip(found, zeros, strict=True)]


def network_of_pairs(
    op: Binary, quants: list[Quant], dtype: DType, arithmetic: Arithmetic, shapes: tuple[tuple[int, ...], ...]
) -> Network:
    b = Builder("pairs", arithmetic)
    names = [b.input(name, shape, dtype, q) for name, shape, q in zip("ab", shapes, quants, strict=False)]
    return b.build([b.layer(op, names, "y", dtype=dtype, quant=quants[2])])


def every_pair(dtype: DType) -> dict[str, Array]:
    info = np.iinfo(dtype.numpy)
    every = np.arange(info.min, info.max + 1).astype(dtype.numpy)
    return {"a": every.reshape(256, 1), "b": every.reshape(1, 256)}


@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_in_c(kind: BinaryKind) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    networks, inputs = [], []
    for i, (scales, arithmetic) in enumerate(product(SCALES, (Arithmetic.ONNX, Arithmetic.QLINEAR))):
        dtype = (DType.INT8, DType.UINT8)[i % 4 // 2]
        op = Binary(kind, Clamp(0.0, 1.5) if i % 3 == 0 else None)
        quants = random_quants(rng, scales, dtype)
        networks.append(network_of_pairs(op, quants, dtype, arithmetic, ((256, 1), (1, 256))))
        inputs.append(every_pair(dtype))
    check_together(networks, inputs=inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_rules_are_found_for_ordinary_scales(kind: BinaryKind) -> None:
    """Or small cores would compute in software floats."""
    rng = np.random.default_rng(7)
    found = 0
    for i in range(20):
        dtype = (DType.INT8, DType.UINT8)[i % 2]
        a, b, y = random_quants(rng, ("any", "powers of two")[i // 10], dtype)
        found += pair_rule(Binary(kind), (dtype, a), (dtype, b), (dtype, y), Arithmetic.ONNX) is not None
    assert found >= 19


def test_two_types_meet() -> None:
    b = Builder("mixed")
    x = b.input("a", (256, 1), DType.INT8, Quant.of(0.031, 5))
    y = b.input("b", (1, 256), DType.UINT8, Quant.of(0.047, 131))
    network = b.build([b.layer(Binary(BinaryKind.ADD), [x, y], "y", dtype=DType.UINT8, quant=Quant.of(0.052, 99))])
    given = {"a": every_pair(DType.INT8)["a"], "b": every_pair(DType.UINT8)["b"]}
    check_together([network], inputs=[given])


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m0plus"])
def test_on_chips(target: str) -> None:
    """All of them in one library."""
    rng = np.random.default_rng(11)
    b = Builder("pairs")
    qa, qb, _ = random_quants(rng, "powers of two", DType.INT8)
    names = [b.input("a", (16, 64), DType.INT8, qa), b.input("b", (16, 64), DType.INT8, qb)]
    outputs = []
    for kind, scales in product(KINDS, ("any", "powers of two")):
        quant = random_quants(rng, scales, DType.INT8)[2]
        outputs.append(b.layer(Binary(kind), names, f"{kind.value}{len(outputs)}", dtype=DType.INT8, quant=quant))
    check_on_board(b.build(outputs), target)
