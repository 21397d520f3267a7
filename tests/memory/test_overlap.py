"""Safe distances, by hand and against an exhaustive simulation of every atom."""

import numpy as np
import pytest
from hypothesis import given

from edgewright.memory.overlap import Distance, distance, most_shared, plane_scratch
from edgewright.network import Builder, DType, Quant, Region
from edgewright.network.operators import Clamp, Conv2d, Dequantize, Grain, MaxPool2d, Quantize
from tests.helpers.random_networks import networks


def conv(size, channels, out, kernel, stride, pad, dtype=np.int8, groups=1):
    b = Builder("one")
    x = b.input("x", (1, size, size, channels), DType(np.dtype(dtype).name))
    w = b.constant("w", np.zeros((out, kernel, kernel, channels // groups), dtype))
    y = b.layer(Conv2d((stride, stride), pads=(pad,) * 4, groups=groups), [x, w], "y")
    net = b.build([y])
    return net, net.layers[0]


def test_a_3x3_convolution_trails_by_a_row_and_two_pixels():
    # Pixel p needs row y - 1 from column x - 1 on: pixel p - W - 1. It is done when p + 1 pixels are written.
    net, layer = conv(32, 16, 16, kernel=3, stride=1, pad=1)
    assert distance(net, layer, "x") == Distance(below=(32 + 2) * 16, above=(32 + 2) * 16)


def test_a_pointwise_convolution_trails_by_a_pixel():
    net, layer = conv(8, 16, 16, kernel=1, stride=1, pad=0)
    assert distance(net, layer, "x") == Distance(below=16, above=16)


def test_a_strided_convolution_may_start_where_its_input_does():
    # A row of output (4 pixels) takes half the bytes of two rows of input (16 pixels): writing falls behind.
    net, layer = conv(8, 4, 4, kernel=2, stride=2, pad=0)
    assert distance(net, layer, "x").below == 4


def test_an_expanding_pointwise_layer_shares_all_but_its_first_pixels():
    net, layer = conv(8, 8, 16, kernel=1, stride=1, pad=0)
    safe = distance(net, layer, "x")
    assert most_shared(8 * 8 * 8, 8 * 8 * 16, safe) == 8 * 8 * 8 - 8


def test_elementwise_layers_coincide_and_conversions_drift():
    b = Builder("convert")
    x = b.input("x", (1, 4, 4, 2))
    q = b.layer(Quantize(), [x], "q", dtype=DType.INT8, quant=Quant.of(0.1))
    d = b.layer(Dequantize(), [q], "d", dtype=DType.FLOAT32)
    net = b.build([b.layer(Clamp(0.0), [d], "r")])
    narrow, wide, same = (distance(net, layer, layer.inputs[0]) for layer in net.layers)
    assert same == Distance(0, 0)
    assert narrow.below < 0 and most_shared(128, 32, narrow) == 32  # four bytes read for each one written
    assert most_shared(32, 128, wide) == 32  # sweeping backwards, from the end


def test_a_window_over_everything_shares_nothing():
    b = Builder("global")
    x = b.input("x", (1, 4, 4, 2))
    net = b.build([b.layer(MaxPool2d((4, 4)), [x], "y")])
    safe = distance(net, net.layers[0], "x")
    assert most_shared(128, 8, safe) == 0


@pytest.mark.parametrize(("groups", "expected"), [(4, 64), (1, None)])
def test_only_depthwise_layers_work_plane_by_plane(groups, expected):
    net, layer = conv(8, 4, 4, kernel=3, stride=1, pad=1, groups=groups)
    assert plane_scratch(net, layer, "x") == expected


def is_safe(network, layer, source, delta):
    """Whether the output may lie `delta` bytes after the input: every atom played through, byte by byte."""
    x, y = network.tensors[source], network.tensors[layer.output]
    grain = layer.op.grain
    rank = len(y.shape)
    atoms = list(np.ndindex(*(y.shape if grain is Grain.ELEMENT else y.shape[: rank - 1])))
    where = np.arange(x.size).reshape(x.shape) * x.dtype.bytes
    target = np.arange(y.size).reshape(y.shape) * y.dtype.bytes + delta
    for sequence in (atoms, atoms[::-1]):
        written: set[int] = set()
        fine = True
        for atom in sequence:
            out = Region(tuple((i, i + 1) for i in atom) + (() if len(atom) == rank else ((0, y.shape[-1]),)))
            needs = layer.op.needs(out, network.shapes(layer))
            reads = {
                int(a) + k
                for name, region in zip(layer.inputs, needs, strict=True)
                if name == source
                for a in where[region.slices].ravel()
                for k in range(x.dtype.bytes)
            }
            writes = {int(a) + k for a in target[out.slices].ravel() for k in range(y.dtype.bytes)}
            if reads & written or (grain is not Grain.ELEMENT and reads & writes):
                fine = False
                break
            written |= writes
        if fine:
            return True
    return False


@given(networks(most=3))
def test_distances_are_safe_and_mostly_tight(network):
    for layer in network.layers:
        if layer.op.grain is Grain.WHOLE or network.tensors[layer.output].size > 400:
            continue
        for source in network.activations(layer):
            if network.tensors[source].size > 400:
                continue
            safe = distance(network, layer, source)
            x, y = network.tensors[source].bytes, network.tensors[layer.output].bytes
            assert is_safe(network, layer, source, max(-safe.below, -y))
            assert is_safe(network, layer, source, min(max(safe.above, -y), x))
