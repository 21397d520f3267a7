"""int8 products with M-profile vectors: their plain C twins against the numpy kernels, and the vectors under QEMU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import measure
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Reduce, ReduceKind
from tests.helpers.emitting_batch import check_together
from tests.helpers.emitting_cases import plans
from tests.helpers.tools import needs_board
from tests.kernels.product_chains import chain

BATCH = 6  # networks in one call of the compiler


def some_chain(seed: int) -> Network:
    """Depthwise layers of many channels, or others."""
    return chain(seed, depthwise=True, most_channels=150) if seed % 2 else chain(seed)


@settings(max_examples=2, phases=[Phase.generate])  # to shrink a batch of networks takes minutes
@given(data=st.data(), seed=st.integers(0, 1 << 20))
def test_chains_of_products_are_exact(data, seed):
    networks = [some_chain(seed + i) for i in range(BATCH)]
    check_together(networks, ["cortex-m55"], [data.draw(plans(network)) for network in networks])


def test_layers_take_the_vectors():
    text = "".join(
        str(emit(make_plan(net), TARGETS["cortex-m55"], net, name="n").files["n.c"])
        for net in map(some_chain, range(12))
    )
    for kernel in ("n_helium_conv(", "n_helium_depthwise(", "n_helium_pixel("):
        assert kernel in text


@pytest.mark.parametrize("seed", range(6))
def test_vectors_are_exact_on_the_virtual_board(seed):
    needs_board("cortex-m55")
    network = some_chain(seed)
    inputs = random_inputs(network, seed)
    measured = measure(emit(make_plan(network), TARGETS["cortex-m55"], network), inputs)
    for name, expected in execute(network, inputs).items():
        if name in network.outputs:
            np.testing.assert_array_equal(measured.outputs[name], expected)


def test_loops_around_gathers_end():
    """Clang would read every k-th byte by one gather, and count the loop around it in steps of what that skips."""
    needs_board("cortex-m55", zig=True)
    builder, form = Builder("means", Arithmetic.ONNX), {"dtype": DType.INT8, "quant": Quant.of(1 / 16, -3)}
    images = [builder.input(f"x{k}", (1, k, k, 32), **form) for k in (2, 3, 4, 8)]
    means = [Reduce((1, 2), keep=False, kind=ReduceKind.MEAN) for _ in images]
    outputs = [builder.layer(op, [x], f"y{x}", **form) for op, x in zip(means, images, strict=True)]
    network = builder.build(outputs)
    inputs = random_inputs(network, 0)
    measured = measure(emit(make_plan(network), TARGETS["cortex-m55"], network), inputs, zig=True)
    expected = execute(network, inputs)
    for name in network.outputs:
        np.testing.assert_array_equal(measured.outputs[name], expected[name])
