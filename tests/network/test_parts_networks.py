"""Parts of networks: random ones in random parts, halos, and what is asked wrongly."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import ModelError
from edgewright.network import Array, Builder, Interval, Layer, Network, Region, random_inputs
from edgewright.network.kernels import can_sum_partially
from edgewright.network.operators import (
    Binary,
    BinaryKind,
    Concat,
    Conv2d,
    Slice,
    Softmax,
)
from edgewright.network.operators.partial_sums import reduction_axes
from edgewright.network.partial import PartialSums
from edgewright.network.parts import TensorRegion, cut, subnetwork
from edgewright.network.restrict import restrictable_hull
from tests.helpers.kernel_cases import Draw, regions
from tests.helpers.parts_runs import Values, assert_part, poisoned, predicted_macs, run_part, whole_values
from tests.helpers.random_networks import networks


@st.composite
def intervals(draw: Draw, size: int) -> list[Interval]:
    inner = draw(st.sets(st.integers(1, size - 1), max_size=2)) if size > 1 else set()
    return list(pairwise([0, *sorted(inner), size]))


def split(draw: Draw, network: Network, tensor: str) -> list[Region]:
    """The tensor along an axis in up to three parts, in which it can be had from its layer."""
    layer, whole = network.producers[tensor], Region.whole(network.tensors[tensor].shape)
    if not whole.bounds:
        return [whole]
    axis = draw(st.integers(0, len(whole.bounds) - 1))
    found = [whole.with_axis(axis, part) for part in draw(intervals(whole.shape[axis]))]
    dtype = network.tensors[layer.inputs[0]].dtype
    if any(restrictable_hull(layer.op, part, network.shapes(layer), dtype) != part for part in found):
        return [whole]
    return found


def shares_of(draw: Draw, network: Network, layer: Layer) -> list[Region]:
    """Two shares that the layer can be summed over, or none."""
    tensors = [network.tensors[name] for name in layer.inputs]
    x = Region.whole(tensors[0].shape)
    axes = [axis for axis in reduction_axes(layer.op, network.shapes(layer)) if x.shape[axis] > 1]
    is_summed = can_sum_partially(layer.op, tensors, network.tensors[layer.output], network.arithmetic)
    if not axes or not is_summed or draw(st.booleans()):
        return []
    axis = draw(st.sampled_from(axes))
    middle = draw(st.integers(1, x.shape[axis] - 1))
    return [x.with_axis(axis, part) for part in ((0, middle), (middle, x.shape[axis]))]


def in_parts(draw: Draw, network: Network, group: list[str], layer: Layer, values: Values) -> None:
    """What a group of layers gives of one tensor: region by region, or as sums that a part of its own finishes."""
    is_read = any(reader.name in group for reader in network.readers[layer.output])
    shares = [] if is_read else shares_of(draw, network, layer)
    for region in split(draw, network, layer.output):
        part = cut(network, group, {layer.output: region})
        sums: dict[TensorRegion, Array] = {}
        for share in shares:
            begin = cut(network, group, {layer.output: PartialSums(region, share)})
            sums |= {begin.outputs[own]: value for own, value in run_part(begin, values).items()}
        if shares:
            part = cut(network, [layer.name], {layer.output: region}, {layer.name: shares})
        for own, value in run_part(part, values, sums).items():
            at = part.outputs[own]
            values[at.tensor][at.region.slices] = value


def check_parts(draw: Draw, network: Network) -> None:
    """Layers in groups, what each group gives cut at random: all parts together give what the whole gives."""
    inputs = random_inputs(network, 1)
    expected = whole_values(network, inputs)
    values = {**inputs, **poisoned(network)}
    names = [layer.name for layer in network.layers]
    for first, last in draw(intervals(len(names))):
        group = names[first:last]
        for layer in network.layers[first:last]:
            outside = any(reader.name not in group for reader in network.readers[layer.output])
            if outside or layer.output in network.outputs:
                in_parts(draw, network, group, layer, values)
    for name in set(network.outputs) & set(network.producers):
        if network.tensors[name].dtype.is_float:
            np.testing.assert_allclose(values[name], expected[name], rtol=2e-4, atol=2e-4)
        else:
            np.testing.assert_array_equal(values[name], expected[name])


@settings(max_examples=60)
@given(data=st.data())
def test_random_networks_in_random_parts(data: st.DataObject) -> None:
    check_parts(data.draw, data.draw(networks()))


@pytest.mark.slow
@settings(max_examples=2000)
@given(data=st.data())
def test_many_random_networks_in_random_parts(data: st.DataObject) -> None:
    check_parts(data.draw, data.draw(networks(most=14)))


@settings(max_examples=60)
@given(network=networks(), data=st.data())
def test_several_regions_of_one_part(network: Network, data: st.DataObject) -> None:
    """All outputs of a network at once, a region of each: halos are computed again."""
    asked = {}
    for name in network.outputs:
        if name in network.producers:
            layer = network.producers[name]
            region = data.draw(regions(network.tensors[name].shape)) if network.tensors[name].shape else Region(())
            dtype = network.tensors[layer.inputs[0]].dtype
            asked[name] = restrictable_hull(layer.op, region, network.shapes(layer), dtype)
    part = cut(network, network.by_name, asked)
    whole = whole_values(network, random_inputs(network, 2))
    found = run_part(part, whole)
    for own, at in part.outputs.items():
        assert (at.network, at.share) == (network.name, None)
        assert at.region == asked[at.tensor]
        wanted = whole[at.tensor][at.region.slices]
        if wanted.dtype == np.float32:
            np.testing.assert_allclose(found[own], wanted, rtol=2e-4, atol=2e-4)
        else:
            np.testing.assert_array_equal(found[own], wanted)
    assert part.network.total_macs == predicted_macs(network, part)


def chain() -> Network:
    """Two convolutions of 3x3, the second behind the first, and a sum of the two."""
    b, rng = Builder("chain"), np.random.default_rng(0)
    x = b.input("x", (1, 12, 10, 4))
    for name in ("one", "two"):
        w = b.constant(f"{name}.w", rng.standard_normal((4, 3, 3, 4)).astype(np.float32))
        bias = b.constant(f"{name}.b", rng.standard_normal(4).astype(np.float32))
        x = b.layer(Conv2d(pads=(1, 1, 1, 1)), [x, w, bias], name)
    return b.build([b.layer(Binary(BinaryKind.ADD), ["one", x], "sum")])


def rows(network: Network, tensor: str, start: int, stop: int) -> Region:
    return Region.whole(network.tensors[tensor].shape).with_axis(1, (start, stop))


def test_halos_are_computed_again_or_read() -> None:
    network = chain()
    again = cut(network, ["one", "two", "sum"], {"sum": rows(network, "sum", 4, 8)})
    assert again.computed == {name: rows(network, name, *at) for name, at in
                              (("sum", (4, 8)), ("two", (4, 8)), ("one", (3, 9)))}  # fmt: skip
    assert {at.tensor: at.region for at in again.inputs.values()} == {"x": rows(network, "x", 2, 10)}
    read = cut(network, ["two", "sum"], {"sum": rows(network, "sum", 0, 4)})
    assert {at.tensor: at.region for at in read.inputs.values()} == {"one": rows(network, "one", 0, 5)}
    assert read.network.by_name["two"].op == Conv2d(pads=(1, 1, 0, 1))
    for part in (again, read):
        assert_part(part, whole_values(network, random_inputs(network)))


def test_weights_are_views_of_the_whole() -> None:
    network = chain()
    part = cut(network, ["one"], {"one": Region.whole((1, 12, 10, 4)).with_axis(3, (1, 3))})
    (w, b) = part.network.layers[0].inputs[1:]
    assert part.network.constants[w].shape == (2, 3, 3, 4)
    assert part.network.constants[w].base is network.constants["one.w"]
    assert np.shares_memory(part.network.constants[b], network.constants["one.b"])


def test_whole_tensors_are_the_layers_as_they_are() -> None:
    network = chain()
    whole = subnetwork(network, network.by_name)
    assert whole.layers == network.layers and whole.tensors == network.tensors
    assert all(whole.constants[name] is value for name, value in network.constants.items())
    assert subnetwork(network, ["two"]).inputs == ("one",)
    assert subnetwork(network, ["one"]).outputs == ("one",)


def test_inputs_that_a_part_of_a_concat_does_not_read_are_left_out() -> None:
    b = Builder("joined")
    names = [b.input(f"x{i}", (1, 2, 2, 3)) for i in range(3)]
    network = b.build([b.layer(Concat(3), names, "y")])
    part = cut(network, ["y"], {"y": Region.whole((1, 2, 2, 9)).with_axis(3, (4, 6))})
    assert {at.tensor: at.region.bounds[3] for at in part.inputs.values()} == {"x1": (1, 3)}


def test_inside_a_part_it_is_computed_whole() -> None:
    """A softmax of which a slice is read: the part computes all of it, and what is asked is a region of the slice."""
    b = Builder("net")
    y = b.layer(Softmax(), [b.input("x", (2, 6))], "softmax")
    network = b.build([b.layer(Slice((0, 0), (2, 4), (1, 1)), [y], "slice")])
    part = cut(network, ["softmax", "slice"], {"slice": Region(((0, 2), (1, 3)))})
    assert part.computed["softmax"] == Region.whole((2, 6))
    assert_part(part, whole_values(network, random_inputs(network)))


def test_bad_requests_are_refused() -> None:
    network = chain()
    whole = Region.whole((1, 12, 10, 4))
    with pytest.raises(ModelError, match=r"has no layer \['three'\]"):
        cut(network, ["three"], {"sum": whole})
    with pytest.raises(ModelError, match="'two', which 'two' computes, cannot be an output of a part without"):
        cut(network, ["one"], {"two": whole})
    with pytest.raises(ModelError, match="'x', which no layer computes"):
        cut(network, ["one"], {"x": whole})
    for region in (Region.whole((1, 12, 10)), whole.with_axis(1, (3, 13)), whole.with_axis(1, (3, 3))):
        with pytest.raises(ModelError, match="is no region of 'one' of shape"):
            cut(network, ["one"], {"one": region})
    with pytest.raises(ModelError, match="nothing is asked of this part"):
        cut(network, ["one"], {})
