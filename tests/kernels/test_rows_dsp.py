"""Layers row by row on cores with pairs of 16-bit products: exact, and not much slower than whole layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import measure
from edgewright.emit.native import build
from edgewright.kernels.requantise.multipliers import Rule, fit
from edgewright.memory import plan
from edgewright.memory.step_sizes import _even
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.operators import Clamp, Conv2d
from edgewright.program import FusionSchedule, Plan, Program, Split, Stage, Sweep
from tests.helpers.emitting import WARNINGS, check_emitted
from tests.helpers.on_board import check_on_board
from tests.helpers.tools import compiler, needs_board

RELU6 = Clamp(0.0, 6.0)


def separable(
    *channels: int, shape=(1, 9, 5, 8), stride=1, zero=0, activation=RELU6, spread=5.0, kernel=3, **kinds
) -> Network:
    """Depthwise layers, each with a pointwise one of so many channels behind it; the first at this stride."""
    rng = np.random.default_rng(len(channels) + shape[2])
    arithmetic, dtype = kinds.get("arithmetic", Arithmetic.TFLITE), kinds.get("dtype", DType.INT8)
    b = Builder("rows", arithmetic)
    low = np.iinfo(dtype.numpy).min
    x = b.input("x", shape, dtype, Quant.of(0.05, low + 120))
    pad = kernel // 2
    for i, count in enumerate(channels):
        depth = b.shape(x)[3]
        for name, outputs, taps, op in (
            ("dw", depth, (kernel, kernel, 1), Conv2d(groups=depth, pads=(pad,) * 4, stride=(stride, stride))),
            ("pw", count, (1, 1, depth), Conv2d()),
        ):
            w = rng.integers(-127, 128, (outputs, *taps)).astype(np.int8)
            scales = tuple(float(np.float32(s)) for s in 0.002 * spread ** rng.uniform(0, 1, outputs))
            bias = rng.integers(-3000, 3000, outputs).astype(np.int32)
            names = [x, b.constant("w", w, Quant(scales, (0,) * outputs, 0)), b.constant("b", bias)]
            made = replace(op, activation=activation)
            x = b.layer(made, names, f"{name}{i}", dtype=dtype, quant=Quant.of(6 / 255, low + zero))
        stride = 1
    return b.build([x])


def by_rows(network: Network, **options) -> Plan:
    return plan(network, explain=False, phases=list(network.by_name), **options)


OPEN = {"activation": None, "zero": 131}  # negative sums are rounded away from zero
CASES = {
    "odd": separable(16, 12, shape=(1, 7, 5, 16)),
    "odd rest of taps": separable(6, 10, shape=(1, 5, 7, 5)),
    "three": separable(8, 8, shape=(1, 4, 3, 4)),
    "even": separable(8, 8, shape=(1, 5, 8, 8)),
    "one column": separable(8, 8, shape=(1, 6, 1, 8)),
    "two rows": separable(8, 8, shape=(1, 2, 9, 4)),
    "odd channels": separable(7, 5, shape=(1, 5, 5, 6)),
    "halved": separable(8, 8, 4, shape=(1, 10, 10, 4), stride=2),
    "any range": separable(8, 6, shape=(1, 6, 5, 8), **OPEN),
    "shifts of their own": separable(8, 8, shape=(1, 6, 5, 16), spread=50000.0),
    "larger kernels": separable(8, 8, shape=(1, 9, 7, 8), kernel=5),
    "uint8": separable(8, 6, shape=(1, 6, 7, 8), zero=20, arithmetic=Arithmetic.ONNX, dtype=DType.UINT8),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_exact(name: str) -> None:
    network = CASES[name]
    check_emitted(network, "cortex-m4", by_rows(network))


def test_rows_of_a_pulled_input_are_exact() -> None:
    check_emitted(CASES["odd"], "cortex-m4", by_rows(CASES["odd"], pull_rows=True))


def test_the_chip_gives_the_same() -> None:
    """Assembler for the Arm, on an emulated one."""
    for name in ("odd rest of taps", "halved", "any range", "shifts of their own"):
        check_on_board(CASES[name], plan=by_rows(CASES[name]))


@pytest.mark.parametrize("sweep", [Sweep.FORWARD, Sweep.BACKWARD])
def test_single_rows_are_exact_both_ways(sweep: Sweep) -> None:
    network = separable(8, 6, shape=(1, 5, 7, 6))
    made = plan(network, plain=True, explain=False)
    stages = []
    for stage in made.program.stages:
        rows = Split(1, tuple(range(1, network.tensors[stage.name].shape[1] + 1)))
        stages.append(Stage(stage.name, FusionSchedule((stage.name,), (rows,)), sweep))
    cut = replace(made, program=Program(network, tuple(stages)))
    assert "rows_dsp_odd_row(" in str(emit(cut, TARGETS["cortex-m4"], network).files["rows.c"])
    check_emitted(network, "cortex-m4", cut)


def test_rows_by_the_kernels_meant_for_them() -> None:
    """So that what the other tests compare is every kernel there is."""
    texts = {n: str(emit(by_rows(net), TARGETS["cortex-m4"], net).files["rows.c"]) for n, net in CASES.items()}
    assert all("rows_rows_run(" in texts[name] for name in ("odd", "two rows", "halved", "shifts of their own"))
    assert "rows_dsp_threes_plain" in texts["odd"] and "rows_dsp_threes_general" in texts["any range"]
    assert "rows_dsp_row(" in texts["even"] and "rows_dsp_odd_row(" not in texts["even"]


def test_whole_layers_do_without_kernels_for_rows() -> None:
    network = CASES["odd"]
    text = str(emit(plan(network, plain=True, explain=False), TARGETS["cortex-m4"], network).files["rows.c"])
    assert "dsp_row" not in text and "odd_row" not in text


def test_kernels_for_rows_are_clean_of_undefined_behaviour() -> None:
    flags = [*WARNINGS, "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    for name in ("odd rest of taps", "any range"):
        library = emit(by_rows(CASES[name]), TARGETS["cortex-m4"], CASES[name])
        build(library, flags=flags).run(random_inputs(CASES[name]))


@pytest.mark.slow
def test_a_streamed_build_costs_little_more_than_a_plain_one() -> None:
    """Instructions, which are counted and not timed: 15 % more at most at equal products."""
    network = separable(48, 48, shape=(1, 10, 7, 48))
    plans = [plan(network, plain=True, explain=False), by_rows(network)]
    libraries = [emit(made, TARGETS["cortex-m4"], network) for made in plans]
    needs_board("cortex-m4")
    plain, rows = (measure(library, random_inputs(network)).instructions for library in libraries)
    assert plain and rows and rows <= 1.15 * plain
    assert plans[1].peak_bytes < plans[0].peak_bytes


@pytest.mark.slow
def test_other_compilers_accept_kernels_for_rows() -> None:
    library = emit(by_rows(CASES["any range"]), TARGETS["cortex-m4"], CASES["any range"])
    for cc, flags in (("clang", WARNINGS), ("g++", ["-x", "c++", *WARNINGS[1:]])):
        build(library, flags=flags, cc=compiler(cc)).run(random_inputs(CASES["any range"]))


@pytest.mark.parametrize(("width", "most", "expected"), [(5, 4, 3), (10, 4, 4), (7, 4, 4), (9, 4, 3), (8, 3, 3)])
def test_parts_of_a_row_are_about_as_wide(width: int, most: int, expected: int) -> None:
    found = _even(width, most)
    assert found == expected
    assert -(-width // found) == -(-width // most), "no part more than with the widest"


def test_answers_about_multipliers_are_remembered() -> None:
    asked = []

    def stored(sums: np.ndarray) -> np.ndarray:
        asked.append(sums.shape)
        return np.clip(np.floor(sums * 0.03 + 0.5), -128, 127).astype(np.int64)

    def rule(name: str) -> Rule:
        return Rule(stored, -128, 127, np.array([-9000]), np.array([9000]), np.array([0.03]), name)

    first = fit(rule("a test"), bias=np.array([70]))
    count = len(asked)
    assert fit(rule("a test"), bias=np.array([70])) is first and len(asked) == count
    other = fit(rule("a test"), bias=np.array([71]))
    assert other is not None and first is not None and other.offset[0] != first.offset[0]
    assert fit(rule(""), bias=np.array([70])) is not first, "without a name nothing is remembered"
