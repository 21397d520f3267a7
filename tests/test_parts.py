"""Parts of networks: whatever is cut out, along whichever axes, gives what the whole gives there."""

from __future__ import annotations

import zlib
from itertools import combinations, pairwise, product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import ModelError, Unsupported
from edgewright.network import Arithmetic, Builder, DType, Interval, Network, Quant, Region, random_inputs
from edgewright.network.alone import ALONE, Alone, Wider, alone, computable
from edgewright.network.operators import (
    AvgPool2d,
    Binary,
    BinaryKind,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Coordinates,
    DepthToSpace,
    Dequantize,
    DynamicRange,
    Expand,
    Op,
    Pad,
    PadMode,
    Reshape,
    Resize,
    ResizeMode,
    Slice,
    Softmax,
)
from edgewright.network.parts import cut
from emitting_batch import check_together
from emitting_cases import FEW, REAL, float_layer, quantised_layer
from kernel_cases import CASES, Draw, cases, regions
from parts_runs import assert_part, cut_or_widened, poisoned, predicted_macs, run_part, whole_values
from quantised_cases import KINDS, network_of
from random_networks import networks
from tflite_cases import CASES as TFLITE_CASES
from tflite_cases import drawn

SOME = settings(max_examples=25)


def test_every_operator_says_how_it_is_cut() -> None:
    assert set(ALONE) == set(get_args(Op))


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
@SOME
@given(data=st.data())
def test_a_part_of_an_operator_on_real_numbers(kind: type, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    constants = data.draw(st.sets(st.integers(1, 4)))
    network, inputs = float_layer(case, sorted(constants))
    check_region(data, network, inputs)


@pytest.mark.parametrize("kind", [kind for kind in CASES if kind not in REAL], ids=lambda kind: kind.__name__)
@SOME
@given(data=st.data())
def test_a_part_of_an_operator_as_onnxruntime_computes_it(kind: type, data: st.DataObject) -> None:
    case = data.draw(cases(kind))
    dtype = data.draw(st.sampled_from([DType.INT8, DType.UINT8, DType.INT16]))
    check_region(data, *quantised_layer(case, dtype, data.draw(st.booleans())))


@pytest.mark.parametrize(("name", "dtype"), TFLITE_CASES, ids=str)
def test_a_part_of_an_operator_as_litert_computes_it(name: str, dtype: str) -> None:
    for seed in range(4):
        _, network, inputs = drawn(name, dtype, seed)
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        whole = whole_values(network, inputs)
        for _ in range(4):
            tensor = network.outputs[0]
            if tensor in network.producers:
                region = random_region(rng, network.tensors[tensor].shape)
                part = cut_or_widened(network, [layer.name for layer in network.layers], tensor, region)
                assert_part(part, whole)


def random_region(rng: np.random.Generator, shape: tuple[int, ...]) -> Region:
    bounds = []
    for size in shape:
        start = int(rng.integers(0, size))
        bounds.append((0, size) if rng.random() < 0.4 else (start, int(rng.integers(start + 1, size + 1))))
    return Region(tuple(bounds))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", [Conv2d, AvgPool2d, Binary], ids=lambda op: op.__name__)
@SOME
@given(data=st.data())
def test_scales_of_channels_are_cut_too(op: type, kind: str, data: st.DataObject) -> None:
    """Weights have a scale for each channel here, and arithmetic is that of all three runtimes."""
    case = data.draw(cases(op))
    if op is Binary:
        case = data.draw(cases(op).filter(lambda c: c.op.kind in (BinaryKind.ADD, BinaryKind.MUL)))
        if kind.startswith("tflite") and len(case.shapes[1]) and case.shapes[1][0] > 1:
            return  # which has one scale for each operand
    network = network_of(case, kind)
    try:
        check_region(data, network, random_inputs(network, case.seed))
    except Unsupported as error:
        if op is not Binary or "a single one would be left" not in str(error):
            raise


def check_region(data: st.DataObject, network: Network, inputs: dict) -> None:
    """Any region of the one layer's output is a part, or a wider one that the refusal names."""
    layer = network.layers[-1]
    region = data.draw(regions(network.tensors[layer.output].shape))
    part = cut_or_widened(network, [layer.name], layer.output, region)
    assert_part(part, whole_values(network, inputs))
    assert part.network.total_macs == predicted_macs(network, part)
    for own, value in part.network.constants.items():
        assert any(np.shares_memory(value, other) for other in network.constants.values()), own


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
    if any(computable(layer.op, part, network.shapes(layer), dtype) != part for part in found):
        return [whole]
    return found


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
            if not outside and layer.output not in network.outputs:
                continue
            for region in split(draw, network, layer.output):
                part = cut(network, group, {layer.output: region})
                for own, value in run_part(part, values).items():
                    at = part.outputs[own]
                    values[at.tensor][at.region.slices] = value
    for name in network.outputs:
        if name not in network.producers:
            continue
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
            asked[name] = computable(layer.op, region, network.shapes(layer), dtype)
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
    whole = network.subnetwork(network.by_name)
    assert whole.layers == network.layers and whole.tensors == network.tensors
    assert all(whole.constants[name] is value for name, value in network.constants.items())
    assert network.subnetwork(["two"]).inputs == ("one",)
    assert network.subnetwork(["one"]).outputs == ("one",)


def test_inputs_that_a_part_of_a_concat_does_not_read_are_left_out() -> None:
    b = Builder("joined")
    names = [b.input(f"x{i}", (1, 2, 2, 3)) for i in range(3)]
    network = b.build([b.layer(Concat(3), names, "y")])
    part = cut(network, ["y"], {"y": Region.whole((1, 2, 2, 9)).with_axis(3, (4, 6))})
    assert {at.tensor: at.region.bounds[3] for at in part.inputs.values()} == {"x1": (1, 3)}


def test_one_window_is_no_global_average() -> None:
    """In onnxruntime's arithmetic a global average of bytes is summed in integers, any other in float32."""
    for stride in (1, 2):
        op = AvgPool2d((2, 2), (stride, stride))
        shapes = [(1, 4, 4, 2)]
        answer = alone(op, Region(((0, 1), (1, 2), (0, 1), (0, 2))), shapes)
        assert isinstance(answer, Alone) and isinstance(answer.op, AvgPool2d) and answer.op.pads != (0, 0, 0, 0)


def check_every_interval(op: Op, shape: tuple[int, ...], axis: int = 1) -> None:
    """All ranges along an axis, each alone."""
    b = Builder("net")
    network = b.build([b.layer(op, [b.input("x", shape)], "y")])
    whole = whole_values(network, random_inputs(network))
    for bounds in combinations(range(whole["y"].shape[axis] + 1), 2):
        region = Region.whole(whole["y"].shape).with_axis(axis, bounds)
        assert_part(cut(network, ["y"], {"y": region}), whole)


@pytest.mark.parametrize("count_pads", [False, True])
@pytest.mark.parametrize("uncounted", [0, 1, 2])
def test_averages_count_the_taps_of_the_whole(count_pads: bool, uncounted: int) -> None:
    for stride, bottom in product((1, 2), (0, 1, 2)):
        pads = (1, 0, bottom + uncounted, 0)
        op = AvgPool2d((3, 1), (stride, 1), pads=pads, count_pads=count_pads, uncounted=(uncounted, 0))
        check_every_interval(op, (1, 5, 2, 1))


@pytest.mark.parametrize("mode", PadMode)
def test_borders_are_repeated_as_those_of_the_whole(mode: PadMode) -> None:
    """Pads deeper than the image among them, and pads on the one side where the other is cropped."""
    for size, before, after in product((1, 2, 4), (-1, 0, 1, 3), (-1, 0, 2, 5)):
        if size + min(before, 0) + min(after, 0) > 0:
            check_every_interval(Pad((0, before), (0, after), mode), (1, size))


@pytest.mark.parametrize("kernel", [1, 2, 5])
def test_parts_of_transposed_convolutions_crop_and_never_pad(kernel: int) -> None:
    """So that they can be written as ONNX; with strides beyond the kernel there are rows that no input reaches."""
    op, shapes = ConvTranspose2d((3, 1), pads=(1, 0, 0, 0)), [(1, 5, 2, 1), (1, kernel, 1, 1)]
    whole = Region.whole(op.output_shape(shapes))
    for bounds in combinations(range(whole.shape[1] + 1), 2):
        answer = alone(op, whole.with_axis(1, bounds), shapes)
        assert isinstance(answer, Alone) and isinstance(answer.op, ConvTranspose2d)
        assert min(answer.op.pads) >= 0


def test_one_scale_of_several_is_not_taken_for_the_only_one() -> None:
    """Of a tensor with one scale another kernel may be chosen, which rounds ties otherwise."""
    b = Builder("net", Arithmetic.QLINEAR)
    x = b.input("x", (2, 3), DType.INT8, Quant.of(0.1))
    w = b.constant("w", np.ones((2, 1), np.int8), Quant((0.5, 0.25), (0, 0), 0))
    y = b.layer(Binary(BinaryKind.MUL), [x, w], "y", dtype=DType.INT8, quant=Quant.of(0.2))
    network = b.build([y])
    with pytest.raises(Unsupported, match="of its scales along axis 0 a single one would be left"):
        cut(network, ["y"], {"y": Region(((0, 1), (0, 3)))})
    assert_part(
        cut(network, ["y"], {"y": Region(((0, 2), (1, 3)))}), whole_values(network, random_inputs(network))
    )


@FEW
@given(data=st.data())
def test_parts_are_emitted_like_other_networks(data: st.DataObject) -> None:
    """Pads that crop, joins of one tensor, windows that lie in the padding alone: C has them all."""
    made, inputs = [], []
    for kind in CASES:
        dtype = data.draw(st.sampled_from([None, DType.INT8, DType.UINT8]))
        case = data.draw(cases(kind))
        is_real = dtype is None or kind in REAL
        network, values = float_layer(case) if is_real else quantised_layer(case, dtype, data.draw(st.booleans()))
        layer = network.layers[-1]
        region = data.draw(regions(network.tensors[layer.output].shape))
        part = cut_or_widened(network, [layer.name], layer.output, region)
        whole = whole_values(network, values)
        made.append(part.network)
        inputs.append({own: np.array(whole[at.tensor][at.region.slices]) for own, at in part.inputs.items()})
    check_together(made, ("host", "cortex-m4"), inputs=inputs)


@pytest.mark.parametrize(
    ("op", "shape", "axis", "bounds", "reason"),
    [
        (Softmax(), (1, 4, 4, 6), 3, (0, 3), "each element depends on all along it"),
        (Reshape((1, 16, 6)), (1, 4, 4, 6), 1, (2, 6), "it is no box of the input's (4, 4)"),
        (
            Resize((7, 4), ResizeMode.LINEAR),
            (1, 4, 4, 6),
            1,
            (2, 3),
            "places of 7 in 4 are exact in the whole only",
        ),
        (DepthToSpace(2), (1, 4, 4, 8), 3, (0, 1), "the channels of each block lie apart in the input"),
        (DynamicRange(), (1, 4, 4, 6), 1, (0, 1), "scale, inverse and zero point belong together"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, get_args(Op)) else "",
)
def test_what_cannot_be_cut_says_why(
    op: Op, shape: tuple[int, ...], axis: int, bounds: Interval, reason: str
) -> None:
    b = Builder("net")
    network = b.build([b.layer(op, [b.input("x", shape)], "layer", output="y")])
    region = Region.whole(network.tensors["y"].shape).with_axis(axis, bounds)
    with pytest.raises(Unsupported) as caught:
        cut(network, ["layer"], {"y": region})
    wider = computable(op, region, [shape])
    name = type(op).__name__
    assert str(caught.value) == (
        f"layer 'layer' ({name}) cannot be cut to {region} along axis {axis}: {reason}. Ask for {wider}"
    )


def test_inside_a_part_it_is_computed_whole() -> None:
    """A softmax of which a slice is read: the part computes all of it, and what is asked is a region of the slice."""
    b = Builder("net")
    y = b.layer(Softmax(), [b.input("x", (2, 6))], "softmax")
    network = b.build([b.layer(Slice((0, 0), (2, 4), (1, 1)), [y], "slice")])
    part = cut(network, ["softmax", "slice"], {"slice": Region(((0, 2), (1, 3)))})
    assert part.computed["softmax"] == Region.whole((2, 6))
    assert_part(part, whole_values(network, random_inputs(network)))


@pytest.mark.parametrize("coordinates", Coordinates)
@pytest.mark.parametrize("mode", ResizeMode)
def test_every_row_of_a_doubled_image_can_be_had_alone(mode: ResizeMode, coordinates: Coordinates) -> None:
    x = (1, 9, 2, 1)
    size = (17, 3) if coordinates is Coordinates.ALIGN_CORNERS else (18, 4)
    op = Resize(size, mode, coordinates)
    for row in range(size[0]):
        region = Region.whole((1, *size, 1)).with_axis(1, (row, row + 1))
        answer = alone(op, region, [x])
        assert isinstance(answer, Alone) and answer.reads[0] is not None
        assert answer.reads[0].shape[1] <= 6


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


def test_a_wider_region_is_always_the_end_of_it() -> None:
    """Every operator computes its whole output, so that widening ends."""
    for op, shape in ((Expand((3, 4)), (1, 4)), (Dequantize(), (2, 3)), (Reshape((6,)), (2, 3))):
        answer = alone(op, Region.whole(op.output_shape([shape])), [shape])
        assert not isinstance(answer, Wider)
