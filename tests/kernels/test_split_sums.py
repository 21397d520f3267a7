"""Integer sums that cross from part to part, in C: taken and finished on every family of targets, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from edgewright.errors import Unsupported
from edgewright.memory import plan as make_plan
from edgewright.network import Array, Network, Region, random_inputs
from edgewright.network.operators import FinishSums, PartialSum
from edgewright.network.operators.partial_sums import reduction_axes
from edgewright.network.partial import PartialSums
from edgewright.network.parts import NetworkPart, TensorRegion, cut
from tests.helpers.emitting_batch import build_together, libraries
from tests.helpers.kernel_cases import regions
from tests.helpers.parts_runs import assert_same, whole_values
from tests.helpers.quantised_cases import network_of
from tests.network.test_shares import KINDS, OPERATORS, boxes, summing

TARGETS_HERE = ("host", "cortex-m4", "rv32imc")


def parts_of(network: Network, data: st.DataObject) -> list[NetworkPart]:
    """Parts that each sum over a share of the layer's input, and one that finishes them; none where it has no sums."""
    layer, rng = network.layers[0], np.random.default_rng(data.draw(st.integers(0, 99)))
    shapes, out = network.shapes(layer), network.tensors[layer.output]
    shares = boxes(rng, Region.whole(shapes[0]), tuple(reduction_axes(layer.op, shapes)))
    shares = [share for share in shares if not share.is_empty]
    if len(shares) < 2:
        return []
    region = data.draw(regions(out.shape)) if out.shape else Region(())
    try:
        found = [cut(network, [layer.name], {layer.output: PartialSums(region, share)}) for share in shares]
    except Unsupported:
        return []
    return [*found, cut(network, [layer.name], {layer.output: region}, {layer.name: shares})]


@pytest.mark.parametrize("operator", OPERATORS)
@settings(max_examples=5, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_sums_that_cross_become_the_whole_layer(operator: str, data: st.DataObject) -> None:
    """A handful of layers at once, since compiling takes longest; plans have their ends in their arena, or outside."""
    kinds = [kind for kind in KINDS if kind != "float32"]
    networks = [network_of(data.draw(summing(operator)), kind) for kind in kinds]
    runs = [(network, parts) for network in networks if (parts := parts_of(network, data))]
    every = [part for _, parts in runs for part in parts]
    if not every:
        return
    assert all(isinstance(part.network.layers[-1].op, PartialSum | FinishSums) for part in every)
    ends = [(*part.network.inputs, *part.network.outputs) if data.draw(st.booleans()) else () for part in every]
    plans = [make_plan(part.network, outside=outside, explain=False) for part, outside in zip(every, ends, strict=True)]
    made = libraries([part.network for part in every], TARGETS_HERE, plans)
    natives = iter(build_together(made))
    for network, parts in runs:
        whole = whole_values(network, random_inputs(network, 5))
        sums: dict[TensorRegion, Array] = {}
        for part in parts:
            given_to = {
                own: sums[at] if at.share is not None else np.array(whole[at.tensor][at.region.slices])
                for own, at in part.inputs.items()
            }
            (found,) = next(natives).run(given_to, poison=0x55).values()
            (at,) = part.outputs.values()
            sums[at] = found
        assert_same(found, whole[at.tensor][at.region.slices])
