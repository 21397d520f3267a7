"""Convolutions and dense layers by pairs of 16-bit products: proven multipliers, packing, kernels on host and chip."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.emit import TARGETS, Options, Rounding
from edgewright.emit.native import build
from edgewright.kernels.dsp.packing import grouped, overlapped, overlapping
from edgewright.kernels.requantise.multipliers import Rule, fit
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels.tflite_fixed import multiply, quantize_multiplier
from edgewright.network.operators import Clamp, Conv2d, ConvTranspose2d, Dense
from edgewright.program import Plan
from tests.helpers.emitting import WARNINGS, emit, native
from tests.helpers.emitting_batch import check_together
from tests.helpers.on_board import check_on_board
from tests.helpers.quantised_cases import backward, cut_up
from tests.helpers.tools import compiler
from tests.kernels.fixed_point import fixed_stored

RELU6 = Clamp(0.0, 6.0)
SAME, HALF = (1, 1, 1, 1), (0, 0, 1, 1)


def chain(*layers: dict, shape=(1, 7, 5, 3), arithmetic=Arithmetic.TFLITE, dtype=DType.INT8, seed=0) -> Network:
    """Layers one after the other: keywords of Conv2d plus channels, kernel, scale and zero; without kernel a Dense."""
    rng = np.random.default_rng(seed)
    b = Builder("chain", arithmetic)
    low = np.iinfo(dtype.numpy).min
    x = b.input("x", shape, dtype, Quant.of(0.05, low + 120))
    for i, fields in enumerate(layers):
        fields = dict(fields)
        channels, kernel = fields.pop("channels", 8), fields.pop("kernel", None)
        scale, zero = fields.pop("scale", 6 / 255), fields.pop("zero", 0)
        taps = (*kernel, b.shape(x)[-1]) if kernel else (b.shape(x)[-1],)
        w = rng.integers(-127, 128, (channels, *taps)).astype(np.int8)
        least = fields.pop("least", 0.002)
        scales = tuple(float(np.float32(s)) for s in np.exp(rng.uniform(np.log(least), np.log(0.01), channels)))
        bias = rng.integers(-3000, 3000, channels).astype(np.int32)
        names = [x, b.constant("w", w, Quant(scales, (0,) * channels, 0)), b.constant("b", bias)]
        op = Conv2d(**fields) if kernel else Dense(**fields)
        x = b.layer(op, names, f"l{i}", dtype=dtype, quant=Quant.of(scale, low + zero))
    return b.build([x])


POINT, THREE = {"kernel": (1, 1), "activation": RELU6}, {"kernel": (3, 3), "pads": SAME, "activation": RELU6}
OPEN = {"scale": 0.4, "zero": 131}  # no activation: negative sums are rounded away from zero
CHAINS: dict[str, tuple[tuple[dict, ...], tuple[int, ...]]] = {
    "pointwise": ((POINT, {**POINT, "channels": 16}, {**POINT, "channels": 6}), (1, 5, 4, 8)),
    "odd channels": (({**POINT, "channels": 5}, {**THREE, "channels": 3}, {**POINT, "channels": 7}), (1, 5, 3, 4)),
    "one channel": (({**POINT, "channels": 1}, {**THREE, "channels": 2}), (1, 5, 3, 4)),
    "one channel of many": (({**POINT, "channels": 1, "stride": (2, 1), **OPEN}, THREE), (2, 6, 3, 23)),
    "one window": (({**THREE, "channels": 1}, {**POINT, "channels": 3}), (1, 5, 4, 6)),
    "three by three": ((THREE, {**THREE, "stride": (2, 2), "pads": HALF}, THREE), (1, 8, 7, 3)),
    "rounded away from zero": (({"kernel": (3, 3), "pads": SAME, **OPEN}, {"kernel": (1, 1), **OPEN}), (1, 5, 5, 6)),
    "narrow range": (({**THREE, "scale": 0.05, "zero": 20}, {**POINT, "scale": 0.05, "zero": 20}), (1, 5, 5, 6)),
    "long kernels": (({"kernel": (10, 4), "pads": (4, 1, 5, 1), "stride": (2, 2), **OPEN},), (1, 19, 10, 1)),
    "dilated": (({"kernel": (3, 2), "dilation": (2, 3), "pads": (2, 1, 2, 2), **OPEN},), (1, 9, 8, 5)),
    "cropped": (({"kernel": (2, 3), "pads": (-1, 2, 1, -1), **OPEN}, {**POINT, "pads": (0, 1, 0, 0)}), (2, 6, 7, 3)),
    "strides": (({"kernel": (1, 1), "stride": (2, 3)}, {"kernel": (3, 3), "stride": (1, 2)}), (1, 9, 13, 9)),
    "dense": (({"channels": 9, **OPEN}, {"channels": 16, "activation": RELU6}, {"channels": 3}), (1, 37)),
    "small dense": (({"channels": 2}, {"channels": 4}, {"channels": 1}), (3, 2, 3)),
    "no room for columns": (({**POINT, "channels": 200}, {**POINT, "channels": 200}), (1, 1, 2, 200)),
    "dense after convolutions": ((THREE, {**POINT, "stride": (9, 9)}, {"channels": 5}), (1, 9, 9, 8)),
    "wide offsets": (
        ({**POINT, "channels": 40, "least": 1e-6}, {"kernel": (1, 1), "channels": 140, **OPEN}, {"channels": 9}),
        (1, 2, 1, 140),
    ),
    "narrow dense": (({"channels": 9, "activation": RELU6, "scale": 0.05, "zero": 20},), (1, 40)),
}  # fmt: skip


KINDS = ((Arithmetic.TFLITE, DType.INT8), (Arithmetic.ONNX, DType.INT8), (Arithmetic.ONNX, DType.UINT8))


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in (1, 2))])
def test_every_chain_is_exact(turn: int) -> None:
    """As planned, backward and in parts; arithmetics and types take turns."""
    networks, plans = [], []
    for i, (layers, shape) in enumerate(CHAINS.values()):
        arithmetic, dtype = KINDS[(i + turn) % 3]
        networks.append(chain(*layers, shape=shape, arithmetic=arithmetic, dtype=dtype, seed=i + turn))
        plans.append(_plan(networks[-1], ("planned", "backward", "in parts")[(i + i // 3 + turn) % 3], i))
    check_together(networks, ["cortex-m4"], plans)


TRANSPOSED: tuple[tuple[int, int, tuple[int, int], tuple[int, int], tuple[int, ...], tuple[int, int]], ...] = (
    (16, 8, (2, 2), (2, 2), (0, 0, 0, 0), (0, 0)),
    (8, 5, (4, 3), (2, 1), (1, 1, 2, 0), (0, 0)),
    (5, 1, (3, 5), (3, 2), (0, 2, 1, 1), (2, 1)),
    (3, 4, (3, 3), (1, 1), (1, 1, 1, 1), (0, 0)),
)  # depth, channels, kernel, stride, pads, extra


def test_transposed_convolutions_are_exact_phase_by_phase() -> None:
    networks, rng = [], np.random.default_rng(3)
    for n, (depth, channels, kernel, stride, pads, extra) in enumerate(TRANSPOSED * len(KINDS)):
        arithmetic, dtype = KINDS[n // len(TRANSPOSED)]
        low = np.iinfo(dtype.numpy).min
        b = Builder("transposed", arithmetic)
        x = b.input("x", (2, 5, 4, depth), dtype, Quant.of(0.05, low + 120))
        w = b.constant("w", rng.integers(-127, 128, (channels, *kernel, depth)).astype(np.int8), Quant.of(0.003, 0))
        bias = b.constant("b", rng.integers(-3000, 3000, channels).astype(np.int32))
        op = ConvTranspose2d(stride, (1, 1), pads, extra)
        networks.append(b.build([b.layer(op, [x, w, bias], "y", dtype=dtype, quant=Quant.of(0.1, low + 131))]))
    plans = [make_plan(network, plain=True) for network in networks]
    for network, plan in zip(networks, plans, strict=True):
        assert "dsp_conv(" in str(emit(plan, TARGETS["cortex-m4"], network).files["transposed.c"])
    check_together(networks, ["cortex-m4"], plans)


def _plan(network: Network, how: str, seed: int) -> Plan:
    if how == "planned":
        return make_plan(network)
    plain = make_plan(network, plain=True)
    return backward(plain) if how == "backward" else cut_up(plain, np.random.default_rng(seed))


@pytest.mark.parametrize("key", CHAINS)
def test_our_kernels_take_every_layer(key: str) -> None:
    layers, shape = CHAINS[key]
    network = chain(*layers, shape=shape)
    text = str(emit(make_plan(network), TARGETS["cortex-m4"], network).files["chain.c"])
    singles = text.count("const uint8_t *const tap = ")
    assert text.count("chain_dsp_conv(") + text.count("chain_dsp_dense(") + singles == len(layers)


def test_all_kinds_of_kernels_are_reached() -> None:
    """So that what the other tests compare is every kernel there is."""
    found = set()
    for turn in range(3):
        for i, (layers, shape) in enumerate(CHAINS.values()):
            arithmetic, dtype = KINDS[(i + turn) % 3]
            network = chain(*layers, shape=shape, arithmetic=arithmetic, dtype=dtype, seed=i + turn)
            text = str(emit(make_plan(network), TARGETS["cortex-m4"], network).files["chain.c"])
            found |= set(re.findall(r"chain_dsp_(\w*(?:plain|general|wide|float))\b", text))
    pairs = {"plain", "general", "wide", "float"}
    fours = {f"fours_{kind}" for kind in pairs}
    assert found >= pairs | fours | {"odd_plain", "odd_general", "fours_unsigned_general", "fours_unsigned_float"}


def test_dense_layers_may_round_as_tflm_does() -> None:
    """Twice, which differs from the reference for some sums: the kernel follows the option."""
    network = chain({"channels": 64, "scale": 1.0, "zero": 128}, shape=(64, 64), seed=5)
    runs = [native(network, "cortex-m4", options=Options(rounding=r)) for r in (Rounding.REFERENCE, Rounding.TFLM)]
    differ = 0
    for seed in range(10):
        inputs = random_inputs(network, seed)
        reference, tflm = (run.run(inputs)["l0"] for run in runs)
        np.testing.assert_array_equal(tflm, _rounded_twice(network, inputs["x"]))
        differ += int((reference != tflm).sum())
    assert differ > 0


def _rounded_twice(network: Network, x: np.ndarray) -> np.ndarray:
    layer = network.layers[0]
    w, bias = (network.constants[name] for name in layer.inputs[1:])
    quants = [network.tensors[name].quant for name in (*layer.inputs[:2], layer.output)]
    total = (x.astype(np.int64) - quants[0].zero[0]) @ w.T.astype(np.int64) + bias
    sx, sy = (float(np.float32(quants[i].scale[0])) for i in (0, 2))
    pairs = [quantize_multiplier(sx * float(np.float32(s)) / sy) for s in quants[1].scale]
    steps = multiply(total, np.array([m for m, _ in pairs]), np.array([s for _, s in pairs]))
    return np.clip(steps + quants[2].zero[0], -128, 127)


def test_kernels_are_clean_of_undefined_behaviour() -> None:
    flags = [*WARNINGS, "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    chosen = ("odd channels", "rounded away from zero", "cropped", "dense", "small dense", "wide offsets")
    networks = [chain(*layers, shape=shape) for layers, shape in map(CHAINS.__getitem__, chosen)]
    check_together(networks, ["cortex-m4"], flags=flags)


def test_the_chip_gives_the_same() -> None:
    """Assembler for the Arm, on an emulated one: all kinds of kernels."""
    unsigned = {"arithmetic": Arithmetic.ONNX, "dtype": DType.UINT8}
    mixed = (*CHAINS["odd channels"][0], {"kernel": (5, 3), **OPEN}, {"channels": 9}, {"channels": 6, **OPEN})
    for seed, kind in enumerate(({}, unsigned)):
        check_on_board(chain(*mixed, seed=seed, **kind))
        check_on_board(chain(*CHAINS["wide offsets"][0], shape=(1, 1, 2, 140), seed=seed, **kind))


def test_other_compilers_accept_it() -> None:
    network = chain(*CHAINS["odd channels"][0])
    library = emit(make_plan(network), TARGETS["cortex-m4"], network)
    for cc, flags in (("clang", WARNINGS), ("g++", ["-x", "c++", "-std=c++20", *WARNINGS[1:]])):
        build(library, flags=flags, cc=compiler(cc)).run(random_inputs(network))


# Multipliers


def rule_of(scale: float, zero: int, first: int, last: int, twice: bool) -> Rule:
    """Rounded twice as TFLite's convolutions, or once in double."""
    m, s = quantize_multiplier(scale)

    def stored(sums: np.ndarray) -> np.ndarray:
        steps = multiply(sums, m, s) if twice else np.floor(sums * scale + 0.5).astype(np.int64)
        return np.clip(steps + zero, -128, 127)

    return Rule(stored, -128, 127, np.array([first]), np.array([last]), np.array([scale]))


@given(st.floats(1e-4, 0.9), st.integers(-128, 127), st.integers(-60000, 0), st.integers(0, 60000))
def test_thresholds_are_where_values_change(scale: float, zero: int, first: int, last: int) -> None:
    rule = rule_of(scale, zero, first, last, twice=True)
    every = np.arange(first, last + 1)[None]
    values = rule.stored(every)[0]
    found = rule.thresholds[0]
    for v in (-127, -60, 0, 1, 127):
        reached = np.nonzero(values >= v)[0]
        assert found[v + 127] == (first + reached[0] if len(reached) else last + 1)


@given(st.floats(1e-4, 0.9), st.integers(-128, 127), st.integers(-4000, 4000), st.booleans())
def test_multipliers_give_what_the_rule_says_for_every_sum(scale: float, zero: int, bias: int, twice: bool) -> None:
    rule = rule_of(scale, zero, -50000 + bias, 50000 + bias, twice)
    bits = np.maximum(-np.array([quantize_multiplier(scale)[1]]), 0)
    fixed = fit(rule, drop_bits=bits) if twice else fit(rule, bias=np.array([bias]))
    every = np.arange(-50000 + bias, 50000 + bias + 1)[None]
    if fixed is not None:
        given_ = every if twice else every - bias
        np.testing.assert_array_equal(fixed_stored(fixed, given_, -128, 127), rule.stored(every))


def test_channels_that_store_one_value_need_no_sums() -> None:
    """A dead channel with a bias that no shifted sum could hold."""
    rule = rule_of(0.01, 0, -(1 << 30) - 500, -(1 << 30) + 500, twice=True)
    fixed = fit(rule, drop_bits=np.array([6]), least_left=8)
    assert fixed is not None and fixed.multiplier[0] == 0 and fixed.drop is not None and fixed.drop[0] == 0
    assert fixed.offset[0] >> fixed.shift == -128


def test_a_multiplier_that_is_wrong_for_one_sum_is_refused() -> None:
    """A rule that no line follows: one threshold is off by three sums."""
    straight = rule_of(0.01, 0, -20000, 20000, twice=False)

    def bent(sums: np.ndarray) -> np.ndarray:
        values = straight.stored(sums)
        return np.where((sums >= 5047) & (sums < 5050), values + 1, values)

    assert fit(straight) is not None
    assert fit(replace(straight, stored=bent)) is None


# Packing


def test_groups_overlap_where_there_is_a_rest() -> None:
    assert overlapping(5, 2) == [0, 1, 1, 2, 3, 4]
    assert overlapping(8, 4) == list(range(8))
    assert overlapping(3, 4) == [0, 1, 2]
    np.testing.assert_array_equal(overlapped(np.array([[1, 2, 3, 4, 5, 6]])), [[1, 2, 3, 4, 0, 0, 5, 6]])


def test_two_weights_share_a_number() -> None:
    runs = np.array([[[1, 2, 3]], [[-4, 5, -6]]], np.int8)
    np.testing.assert_array_equal(grouped(runs, 2), [[256 * -4 + 1, 256 * -6 + 3, 256 * 5 + 2, 0]])
    assert grouped(np.array([[[-1]], [[-128]]], np.int8), 2) is None
