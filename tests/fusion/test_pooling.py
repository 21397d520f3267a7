"""Layers by rows with the pool behind them: which, in how many rows, in less memory; random networks interpreted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.fusion import pooling
from edgewright.fusion.pooling import pool_schedules, with_pools
from edgewright.memory.deploy import plan_in_slots
from edgewright.network import Builder, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import AvgPool2d, Conv2d, MaxPool2d
from edgewright.run.build import plan_for_host, whole_network
from edgewright.run.pipeline import pipeline
from tests.helpers.interpreting import check_interpreted

SIDE, MADE = 64, 32  # 64 x 64 x 32 floats between the layers: twice what stays in the cache


def pooled(kernel: int = 2, stride: int = 2, channels: int = 2, is_read_twice: bool = False) -> Network:
    """A convolution, a pool, and a convolution that gives a little."""
    b, rng = Builder("pooled"), np.random.default_rng(0)

    def convolution(name: str, x: str, given: int) -> str:
        weight = rng.standard_normal((given, 3, 3, b.shape(x)[-1])) / 10
        return b.layer(Conv2d(pads=(1, 1, 1, 1)), [x, b.constant(f"{name}_w", weight.astype(np.float32))], name)

    a = convolution("a", b.input("x", (1, SIDE, SIDE, channels)), MADE)
    last = convolution("b", b.layer(MaxPool2d((kernel, kernel), (stride, stride)), [a], "pool"), 1)
    return b.build([last, convolution("c", a, 1)] if is_read_twice else [last])


def test_what_a_pool_reads_is_never_whole():
    network = pooled()
    whole, made = plan_in_slots(network, 64), plan_for_host(network)
    between, result = (network.tensors[name].bytes for name in ("a", "pool"))
    assert whole.peak_bytes >= between
    assert made.peak_bytes <= pooling.CACHED + result < between
    assert [stage.layers for stage in made.program.stages] == [("a", "pool"), ("b",)]
    assert made.macs == whole.macs
    check_interpreted(network, made)
    inputs = [random_inputs(network, seed) for seed in range(3)]
    with pipeline(whole_network(network, made, [(), ()])) as running:
        for given_, found in zip(inputs, running(inputs), strict=True):
            np.testing.assert_allclose(found["b"], execute(network, given_)["b"], rtol=1e-4, atol=1e-4)


def test_lanes_share_whole_layers():
    made = plan_for_host(pooled(), 2)
    assert made.lanes == 2
    assert not any(stage.schedule.streamed for stage in made.program.stages)


@pytest.mark.parametrize(
    "network",
    [
        pooled(kernel=3),  # rows that two steps read
        pooled(channels=256),  # weights that the cache does not hold
        pooled(is_read_twice=True),
        pooled(kernel=1, stride=1),  # gives as much as it reads
    ],
    ids=["overlapping", "heavy", "read twice", "no smaller"],
)
def test_layers_that_stay_whole(network: Network):
    assert list(pool_schedules(network)) == []
    whole = plan_in_slots(network)
    assert with_pools(network, whole) is whole


@st.composite
def chains(draw: st.DrawFn) -> Network:
    """Convolutions with pools behind them, of random sizes, some of them read by more than the pool."""
    b, rng = Builder("chain"), np.random.default_rng(draw(st.integers(0, 9)))
    x = b.input("x", (1, draw(st.integers(9, 24)), draw(st.integers(9, 24)), draw(st.integers(1, 4))))
    outputs = []
    for n in range(draw(st.integers(1, 3))):
        kernel, channels = draw(st.sampled_from((1, 3))), draw(st.integers(1, 9))
        pads = (kernel // 2,) * 4 if draw(st.booleans()) else (0, 0, 0, 0)
        if min(b.shape(x)[1:3]) < 6:
            break
        weight = rng.standard_normal((channels, kernel, kernel, b.shape(x)[-1])).astype(np.float32)
        x = b.layer(Conv2d(pads=pads), [x, b.constant(f"w{n}", weight)], f"c{n}")
        outputs += [b.layer(AvgPool2d((2, 2), (2, 2)), [x], f"o{n}")] if draw(st.integers(0, 4)) == 0 else []
        size, pool = draw(st.sampled_from((2, 2, 3))), draw(st.sampled_from((MaxPool2d, AvgPool2d)))
        x = b.layer(pool((size, size), (size, draw(st.integers(1, size)))), [x], f"p{n}")
    return b.build([x, *outputs])


@settings(deadline=None, max_examples=25)
@given(chains(), st.sampled_from((256, 1024, 4096)))
def test_random_chains_by_rows_with_their_pools(network: Network, cache: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "CACHED", cache)
        whole = plan_in_slots(network)
        made = with_pools(network, whole)
    assert made.peak_bytes <= whole.peak_bytes
    assert made.macs <= whole.macs  # rows that no pool reads are left out
    check_interpreted(network, made)
