"""Layers in parts: what becomes of tiles in C, and that it does what the whole layer does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.emit import TARGETS, emit
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import BETWEEN_PARTS, Clamp, Conv2d, Custom, Op
from edgewright.program import Plan, Split
from tests.helpers.emitting_batch import agree, build_together, check_together, libraries
from tests.helpers.emitting_cases import FEW, single_layers


def layer(kind: str, dtype: str, seed: int = 0, size: tuple[int, int, int] = (12, 16, 16)) -> Network:
    """A convolution, a depthwise or a pointwise one."""
    rng, channels = np.random.default_rng(seed), size[2]
    groups, kernel = (channels if kind == "depthwise" else 1), (1, 1) if kind == "pointwise" else (3, 3)
    shape = (channels, *kernel, channels // groups)
    op = Conv2d(groups=groups, pads=(0, 0, 0, 0) if kind == "pointwise" else (1, 1, 1, 1), activation=Clamp(0.0, 6.0))
    if dtype == "float32":
        b = Builder("net")
        x = b.input("x", (1, *size))
        w = b.constant("w", rng.normal(size=shape).astype(np.float32))
        return b.build([b.layer(op, [x, w], "y")])
    b = Builder("net", Arithmetic.TFLITE)
    x = b.input("x", (1, *size), DType.INT8, Quant.of(0.05, -10))
    scales = tuple(float(np.float32(s)) for s in rng.uniform(0.002, 0.01, channels))
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    w = b.constant("w", weights, Quant(scales, (0,) * channels, 0))
    bias = b.constant("b", rng.integers(-3000, 3000, channels).astype(np.int32))
    return b.build([b.layer(op, [x, w, bias], "y", dtype=DType.INT8, quant=Quant.of(6 / 255, -128))])


def tiled(network: Network, axis: int, ends: Sequence[int]) -> Plan:
    """Each layer's output in these parts."""
    plan = make_plan(network, plain=True)
    splits = (Split(axis, tuple(ends)),)
    stages = tuple(replace(x, schedule=replace(x.schedule, splits=splits)) for x in plan.program.stages)
    return replace(plan, program=replace(plan.program, stages=stages))


KINDS = ("conv", "depthwise", "pointwise")
CUTS = [
    (1, (4, 8, 12)),
    (-1, (5, 10, 15, 16)),
    (2, (5, 10, 15, 16)),
    (-1, (4, 8, 12, 16)),
    (1, (1, 12)),
    (2, (8, 16)),
]


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_layers_in_parts_are_loops_and_exact(dtype):
    kinds, turn = [(kind, target) for kind in KINDS for target in ("host", "cortex-m4")], int(dtype == "int8")
    cases = [(*kinds[i], CUTS[(i + turn) % 6]) for i in range(6)]
    networks = [layer(kind, dtype) for kind, _, _ in cases]
    plans = [tiled(network, *cut) for network, (_, _, cut) in zip(networks, cases, strict=True)]
    made = libraries(networks, [target for _, target, _ in cases], plans)
    for case, library in zip(cases, made, strict=True):
        assert len(case[2][1]) < 3 or "for (int32_t tile = 0" in str(library.files[f"{library.name}.c"]), case
    for network, native in zip(networks, build_together(made), strict=True):
        values = random_inputs(network, 1)
        agree(network, native.run(values, poison=0x55), execute(network, values))


@FEW
@given(st.data())
@pytest.mark.parametrize("quantised", [False, True])
def test_every_operator_in_parts(quantised, data):
    """Whatever an emitter writes: its parts as loops give what the whole gives, and no compiler complains."""
    networks, plans, inputs = [], [], []
    for kind in [kind for kind in get_args(Op) if kind not in (Custom, *BETWEEN_PARTS)]:
        network, values = data.draw(single_layers(kind, quantised))
        output = network.tensors[network.outputs[0]].shape
        if not output or network.outputs[0] not in {layer.output for layer in network.layers}:
            continue
        axis = data.draw(st.integers(0, len(output) - 1))
        size = data.draw(st.integers(1, max(1, output[axis] // 2)))
        ends = [*range(size, output[axis], size), output[axis]]
        networks.append(network)
        plans.append(tiled(network, axis, ends))
        inputs.append(dict(values))
    check_together(networks, plans=plans, inputs=inputs)


def test_clang_is_content_too():
    networks = [layer(kind, "int8") for kind in KINDS]
    plans = [tiled(network, -1, (5, 10, 15, 16)) for network in networks]
    build_together(libraries(networks, ["cortex-m4"], plans), cc="clang")


def test_loops_are_smaller_than_copies():
    """Lines of the schedule do not grow with the parts."""
    network = layer("conv", "float32")
    few, many = (
        emit(tiled(network, 2, range(step, 17, step)), TARGETS["cortex-m4"], network).files["net.c"] for step in (4, 1)
    )
    lines = [str(text).split("net_run_in")[1].count("\n") for text in (few, many)]
    assert lines[0] == lines[1]
