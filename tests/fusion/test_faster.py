"""RAM that buys speed: scratch, outputs off their inputs, rows in a step; plans that keep to their budget."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright import plan, read_model, samples
from edgewright.emit import TARGETS, Options, emit
from edgewright.emit.firmware import measure
from edgewright.fusion.choice import PlanChoice, PlanMaker
from edgewright.fusion.faster import moves_of, speed_up
from edgewright.fusion.request import PlanRequest, make_plan
from edgewright.fusion.timing import UNKNOWN_PENALTY, TimedPlan, Timing
from edgewright.fusion.whole import fastest_whole_layers
from edgewright.kernels.cost.model import modelled, stand_in
from edgewright.memory import Techniques
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.operators import Clamp, Conv2d, Dense, Elu, Reduce, ReduceKind
from edgewright.program import FusionSchedule, room_name
from tests.helpers.emitting import check_emitted
from tests.helpers.interpreting import check_interpreted
from tests.helpers.parameters import each_once
from tests.helpers.random_networks import networks
from tests.helpers.tools import needs_board

MANY = 100 if os.environ.get("EDGEWRIGHT_THOROUGH") else 6
RELU = Clamp(0.0)


def maker_of(network: Network, target: str = "cortex-m4") -> PlanMaker:
    return PlanMaker(network, Timing(target), PlanRequest())


class Int8:
    """An int8 network in LiteRT's arithmetic that grows layer by layer."""

    def __init__(self, *shape: int) -> None:
        self.b, self.rng = Builder("small", Arithmetic.TFLITE), np.random.default_rng(1)
        self.x = self.b.input("x", (1, *shape), DType.INT8, Quant.of(1 / 32, 3))

    def weighted(self, op: Conv2d | Dense, shape: tuple[int, ...]) -> None:
        name, quant = f"l{len(self.b.layers)}", self.b.tensors[self.x].quant
        assert quant is not None
        scales = tuple(float(s) for s in self.rng.uniform(0.5, 1.5, shape[0]) / 600)
        w = np.clip(np.rint(self.rng.normal(0, 45, shape)), -127, 127).astype(np.int8)
        zeros, bias = (0,) * shape[0], np.zeros(shape[0], np.int32)
        both = Quant(tuple(s * quant.scale[0] for s in scales), zeros, 0)
        given = [
            self.b.constant(f"{name}.w", w, Quant(scales, zeros, 0)),
            self.b.constant(f"{name}.b", bias, both),
        ]
        self.x = self.b.layer(op, [self.x, *given], name, dtype=DType.INT8, quant=Quant.of(1 / 24, -128))

    def conv(self, out: int, kernel: tuple[int, int], stride: tuple[int, int] = (1, 1), groups: int = 1) -> None:
        depth = self.b.shape(self.x)[3]
        pads = tuple(k // 2 for k in kernel) * 2
        self.weighted(Conv2d(stride, (1, 1), pads, groups, RELU), (out, *kernel, depth // groups))

    def mean(self) -> None:
        self.x = self.b.layer(Reduce((1, 2), keep=False, kind=ReduceKind.MEAN), [self.x], "mean")

    def built(self) -> Network:
        return self.b.build([self.x])


def signal() -> Network:
    """A signal as rows of one pixel, as networks for human activities have it."""
    net = Int8(96, 1, 3)
    net.conv(16, (5, 1))
    net.conv(16, (5, 1), (2, 1))
    net.conv(12, (5, 1), (2, 1))
    net.mean()
    net.weighted(Dense(None), (6, 12))
    return net.built()


def filters() -> Network:
    """Depthwise filters along time, one after the other, as streaming keyword networks have them."""
    net = Int8(20, 1, 40)
    for _ in range(3):
        net.conv(40, (5, 1), groups=40)
    return net.built()


def residual() -> Network:
    return read_model(samples.build("resnet8_int8"), quantised_input=True)


def counted(network: Network, request: PlanRequest, target: str) -> tuple[int, int]:
    """RAM and counted instructions."""
    needs_board(target, zig=False)
    made = make_plan(network, request, None, target)
    flag = Options().optimise_flag(TARGETS[target])
    found = measure(emit(made, TARGETS[target], network), random_inputs(network, 1), optimise=flag)
    assert found.instructions is not None
    return made.peak_bytes, found.instructions


@pytest.mark.parametrize(("build", "target"), each_once([signal, filters], ["cortex-m4", "rv32imc"]))
def test_small_is_not_slow(build, target):
    network = build()
    plain, whole, least = (
        counted(network, request, target)
        for request in (PlanRequest(plain=True), PlanRequest(), PlanRequest(minimise_ram=True))
    )
    assert whole[1] <= 1.1 * plain[1]
    assert least[1] <= 1.1 * whole[1]
    assert least[0] <= whole[0] <= plain[0]
    assert build is filters or least[0] < 0.7 * whole[0]


QUICK = ("cortex-m4",)
EVERY = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in sorted(TARGETS)]


@pytest.mark.parametrize("target", EVERY)
def test_every_target_keeps_to_the_limit(target):
    """As estimated; what has no counts of its own is weighed as the core that stands in for it."""
    network, timing = signal(), Timing(target)
    assert timing.target.name in modelled() and timing.target.family in (TARGETS[target].family, M4.family)
    whole, least = (
        make_plan(network, request, None, target) for request in (PlanRequest(), PlanRequest(minimise_ram=True))
    )
    more = make_plan(network, PlanRequest(minimise_ram=True, max_slowdown=0.5), None, target)
    assert timing.of(least) <= 1.1 * timing.of(whole)
    assert timing.of(more) <= 1.5 * timing.of(whole)
    assert more.peak_bytes <= least.peak_bytes < whole.peak_bytes
    assert least.macs == least.macs_plain


M4 = TARGETS["cortex-m4"]


def test_who_stands_in_for_whom():
    assert stand_in(None) is stand_in("host") is stand_in("cortex-m7") is M4
    assert stand_in("rv32gc").name == "rv32imc"
    assert stand_in(replace(TARGETS["cortex-m33"], family=TARGETS["cortex-m0plus"].family)).name == "cortex-m0plus"


def test_scratch_is_there_and_counts():
    """A room that is asked for is free to the kernels of its stage, part of the peak, and makes them faster."""
    network = residual()
    layer = next(layer for layer in network.layers if isinstance(layer.op, Conv2d) and layer.op.groups == 1)
    made = plan(network, explain=False, techniques=Techniques(scratch_bytes=((layer.name, 20_000),)))
    index = made.order.index(layer.name)
    assert made.largest_gap(index)[2] >= 20_000
    assert any(buffer.name == room_name(layer.name) and buffer.size >= 20_000 for buffer in made.buffers)
    assert made.peak_bytes >= 20_000 + network.tensors[layer.output].bytes
    check_interpreted(network, made)


def test_no_more_scratch_is_asked_for_than_saves_as_much():
    """Eight bytes less make the stage slower, unless they lie free already."""
    network = residual()
    rows = FusionSchedule(tuple(layer.name for layer in network.layers[:8]), streamed=True)
    at = maker_of(network, "rv32imc").make(PlanChoice((rows,)))
    asked = [(stage, room) for move in moves_of(at) for stage, room in move.choice.scratch_bytes]
    assert asked
    for stage, room in asked:
        index = at.plan.order.index(stage)
        more, less = (at.timed.steps(index, room=size) for size in (room, room - 8))
        assert more < less or room <= at.plan.largest_gap(index)[2] + 8


def test_layers_apart_share_nothing():
    network = filters()
    names = frozenset(layer.name for layer in network.layers)
    shared, apart = (plan(network, explain=False, techniques=Techniques(no_overlap=some)) for some in ((), names))
    assert apart.peak_bytes == 1600 > shared.peak_bytes
    timed = TimedPlan(apart, Timing("cortex-m4").costs(network))
    assert not any(timed.is_shared(index) for index in range(len(apart.program.stages)))
    check_interpreted(network, apart)


def test_a_budget_is_kept_in_the_ram_there_is():
    network = residual()
    maker = maker_of(network, "rv32imc")
    whole = fastest_whole_layers(maker)
    rows = PlanChoice(schedules=streams(network))
    slow = maker.make(rows)
    assert slow.cost > 1.05 * whole.cost
    found = speed_up(maker, rows, 1.05 * whole.cost, whole.peak)
    assert found is not None and found.cost <= 1.05 * whole.cost and slow.peak < found.peak < whole.peak
    assert speed_up(maker, rows, 1.05 * whole.cost, slow.peak + 1) is None
    assert speed_up(maker, rows, 0.1 * whole.cost, whole.peak) is None
    check_interpreted(network, found.plan)


def streams(network: Network) -> tuple[FusionSchedule, ...]:
    """The groups of the plan by rows."""
    made = plan(network, explain=False, phases=True)
    groups = [stage.layers for stage in made.program.stages if len(stage.layers) > 1]
    schedules = tuple(FusionSchedule(layers, streamed=True) for layers in groups)
    return schedules if made.network is network else ()  # with copies they are those of another network


def test_parts_of_what_was_never_counted_are_feared():
    b = Builder("odd")
    x = b.input("x", (1, 8, 8, 4))
    network = b.build([b.layer(Elu(2.0), [b.layer(Elu(), [x], "one")], "two")])
    schedule = FusionSchedule(("one", "two"), streamed=True)
    whole, rows = plan(network, explain=False), plan(network, explain=False, schedules=[schedule])
    timing = Timing("cortex-m4")
    assert timing.of(rows) >= UNKNOWN_PENALTY * 0.9 * timing.of(whole)


@settings(max_examples=3 * MANY, deadline=None)
@given(data=st.data(), network=networks(), target=st.sampled_from(["cortex-m4", "rv32imc"]))
def test_changes_compute_the_same(data, network, target):
    """Whatever is changed to be faster, the interpreter finds the same outputs; a room is as large as was asked for."""
    maker = maker_of(network, target)
    choice = PlanChoice(streams(network) or None)
    at = maker.make(choice)
    for _ in range(3):
        moves = list(moves_of(at))
        if not moves:
            break
        choice = data.draw(st.sampled_from(moves)).choice
        at = maker.make(choice)
        check_interpreted(network, at.plan)
        for index, stage in enumerate(at.plan.program.stages):
            assert at.plan.largest_gap(index)[2] >= dict(choice.scratch_bytes).get(stage.name, 0)


@settings(max_examples=MANY, deadline=None)
@given(network=networks(kinds=("tflite",)), target=st.sampled_from(["cortex-m4", "rv32imc", "cortex-m55"]))
def test_searched_plans_in_c(network, target):
    """Plans of the default search compute the same in emitted C, and keep to their limits."""
    whole, least = (
        make_plan(network, request, None, target) for request in (PlanRequest(), PlanRequest(minimise_ram=True))
    )
    timing = Timing(target)
    assert least.peak_bytes <= whole.peak_bytes and least.macs <= least.macs_plain
    assert timing.of(least) <= 1.1 * timing.of(whole) + 1
    check_emitted(network, target, least)
