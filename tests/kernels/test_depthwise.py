"""Depthwise convolutions for microcontrollers: both families, all ways through memory, against the numpy kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgewright.emit import TARGETS, emit
from edgewright.emit.native import build
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.operators import Clamp, Conv2d
from edgewright.program import Program, Split
from tests.helpers.emitting import WARNINGS, check_emitted
from tests.helpers.emitting_cases import parts_of, split_stage
from tests.helpers.on_board import check_on_board
from tests.helpers.parameters import each_once

RELU6 = Clamp(0.0, 6.0)


def chain(*layers: dict, shape=(1, 9, 7, 5), arithmetic=Arithmetic.TFLITE, dtype=DType.INT8, seed=0) -> Network:
    """Depthwise layers one after the other; each is given as keywords of Conv2d plus kernel, times and scale."""
    rng = np.random.default_rng(seed)
    b = Builder("chain", arithmetic)
    low = np.iinfo(dtype.numpy).min
    x = b.input("x", shape, dtype, Quant.of(0.05, low + 120))
    for i, fields in enumerate(layers):
        fields = dict(fields)
        kernel, times = fields.pop("kernel", (3, 3)), fields.pop("times", 1)
        scale, zero = fields.pop("scale", 6 / 255), fields.pop("zero", 0)
        spread = fields.pop("spread", (0.002, 0.01))  # of the weights' scales
        depth = b.shape(x)[3]
        w = rng.integers(-127, 128, (depth * times, *kernel, 1)).astype(np.int8)
        scales = tuple(float(np.float32(s)) for s in np.exp(rng.uniform(*np.log(spread), depth * times)))
        bias = rng.integers(-3000, 3000, depth * times).astype(np.int32)
        op = Conv2d(groups=depth, **fields)
        names = [x, b.constant("w", w, Quant(scales, (0,) * len(scales), 0)), b.constant("b", bias)]
        x = b.layer(op, names, f"dw{i}", dtype=dtype, quant=Quant.of(scale, low + zero))
    return b.build([x])


SAME = {"pads": (1, 1, 1, 1), "activation": RELU6}
HALF = {"pads": (0, 0, 1, 1), "stride": (2, 2), "activation": RELU6}
CASES = {
    "in place": (SAME, SAME, SAME),
    "halved": (SAME, HALF, SAME),
    "halved twice": (HALF, HALF),
    "not clamped": ({"pads": (1, 1, 1, 1), "zero": 131}, {"pads": (1, 1, 1, 1), "zero": 90, "scale": 0.4}),
    "narrow range": ({**SAME, "scale": 0.05, "zero": 20}, {**HALF, "scale": 0.05, "zero": 20}),
    "5x5": ({"kernel": (5, 5), "pads": (2, 2, 2, 2), "activation": RELU6}, SAME),
    "odd kernels": ({"kernel": (2, 3), "pads": (1, 0, 0, 0)}, {"kernel": (1, 4), "stride": (1, 2)}),
    "dilated": ({"dilation": (2, 2), "pads": (2, 2, 2, 2), "activation": RELU6}, {"dilation": (1, 2)}),
    "multiplied": ({**SAME, "times": 3}, {**HALF, "times": 2}),
    "cropped": ({"pads": (-1, 2, 1, -1), "activation": RELU6}, {"pads": (2, -1, -1, 2), "stride": (1, 2)}),
    "scales far apart": ({"kernel": (7, 7), "pads": (3, 3, 3, 3), "activation": RELU6, "spread": (1e-7, 0.05)},),
    "high stride": ({"stride": (4, 3), "pads": (1, 1, 1, 1)},),
}


@pytest.mark.parametrize(("name", "target"), each_once([*CASES], ["cortex-m4", "rv32imc"]))
def test_depthwise_layers_are_exact(name: str, target: str) -> None:
    network = chain(*CASES[name], seed=len(name))
    check_emitted(network, target)
    text = str(emit(make_plan(network), TARGETS[target], network).files["chain.c"])
    names = ("depthwise_run", "depthwise_shared", "direct_run", "direct_shared", "rows_run")
    assert sum(text.count(f"chain_{name}(") for name in names) == len(network.layers)


@pytest.mark.parametrize("name", ["in place", "halved", "narrow range"])
def test_plain_rows_are_exact(name: str) -> None:
    """Where registers are few, channels are gathered first."""
    check_emitted(chain(*CASES[name], seed=5), "cortex-m0plus")


def test_small_kernels_are_read_from_where_they_lie() -> None:
    network = chain(SAME, HALF, SAME, shape=(1, 9, 16, 5))
    library = emit(make_plan(network), TARGETS["rv32imc"], network)
    assert "depthwise_run" not in library.files["chain_kernels.c"]


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize("name", ["in place", "narrow range", "5x5"])
def test_depthwise_layers_in_onnx_arithmetic(name: str, dtype: DType) -> None:
    network = chain(*CASES[name], arithmetic=Arithmetic.ONNX, dtype=dtype, seed=3)
    check_emitted(network, "cortex-m4")


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
@pytest.mark.parametrize("width", range(3, 9))
def test_every_width_is_exact(width: int, target: str) -> None:
    network = chain({"pads": (0, 1, 1, 0), "activation": RELU6}, SAME, HALF, shape=(1, 4, width, 3), seed=width)
    check_emitted(network, target)


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
def test_tiles_are_exact(target: str) -> None:
    """Parts whose bounds are known at run time only, some of them at borders, some smaller than others."""
    network = chain(SAME, HALF, CASES["5x5"][0], seed=9)
    stages = []
    for stage in (plan := make_plan(network, plain=True)).program.stages:
        _, rows, columns, channels = network.tensors[stage.name].shape
        sizes = ((1, rows, 2), (2, columns, 3), (-1, channels, 2))
        splits = [Split(axis, parts_of(size, part)) for axis, size, part in sizes]
        stages.append(split_stage(network, stage.name, splits))
    check_emitted(network, target, replace(plan, program=Program(network, tuple(stages))))


def test_wide_rows_are_cut_into_runs() -> None:
    """Shared memory, a row of outputs that fits no scratch: runs of a few pixels, backward or forward."""
    for shape in ((1, 6, 16, 200), (1, 3, 5, 900)):
        for target in ("cortex-m4", "rv32imc"):
            check_emitted(chain(SAME, HALF, shape=shape), target, seeds=1)


@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
def test_kernels_are_clean_of_undefined_behaviour(target: str) -> None:
    network = chain(SAME, HALF, CASES["5x5"][0], seed=1)
    library = emit(make_plan(network), TARGETS[target], network)
    flags = [*WARNINGS, "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    build(library, flags=flags).run(random_inputs(network))


def test_instructions_of_the_chip_give_the_same() -> None:
    """Assembler for the Arm, on an emulated one: odd and even widths, both strides, whole planes and rings."""
    check_on_board(
        chain(SAME, HALF, CASES["5x5"][0], {**SAME, "scale": 0.05, "zero": 20}, shape=(1, 40, 43, 3), seed=2)
    )
    check_on_board(chain(SAME, HALF, shape=(1, 7, 6, 5), arithmetic=Arithmetic.ONNX, dtype=DType.UINT8, seed=4))
