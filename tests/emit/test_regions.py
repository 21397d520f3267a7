"""Emitted C over parts: any tile, row range or channel range, rolling windows of rows, inputs pulled row by row."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings

import edgewright
from edgewright import samples
from edgewright.errors import Infeasible
from edgewright.memory import plan as make_plan
from edgewright.network import Builder, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Conv2d, MatMul, MaxPool2d
from edgewright.program import Buffer, FusionSchedule, Plan, Program, Split, Stage, View, interpret
from tests.helpers.emitting import check_emitted
from tests.helpers.emitting_batch import check_together
from tests.helpers.emitting_cases import parts_of, split_stage
from tests.helpers.parameters import each_once
from tests.helpers.random_networks import networks

FAMILIES = ["host", "cortex-m4", "rv32imc", "cortex-m55"]


def tiled(plan: Plan, seed: int) -> Plan:
    """The plan with every layer cut into tiles of random size along every axis, as nested loops."""
    rng = random.Random(seed)
    stages = []
    for stage in plan.program.stages:
        shape = plan.network.tensors[plan.network.by_name[stage.name].output].shape
        splits = [Split(axis, parts_of(n, rng.randint(1, n))) for axis, n in enumerate(shape) if n]
        stages.append(split_stage(plan.network, stage.name, splits))
    return replace(plan, program=replace(plan.program, stages=tuple(stages)))


def test_any_tiles_give_the_same_numbers():
    """Random networks, drawn one by one and compiled together, families in turn."""
    found: list[Network] = []

    @settings(max_examples=600 if os.environ.get("EDGEWRIGHT_THOROUGH") else 16, phases=(Phase.generate,))
    @given(networks())
    def collect(network: Network) -> None:
        found.append(network)

    collect()
    for turn, first in enumerate(range(0, len(found), 48)):
        batch = found[first : first + 48]
        plans = [tiled(make_plan(network, plain=True), seed) for seed, network in enumerate(batch)]
        check_together(batch, FAMILIES[turn % 4 :] + FAMILIES[: turn % 4], plans)


@pytest.mark.parametrize(("target", "name"), each_once(FAMILIES, ["resnet8_int8", "ds_cnn_int8"]))
def test_samples_in_tiles(target, name):
    network = edgewright.read_model(samples.build(name))
    check_emitted(network, target, tiled(make_plan(network, plain=True), seed=7), seeds=1)


def two_convs(kernel: int = 3):
    rng = np.random.default_rng(3)
    b = Builder("rolling")
    x = b.input("x", (1, 12, 9, 5))
    for i in range(2):
        w = b.constant(f"w{i}", rng.normal(size=(5, kernel, kernel, 5)).astype(np.float32) / 5)
        x = b.layer(Conv2d(), [x, w], f"conv{i}")
    return b.build([x])


@pytest.mark.parametrize("target", FAMILIES)
def test_a_rolling_window_of_rows(target):
    """Two convolutions row by row: of the first one's output only three rows are ever kept."""
    network = two_convs()
    x, middle, y = (network.tensors[name] for name in ("x", "conv0", "conv1"))
    kept = middle.bytes // middle.shape[1] * 3
    buffers, at = [], 0
    for name, size in (("x", x.bytes), ("conv0", kept), ("conv1", y.bytes)):
        buffers.append(Buffer(name, size, at, 0, 0))
        at += size
    views = {t.name: View(t.name, 0, t.strides, (1, 3) if t is middle else None) for t in (x, middle, y)}
    plan = Plan(
        Program(network, (Stage("both", FusionSchedule(("conv0", "conv1"), streamed=True)),)),
        tuple(buffers),
        views,
        4,
        at,
        at,
        0,
        network.total_macs,
        "by hand",
    )
    inputs = random_inputs(network, 1)
    np.testing.assert_allclose(interpret(plan, inputs)["conv1"], execute(network, inputs)["conv1"], atol=1e-4)
    check_emitted(network, target, plan)


@pytest.mark.parametrize(("target", "name"), each_once(FAMILIES, ["ds_cnn_int8", "lenet5"]))
def test_inputs_pulled_by_rows(target, name):
    network = edgewright.read_model(samples.build(name))
    plan = make_plan(network, pull_rows=True, explain=False)
    assert plan.views[network.inputs[0]].window
    inputs = random_inputs(network, 1)
    expected = execute(network, inputs)
    for output in network.outputs:
        np.testing.assert_allclose(interpret(plan, inputs)[output], expected[output], atol=1e-4)
    check_emitted(network, target, plan)


def test_a_pulled_image_is_not_held():
    """A stride of 4 shrinks a large image at once: its rows are all that is needed of it."""
    b = Builder("camera")
    x = b.input("frame", (1, 128, 128, 3))
    y = b.layer(MaxPool2d((4, 4), (4, 4)), [x], "pool")
    network = b.build([y])
    whole, pulled = make_plan(network), make_plan(network, pull_rows=True)
    assert pulled.peak_bytes == 4 * 128 * 3 * 4 + 32 * 32 * 3 * 4 == pulled.bound_bytes
    assert pulled.peak_bytes < whole.peak_bytes // 3
    check_emitted(network, "host", pulled)


def test_what_cannot_be_pulled_says_why():
    b = Builder("flat")
    x = b.input("x", (4, 8))
    w = b.input("w", (8, 2))
    network = b.build([b.layer(MatMul(), [x, w], "product")])
    with pytest.raises(Infeasible, match="no input of 'flat' can be pulled by rows"):
        make_plan(network, pull_rows=True)
