"""Parts of single layers: every operator, any region, in every arithmetic; or the reason why not."""

from __future__ import annotations

import os
import zlib
from itertools import combinations, product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import Unsupported
from edgewright.network import Arithmetic, Builder, DType, Interval, Network, Quant, Region, random_inputs
from edgewright.network.operators import (
    BETWEEN_PARTS,
    AvgPool2d,
    Binary,
    BinaryKind,
    Conv2d,
    ConvTranspose2d,
    Coordinates,
    Custom,
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
    Softmax,
)
from edgewright.network.operators.base import RestrictedOperator, WidenedRegion
from edgewright.network.parts import cut
from edgewright.network.restrict import restrict, restrictable_hull
from tests.helpers.emitting_batch import check_together
from tests.helpers.emitting_cases import FEW, REAL, float_layer, quantised_layer
from tests.helpers.kernel_cases import CASES, cases, regions
from tests.helpers.parts_runs import assert_part, cut_or_widened, predicted_macs, whole_values
from tests.helpers.quantised_cases import KINDS, network_of
from tests.helpers.tflite_cases import CASES as TFLITE_CASES
from tests.helpers.tflite_cases import drawn

SOME = settings(max_examples=400 if os.environ.get("EDGEWRIGHT_THOROUGH") else 25)


def test_every_operator_is_cut() -> None:
    """Those of which nothing is said are the same wherever they compute: the tests below try all."""
    assert set(CASES) >= set(get_args(Op)) - {Custom, *BETWEEN_PARTS}


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


def test_one_window_is_no_global_average() -> None:
    """In onnxruntime's arithmetic a global average of bytes is summed in integers, any other in float32."""
    for stride in (1, 2):
        op = AvgPool2d((2, 2), (stride, stride))
        shapes = [(1, 4, 4, 2)]
        answer = restrict(op, Region(((0, 1), (1, 2), (0, 1), (0, 2))), shapes)
        assert (
            isinstance(answer, RestrictedOperator)
            and isinstance(answer.op, AvgPool2d)
            and answer.op.pads != (0, 0, 0, 0)
        )


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
        answer = restrict(op, whole.with_axis(1, bounds), shapes)
        assert isinstance(answer, RestrictedOperator) and isinstance(answer.op, ConvTranspose2d)
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
    assert_part(cut(network, ["y"], {"y": Region(((0, 2), (1, 3)))}), whole_values(network, random_inputs(network)))


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
def test_what_cannot_be_cut_says_why(op: Op, shape: tuple[int, ...], axis: int, bounds: Interval, reason: str) -> None:
    b = Builder("net")
    network = b.build([b.layer(op, [b.input("x", shape)], "layer", output="y")])
    region = Region.whole(network.tensors["y"].shape).with_axis(axis, bounds)
    with pytest.raises(Unsupported) as caught:
        cut(network, ["layer"], {"y": region})
    wider = restrictable_hull(op, region, [shape])
    name = type(op).__name__
    assert str(caught.value) == (
        f"layer 'layer' ({name}) cannot be cut to {region} along axis {axis}: {reason}. Ask for {wider}"
    )


@pytest.mark.parametrize("coordinates", Coordinates)
@pytest.mark.parametrize("mode", ResizeMode)
def test_every_row_of_a_doubled_image_can_be_had_alone(mode: ResizeMode, coordinates: Coordinates) -> None:
    x = (1, 9, 2, 1)
    size = (17, 3) if coordinates is Coordinates.ALIGN_CORNERS else (18, 4)
    op = Resize(size, mode, coordinates)
    for row in range(size[0]):
        region = Region.whole((1, *size, 1)).with_axis(1, (row, row + 1))
        answer = restrict(op, region, [x])
        assert isinstance(answer, RestrictedOperator) and answer.reads[0] is not None
        assert answer.reads[0].shape[1] <= 6


def test_a_wider_region_is_always_the_end_of_it() -> None:
    """Every operator computes its whole output, so that widening ends."""
    for op, shape in ((Expand((3, 4)), (1, 4)), (Dequantize(), (2, 3)), (Reshape((6,)), (2, 3))):
        answer = restrict(op, Region.whole(op.output_shape([shape])), [shape])
        assert not isinstance(answer, WidenedRegion)
