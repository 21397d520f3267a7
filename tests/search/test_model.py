"""Candidates as weights, ONNX models and PyTorch modules: each computes what the layers of the architecture say."""

from itertools import product
from random import Random

import numpy as np
import pytest

from edgewright.kernels.cost.call_context import CallContext, site_in
from edgewright.kernels.dsp.packing import layer_numbers
from edgewright.kernels.select import select
from edgewright.kernels.sites import NetworkFacts
from edgewright.memory import plan
from edgewright.network import Region
from edgewright.network.layerwise import compare_layers
from edgewright.network.read import read
from edgewright.network.reference import reference
from edgewright.platform.target import TARGETS
from edgewright.samples.builder import same_pads
from edgewright.search.architecture import INPUT, CnnArchitecture, PlainBlock, PrimitiveKind, SeparableBlock
from edgewright.search.model import (
    default_ranges,
    exactly_stored_weights,
    onnx_model,
    scaled_of,
    stored_weights,
    tensor_scales,
)
from edgewright.search.space import SearchSpace, SpaceKind
from edgewright.search.weights import LayerWeights, folded, fresh_state, inherited, random_weights, state_shapes
from tests.helpers.onnx_session import onnx_session

ALL = {"dense": (0, 2), "pools": (1, 2), "squeeze": (False, True), "pooling": ("mean", "max", "none")}
CASES = list(product(SpaceKind, range(3)))


def drawn(kind, seed):
    shape = (40, 1, 6) if kind is SpaceKind.SENSOR else (13, 10, 3)
    return SearchSpace(kind=kind, channels=(4, 16), **ALL).draw(Random(f"{kind.value}{seed}"), shape, 4)


def frames_of(architecture, seed, count=1):
    height, width, channels = architecture.input
    return np.random.default_rng(seed).standard_normal((count, channels, height, width), np.float32)


def convolved(layer, x, kernel, bias):
    """A convolution as a sum over its taps."""
    top, left, bottom, right = same_pads(*layer.source[:2], layer.kernel, layer.stride)
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    result = np.zeros((layer.shape[2], *layer.shape[:2])) + bias[:, None, None]
    for i, j in product(*map(range, layer.kernel)):
        seen = padded[:, i :: layer.stride[0], j :: layer.stride[1]][:, : layer.shape[0], : layer.shape[1]]
        if layer.kind is PrimitiveKind.DEPTHWISE:
            result += kernel[:, 0, i, j][:, None, None] * seen
        else:
            result += np.tensordot(kernel[:, :, i, j], seen, 1)
    return result


def exact(_name, values):
    return values


def computed(architecture, weights, frame, stored=exact):
    """All tensors of one frame, channels first, in float64, put through `stored`: an oracle of its own."""
    values = {INPUT: stored(INPUT, frame.astype(np.float64))}
    for layer in architecture.layers():
        x = values[layer.inputs[0]]
        match layer.kind:
            case PrimitiveKind.CONVOLUTION | PrimitiveKind.DEPTHWISE:
                y = convolved(layer, x, weights[layer.name].kernel, weights[layer.name].bias)
            case PrimitiveKind.DENSE:
                kernel = weights[layer.name].kernel
                y = (kernel.reshape(len(kernel), -1) @ x.reshape(-1) + weights[layer.name].bias)[:, None, None]
            case PrimitiveKind.MAX_POOL:
                height, width, channels = layer.shape
                (a, b), shape = layer.kernel, (channels, height, layer.kernel[0], width, layer.kernel[1])
                y = x[:, : height * a, : width * b].reshape(shape).max(axis=(2, 4))
            case PrimitiveKind.MEAN:
                y = x.mean(axis=(1, 2), keepdims=True)
            case PrimitiveKind.MAX:
                y = x.max(axis=(1, 2), keepdims=True)
            case PrimitiveKind.ADD:
                y = x + values[layer.inputs[1]]
            case PrimitiveKind.MULTIPLY:
                y = x * values[layer.inputs[1]]
            case PrimitiveKind.SIGMOID:
                y = 1 / (1 + np.exp(-x))
        values[layer.name] = stored(layer.name, np.maximum(y, 0) if layer.relu else y)
        assert values[layer.name].shape == (layer.shape[2], *layer.shape[:2])
    return values


def in_steps(architecture, ranges):
    """What int8 makes of a tensor's values."""
    kinds = {layer.name: layer.kind for layer in architecture.layers()}

    def stored(name, values):
        if kinds.get(name) in (PrimitiveKind.MAX, PrimitiveKind.MAX_POOL):
            return values
        scale, zero = (1 / 256, -128) if kinds.get(name) is PrimitiveKind.SIGMOID else scaled_of(ranges[name])
        return (np.clip(np.rint(values / scale) + zero, -128, 127) - zero) * scale

    return stored


def rounded_weights(weights):
    """Weights as int8 per output; biases are so fine that rounding them makes no difference."""
    found = {}
    for name, layer in weights.items():
        step = np.abs(layer.kernel).max(axis=(1, 2, 3), keepdims=True) / 127
        found[name] = LayerWeights(np.rint(layer.kernel / step) * step, layer.bias)
    return found


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_models_compute_what_the_layers_say(kind, seed):
    architecture = drawn(kind, seed)
    weights, frame = random_weights(architecture, seed), frames_of(architecture, seed)
    tensors = computed(architecture, weights, frame[0])
    ranges = {name: (float(tensor.min()), float(tensor.max())) for name, tensor in tensors.items()}
    stepped = computed(architecture, rounded_weights(weights), frame[0], in_steps(architecture, ranges))
    for model, expected, tolerance in (
        (onnx_model(architecture, weights), tensors, 1e-4 * np.abs(tensors["classes"]).max()),
        # A tie that is rounded the other way may move later values by some steps.
        (onnx_model(architecture, weights, ranges, is_exact=False), stepped, 4.5 * scaled_of(ranges["classes"])[0]),
    ):
        network = read(model)
        runtime = reference(model.SerializeToString(), network)
        given = {INPUT: frame.transpose(0, 2, 3, 1)}
        result = runtime.run(given)
        np.testing.assert_allclose(result["classes"], expected["classes"].reshape(1, -1), rtol=0, atol=tolerance)
        assert compare_layers(network, runtime, given, result).passes


def test_the_structure_follows_from_the_architecture_alone():
    architecture = drawn(SpaceKind.INVERTED, 1)

    def nodes(*values):
        return [(node.op_type, list(node.input)) for node in onnx_model(architecture, *values).graph.node]

    ranges = default_ranges(architecture)
    other = {name: (low / 3, high * 2) for name, (low, high) in ranges.items()}
    assert nodes(None, ranges) == nodes(random_weights(architecture, 5), other)
    assert onnx_model(architecture) == onnx_model(architecture)


def test_an_open_batch_takes_several_frames():
    architecture = drawn(SpaceKind.RESIDUAL, 0)
    weights, frames = random_weights(architecture), frames_of(architecture, 0, 3)
    session = onnx_session(onnx_model(architecture, weights, batch=None))
    expected = [computed(architecture, weights, frame)["classes"].reshape(-1) for frame in frames]
    np.testing.assert_allclose(session.run(None, {INPUT: frames})[0], expected, rtol=1e-4, atol=1e-5)


def test_scales_represent_zero_and_the_whole_range():
    for low, high in ((0.0, 1.0), (-1.0, 3.0), (-5.0, -1.0), (2.0, 3.0), (0.0, 0.0)):
        scale, zero = scaled_of((low, high))
        least, most = (-128 - zero) * scale, (127 - zero) * scale
        assert least <= min(low, 0) + scale and most >= max(high, 0) - scale and -128 <= zero <= 127


def test_a_large_bias_beside_tiny_weights_still_fits():
    weights = LayerWeights(np.full((2, 1, 1, 1), 1e-9, np.float32), np.array([100.0, 0.0], np.float32))
    stored = stored_weights(weights, 0.01)
    assert stored.bias[0] * stored.scale[0] * 0.01 == pytest.approx(100.0) and abs(stored.kernel).max() <= 127


@pytest.mark.parametrize("kernel", [(3, 3), (5, 5)])
def test_layers_have_exact_multipliers(kernel):
    """Without other scales, some channel of such layers has none: slow loops compute depthwise ones."""
    architecture = CnnArchitecture((8, 8, 3), (PlainBlock(160, (3, 3)), SeparableBlock(8, kernel)), 4)

    def ways(is_exact):
        ranges = {name: (1.1 * low, 0.9 * high) for name, (low, high) in default_ranges(architecture).items()}
        network = read(onnx_model(architecture, None, ranges, is_exact=is_exact))
        facts = NetworkFacts(network, TARGETS["cortex-m4"])
        chosen = select(plan(network), facts).selections
        layers = {key.layer: one.kernel for key, one in chosen.items() if "." in key.layer}
        sites = {name: site_in(facts, name, whole_output(network, name), CallContext()) for name in layers}
        how = {name: layer_numbers(site, False).kind for name, site in sites.items() if layers[name] == "dsp_conv"}
        return {*layers.values()}, {*how.values()}

    kernels, how = ways(is_exact=False)
    assert "loops_conv" in kernels and "float" in how
    kernels, how = ways(is_exact=True)
    assert "loops_conv" not in kernels and how == {"plain"}


def whole_output(network, layer):
    return Region.whole(network.tensors[network.by_name[layer].output].shape)


def test_scales_with_exact_multipliers_hardly_differ():
    architecture = CnnArchitecture((8, 8, 3), (PlainBlock(160, (3, 3)),), 4)
    layer, weights = architecture.layers()[0], random_weights(architecture)["block0.conv"]
    source, result = scaled_of((-4.0, 4.0)), scaled_of((0.0, 3.7))
    plain, exact = stored_weights(weights, source[0]), exactly_stored_weights(layer, weights, source, result)
    assert (exact.scale != plain.scale).sum() > 0 and np.all(exact.scale <= 1.012 * plain.scale)
    assert np.all(exact.scale >= plain.scale)
    error = exact.kernel * exact.scale[:, None, None, None] - weights.kernel
    assert np.all(np.abs(error) <= 0.51 * exact.scale[:, None, None, None])
    np.testing.assert_allclose(exact.bias * exact.scale * source[0], weights.bias, atol=1e-4)


# Inheritance


def chain(*blocks):
    return CnnArchitecture((8, 8, 2), blocks, 3)


def counted(architecture):
    """A state in which all values differ."""
    start, state = 0, {}
    for name, shape in state_shapes(architecture).items():
        size = int(np.prod(shape))
        state[name] = np.arange(start, start + size, dtype=np.float32).reshape(shape)
        start += size
    return state


def test_an_equal_child_inherits_everything():
    parent = drawn(SpaceKind.INVERTED, 2)
    state = counted(parent)
    child = inherited(parent, parent, state, 0)
    assert child.keys() == state.keys()
    assert all(np.array_equal(child[name], state[name]) for name in state)


def test_channels_are_cut_and_kernels_keep_their_middle():
    parent = chain(PlainBlock(4, (5, 5)), PlainBlock(4, (3, 3)))
    child = chain(PlainBlock(3, (3, 3)), PlainBlock(6, (5, 5)))
    state = counted(parent)
    found = inherited(child, parent, state, 0)
    assert np.array_equal(found["block0.conv.kernel"], state["block0.conv.kernel"][:3, :, 1:4, 1:4])
    assert np.array_equal(found["block0.conv.scale"], state["block0.conv.scale"][:3])
    assert np.array_equal(found["block1.conv.kernel"][:4, :, 1:4, 1:4], state["block1.conv.kernel"][:, :3])
    fresh = fresh_state(child, 0)["block1.conv.kernel"]
    assert np.array_equal(found["block1.conv.kernel"][4:], fresh[4:])
    assert np.array_equal(found["block1.conv.variance"][4:], [1, 1])


def test_blocks_behind_an_inserted_one_keep_their_weights():
    first, second, new = PlainBlock(4, (3, 3)), SeparableBlock(4, (3, 3)), SeparableBlock(4, (5, 5))
    parent, child = chain(first, second), chain(first, new, second)
    state = counted(parent)
    found = inherited(child, parent, state, 0)
    assert np.array_equal(found["block2.depthwise.kernel"], state["block1.depthwise.kernel"])
    assert np.array_equal(found["block1.depthwise.kernel"], fresh_state(child, 0)["block1.depthwise.kernel"])
    assert np.array_equal(found["classes.kernel"], state["classes.kernel"])


# PyTorch


@pytest.mark.parametrize("kind", SpaceKind)
def test_modules_compute_what_the_layers_say(kind):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from edgewright.search import module as modules

    architecture = drawn(kind, 1)
    module = modules.module_of(architecture, 3)
    frames = frames_of(architecture, 1, 4)
    module.train()
    module(torch.from_numpy(frames))  # moves the statistics of batch normalisations
    state = modules.state_of(module)
    assert {name: array.shape for name, array in state.items()} == state_shapes(architecture)
    again = modules.module_of(architecture, 4)
    modules.load_state(again, state)
    weights = modules.weights_of(again)
    expected = folded(architecture, state)
    assert all(np.array_equal(weights[name].kernel, expected[name].kernel) for name in expected)
    with torch.no_grad():
        result = again.eval()(torch.from_numpy(frames)).numpy()
    tensors = [computed(architecture, weights, frame) for frame in frames]
    np.testing.assert_allclose(result, [t["classes"].reshape(-1) for t in tensors], rtol=1e-3, atol=1e-5)
    for name, (low, high) in modules.ranges_of(again, [frames[:2], frames[2:]]).items():
        values = np.array([t[name] for t in tensors])
        assert low == pytest.approx(min(0, values.min()), abs=1e-4)
        assert high == pytest.approx(max(0, values.max()), abs=1e-4)
    ranges = {name: (float(values.min()), float(values.max())) for name, values in tensors[0].items()}
    again.scales = tensor_scales(architecture, ranges)
    result = again(torch.from_numpy(frames[:1])).detach().numpy()
    expected = computed(architecture, rounded_weights(weights), frames[0], in_steps(architecture, ranges))["classes"]
    np.testing.assert_allclose(result, expected.reshape(1, -1), rtol=0, atol=4.5 * again.scales["classes"][0])


def test_the_extra_is_named_where_torch_is_missing(monkeypatch):
    from edgewright.errors import InputError
    from edgewright.search import module as modules

    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install 'edgewright\[search\]'"):
        modules.torch_module()
