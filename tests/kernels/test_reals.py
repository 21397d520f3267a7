"""float32 products on small cores: any window, any part, shared memory, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from edgewright.emit import TARGETS, emit
from edgewright.memory import plan as make_plan
from edgewright.network import Builder, Network
from edgewright.network.operators import Clamp, Conv2d, Dense
from tests.emit.test_regions import tiled
from tests.helpers.emitting import check_emitted
from tests.helpers.emitting_batch import check_together
from tests.helpers.emitting_cases import float_layer, in_turns
from tests.helpers.kernel_cases import cases

CORES = ("cortex-m4", "rv32imc", "cortex-m55", "cortex-m0plus")


def test_random_windows_and_products_agree_with_numpy():
    """Pads, crops, strides, dilations, channel counts that four does not divide; as planned and in tiles."""
    drawn: list[tuple[Network, dict[str, np.ndarray]]] = []

    @settings(max_examples=60, phases=(Phase.generate,))
    @given(st.sampled_from([Conv2d, Conv2d, Dense]).flatmap(cases))
    def collect(case) -> None:
        drawn.append(float_layer(case, constants=range(1, len(case.shapes))))

    collect()
    nets, inputs = [network for network, _ in drawn], [values for _, values in drawn]
    plans = [tiled(make_plan(n, plain=True), i) if i % 2 else make_plan(n, explain=False) for i, n in enumerate(nets)]
    check_together(nets, CORES, plans, inputs)


def chain(depth: int = 3) -> Network:
    rng = np.random.default_rng(5)
    b = Builder("chain")
    x, channels = b.input("x", (1, 9, 11, 6)), 6
    for i in range(depth):
        out = (5, 8, 7)[i]
        w = b.constant(f"w{i}", rng.normal(size=(out, 3, 3, channels)).astype(np.float32) / 7)
        bias = b.constant(f"b{i}", rng.normal(size=out).astype(np.float32))
        op = Conv2d(pads=(1, 1, 1, 1), activation=(Clamp(0.0), None, Clamp(-1.0, 1.5))[i])
        x, channels = b.layer(op, [x, w, bias], f"conv{i}"), out
    return b.build([x])


@pytest.mark.parametrize("core", CORES)
def test_outputs_that_trail_their_inputs(core):
    network = chain()
    plan = make_plan(network)
    assert plan.peak_bytes < make_plan(network, plain=True).peak_bytes  # so that memory is shared
    library = emit(plan, TARGETS[core])
    assert "real_conv_run" in library.files[f"{library.name}.c"]
    check_emitted(network, core, plan)


@pytest.mark.parametrize("size", [2, 3])
def test_channels_in_turns(size):
    """One call in a loop, with the weights of the channels at hand."""
    network = chain()
    plan = in_turns(make_plan(network, plain=True), size)
    library = emit(plan, TARGETS["cortex-m4"])
    assert library.files[f"{library.name}.c"].count("real_conv_run(") == len(network.layers)
    check_emitted(network, "cortex-m4", plan)
