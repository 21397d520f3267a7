"""Running sums in C: shares of any size, added to any part of the output, become what the whole layer stores."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import measure
from edgewright.kernels.dsp import partials as dsp_partials
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, Region, random_inputs
from edgewright.network.operators import AvgPool2d, Clamp, Concat, Conv2d, Dense, Op, Reduce
from edgewright.network.operators.partial_sums import reduction_axes
from edgewright.program import Buffer, FusionSchedule, Plan, Split, Step, summed_axes, sums_bytes, sums_name
from tests.helpers.by_steps import by_steps
from tests.helpers.emitting_batch import check_together
from tests.helpers.on_board import check_on_board
from tests.helpers.quantised_cases import network_of
from tests.helpers.tools import needs_board
from tests.network.test_shares import KINDS, OPERATORS, boxes, summing

FAMILIES = ("host", "cortex-m4", "rv32imc", "cortex-m55", "cortex-m0plus")
RELU6 = Clamp(0.0, 6.0)
ALIGNMENT = 16


def summed_up(network: Network, steps: list[Step], room: int = 0) -> Plan:
    """A plan for a network of one layer in these steps, nothing in the same place, with free memory to work in."""
    (layer,) = network.layers
    plan = make_plan(network, plain=True)
    buffers, at = [], 0
    sums = Buffer(sums_name(layer.name), sums_bytes(network, layer), 0, 0, 0)
    for buffer in (*plan.buffers, sums):
        if buffer.size:
            buffers.append(replace(buffer, offset=at))
            at += -(-buffer.size // ALIGNMENT) * ALIGNMENT
    if room:
        buffers.append(Buffer("last", ALIGNMENT, at + room, 0, 0))
        at += room + ALIGNMENT
    return by_steps(replace(plan, buffers=tuple(buffers), peak_bytes=at), {layer.name: tuple(steps)})


def random_steps(network: Network, rng: np.random.Generator) -> list[Step]:
    """Random shares of the input, for random regions of the output."""
    (layer,) = network.layers
    shapes, result = network.shapes(layer), network.tensors[layer.output]
    outs = boxes(rng, Region.whole(result.shape), tuple(range(len(result.shape))))
    axes = tuple(reduction_axes(layer.op, shapes))
    steps = [
        Step(layer.name, out, partial=share) for out in outs for share in boxes(rng, Region.whole(shapes[0]), axes)
    ]
    return [step for step in steps if step.partial and not step.partial.is_empty and not step.region.is_empty]


def by_parts(network: Network, size: int, axis: int, room: int = 0) -> Plan:
    """The layer summed up over parts of its input along an axis."""
    (layer,) = network.layers
    whole, x = Region.whole(network.tensors[layer.output].shape), Region.whole(network.shapes(layer)[0])
    ends = range(0, x.shape[axis], size)
    shares = [x.with_axis(axis, (start, min(start + size, x.shape[axis]))) for start in ends]
    return summed_up(network, [Step(layer.name, whole, partial=share) for share in shares], room)


def one_layer(op: Op, x: tuple[int, ...], w: tuple[int, ...] = (), kind: str = "int8") -> Network:
    """int8 in TFLite's arithmetic, uint8 in onnxruntime's, or float32."""
    b = Builder("net", Arithmetic.TFLITE if kind == "int8" else Arithmetic.ONNX)
    rng, dtype = np.random.default_rng(sum(x)), DType(kind)
    quant = None if dtype.is_float else Quant.of(0.05, 3 if dtype is DType.INT8 else 131)
    names = [b.input("x", x, dtype, quant)]
    if w and dtype.is_float:
        names += [b.constant(n, rng.standard_normal(s).astype(np.float32)) for n, s in (("w", w), ("b", w[:1]))]
    elif w:
        scales = tuple(float(s) for s in rng.uniform(0.0002, 0.002, w[0]).astype(np.float32))
        weights = rng.integers(-127, 128, w).astype(np.int8)
        names += [b.constant("w", weights, Quant(scales, (0,) * w[0], 0) if len(w) == 4 else Quant.of(0.001, 0))]
        names += [b.constant("b", rng.integers(-3000, 3000, w[0]).astype(np.int32))]
    return b.build([b.layer(op, names, "y", dtype=dtype, quant=quant)])


def test_any_shares_of_any_layer() -> None:
    """Cases drawn one by one and compiled together, families in turn."""
    found: list[tuple[Network, Plan]] = []

    @settings(max_examples=800 if os.environ.get("EDGEWRIGHT_THOROUGH") else 40, phases=(Phase.generate,))
    @given(data=st.data(), operator=st.sampled_from(OPERATORS), kind=st.sampled_from(KINDS), seed=st.integers(0, 999))
    def collect(data: st.DataObject, operator: str, kind: str, seed: int) -> None:
        network = network_of(data.draw(summing(operator)), kind)
        assume(summed_axes(network, network.layers[0]))
        rng = np.random.default_rng(seed)
        found.append((network, summed_up(network, random_steps(network, rng), room=int(rng.integers(3)) * 512)))

    collect()
    assert len(found) > 30
    for turn, first in enumerate(range(0, len(found), 60)):
        batch = found[first : first + 60]
        families = FAMILIES[turn % 5 :] + FAMILIES[: turn % 5]
        check_together([network for network, _ in batch], families, [plan for _, plan in batch])


WIDE = [
    (one_layer(Conv2d(activation=RELU6), (1, 3, 5, 72), (10, 1, 1, 72)), (16, 33, 72)),
    (one_layer(Conv2d((2, 2)), (1, 5, 5, 20), (7, 1, 1, 20), "uint8"), (3, 12)),
    (one_layer(Conv2d(pads=(1, 1, 1, 1)), (1, 4, 5, 24), (8, 3, 3, 24)), (5, 24)),
    (one_layer(Conv2d(dilation=(2, 2), pads=(2, 2, 2, 2)), (1, 4, 5, 9), (5, 3, 3, 9), "float32"), (4,)),
    (one_layer(Dense(), (3, 50), (13, 50)), (7, 50)),
    (one_layer(Dense(activation=RELU6), (1, 50), (3, 50), "uint8"), (1, 21)),
    (one_layer(Dense(), (2, 50), (18, 50), "float32"), (16,)),
    (one_layer(Conv2d(), (1, 3, 5, 22), (12, 1, 1, 22)), (8,)),
]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["host", "cortex-m4", "rv32imc"])
def test_shares_of_many_channels(target: str) -> None:
    """With memory for columns and without."""
    most = 1 if target == "host" else 3  # whose kernels take long to compile
    cases = [(network, size) for network, sizes in WIDE for size in sizes[:most]]
    plans = [by_parts(network, size, last_axis(network), i % 2 * 4096) for i, (network, size) in enumerate(cases)]
    check_together([network for network, _ in cases], [target], plans)


def last_axis(network: Network) -> int:
    return len(network.tensors["x"].shape) - 1


@pytest.mark.parametrize("kind", ["int8", "uint8", "float32"])
def test_means_of_many_pixels(kind: str) -> None:
    """More than 16 bits can sum up at once, and numbers of channels that are no multiple of four."""
    ops = [(Reduce((1, 2)), (1, 3, 600, 7)), (Reduce((1, 2), keep=False), (1, 5, 6, 12))]
    if kind != "uint8":  # onnxruntime averages these in float32
        ops += [(AvgPool2d((5, 6)), (1, 5, 6, 9)), (Reduce((1,)), (1, 9, 6)), (Reduce((-1,)), (1, 9, 6))]
    networks = [one_layer(op, shape, kind=kind) for op, shape in ops for _ in FAMILIES[:3]]
    plans = [by_parts(network, 2, min(summed_axes(network, network.layers[0]))) for network in networks]
    check_together(networks, FAMILIES[:3], plans)


def test_sums_of_pairs_without_exact_multipliers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dsp_partials, "channel_scaling", lambda *_: None)
    networks = [network for network, _ in WIDE if not network.tensors["y"].dtype.is_float]
    check_together(networks, ["cortex-m4"], [by_parts(n, 8, last_axis(n)) for n in networks])


@pytest.mark.parametrize("kind", ["int8", "uint8", "float32"])
def test_weights_that_are_added_part_by_part_are_stored_once(kind: str) -> None:
    network = one_layer(Conv2d(), (1, 4, 4, 256), (64, 1, 1, 256), kind)
    library = emit(by_parts(network, 64, last_axis(network)), TARGETS["host"], network)
    weights = network.tensors["w"].bytes
    assert weights <= library.weight_bytes < 1.5 * weights


def block(depth: int = 6, wide: int = 24, size: int = 7) -> Network:
    """Wider, depthwise, narrower again, and a mean: int8."""
    b = Builder("net", Arithmetic.TFLITE)
    rng, quant = np.random.default_rng(wide), Quant.of(6 / 255, -128)
    name = b.input("x", (1, size, size, depth), DType.INT8, quant)
    for step, (op, w) in enumerate(
        [
            (Conv2d(activation=RELU6), (wide, 1, 1, depth)),
            (Conv2d(pads=(1, 1, 1, 1), groups=wide, activation=RELU6), (wide, 3, 3, 1)),
            (Conv2d(), (10, 1, 1, wide)),
        ]
    ):
        scales = tuple(float(s) for s in rng.uniform(0.0002, 0.002, w[0]).astype(np.float32))
        weights = b.constant("w", rng.integers(-127, 128, w).astype(np.int8), Quant(scales, (0,) * w[0], 0))
        bias = b.constant("b", rng.integers(-3000, 3000, w[0]).astype(np.int32))
        name = b.layer(op, [name, weights, bias], f"l{step}", dtype=DType.INT8, quant=quant)
    return b.build([b.layer(Reduce((1, 2)), [name], "mean", dtype=DType.INT8, quant=Quant.of(0.01, 7))])


def fan_in(network: Network, ends: tuple[int, ...], by_rows: bool = False) -> Plan:
    schedule = FusionSchedule(("l0", "l1", "l2"), (Split(-1, ends),), by_rows)
    return make_plan(network, schedules=[schedule], explain=False)


def test_layers_fused_along_channels() -> None:
    network = block()
    plans = [fan_in(network, ends, by_rows) for ends in ((8, 16, 24), (5, 14, 24)) for by_rows in (False, True)]
    check_together([network] * 6, ["cortex-m4"] * 4 + ["rv32imc", "host"], [*plans, plans[2], plans[3]])


def test_a_mean_takes_rows_as_they_come() -> None:
    network = block()
    made = make_plan(network, schedules=[FusionSchedule(("l0", "l1", "l2", "mean"), streamed=True)], explain=False)
    assert made.program.partial(made.program.stages[0]) == ("mean",)
    check_together([network] * 3, FAMILIES[:3], [made] * 3)


def test_real_sums_among_other_parts_of_a_concat() -> None:
    """They lie in the output, between elements that are there already."""
    b = Builder("net", Arithmetic.ONNX)
    rng = np.random.default_rng(0)
    x = b.input("x", (1, 4, 4, 6), DType.FLOAT32)

    def pointwise(name: str, source: str, channels: int) -> str:
        weights = rng.standard_normal((channels, 1, 1, b.shape(source)[3])).astype(np.float32)
        return b.layer(Conv2d(), [source, b.constant("w", weights)], name, dtype=DType.FLOAT32)

    first = pointwise("first", x, 5)
    second = pointwise("second", pointwise("wide", x, 12), 4)
    network = b.build([b.layer(Concat(3), [first, second], "y", dtype=DType.FLOAT32)])
    made = make_plan(network, schedules=[FusionSchedule(("wide", "second"), (Split(-1, (5, 12)),))], explain=False)
    assert made.views["second"].buffer == made.views["y"].buffer
    check_together([network] * 3, FAMILIES[:3], [made] * 3)


def test_kernels_of_their_own() -> None:
    network = block()
    text = str(emit(fan_in(network, (8, 16, 24)), TARGETS["cortex-m4"], network).files["net.c"])
    assert "net_share_points(" in text and "net_share_finish_" in text


def test_fan_in_on_the_chip() -> None:
    """Pairs of channels with and without a loop over taps, an odd number of channels, windows, dense layers."""
    network = block()
    check_on_board(network, plan=fan_in(network, (5, 14, 24), by_rows=True))
    for wide, size in ((WIDE[0][0], 33), (WIDE[1][0], 12), (WIDE[2][0], 5), (WIDE[4][0], 7), (WIDE[7][0], 8)):
        check_on_board(wide, plan=by_parts(wide, size, last_axis(wide)))


def test_means_on_the_chip() -> None:
    network = block()
    schedule = FusionSchedule(("l0", "l1", "l2", "mean"), streamed=True)
    check_on_board(network, plan=make_plan(network, schedules=[schedule], explain=False))
    for kind in ("int8", "uint8"):
        wide = one_layer(Reduce((1, 2)), (1, 3, 300, 7), kind=kind)
        check_on_board(wide, plan=by_parts(wide, 2, 1))


@pytest.mark.slow
def test_the_price_of_shares() -> None:
    """Instructions on the chip, compared with the whole layer."""
    target = TARGETS["cortex-m4"]
    needs_board(target)
    for op, x, w, axis, prices in (
        (Conv2d(), (1, 4, 6, 64), (64, 1, 1, 64), 3, {32: 1.1, 16: 1.2, 8: 1.3}),
        (Reduce((1, 2)), (1, 12, 12, 40), (), 1, {1: 1.0}),
    ):
        network = one_layer(op, x, w)
        inputs = random_inputs(network, 1)
        whole = measure(emit(make_plan(network, plain=True), target, network), inputs).instructions
        for size, most in prices.items():
            parts = measure(emit(by_parts(network, size, axis), target, network), inputs).instructions
            assert parts <= most * whole, (op, size, parts / whole)
