"""Scenarios that are slices of one network: their weights are views of the largest one's, and results stay exact."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from edgewright.application.library import AppLibrary, emit_application
from edgewright.application.search import JointSearch
from edgewright.emit.deployment.harness import TrialScript
from edgewright.emit.deployment.trial import LibraryTrial
from edgewright.kernels.printing.constants import Constants, WeightRows, WeightView
from edgewright.network import Arithmetic, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Conv2d
from edgewright.network.read import read
from edgewright.program.nesting import nesting_of, split_channels
from edgewright.samples import quantise as quantising
from edgewright.samples.builder import ModelBuilder
from tests.helpers.nested_networks import application_of, early_exit, narrowed, shortened
from tests.helpers.tools import needs_board

FEW = TrialScript(interleavings=2, starts=6)
WIDTHS = (1.0, 0.75, 0.5)


@cache
def whole(arithmetic: Arithmetic = Arithmetic.ONNX, seed: int = 0) -> Network:
    """Convolutions of windows and of points, depthwise ones, a residual connection, a dense layer."""
    net = ModelBuilder(f"all_kinds{seed}")
    x = net.relu(net.conv(net.input(1, 3, 12, 12), 16, 3))
    x = net.relu(net.add(x, net.conv(x, 16, 3)))
    x = net.relu(net.conv(net.relu(net.depthwise(x, 3, 2)), 32))
    x = net.relu(net.conv(x, 48, 3, 2))
    x = net.relu(net.conv(net.relu(net.depthwise(x)), 64))
    return replace(read(quantising.quantise(net.model(net.classifier(x, 10)))), arithmetic=arithmetic)


def library_of(networks: list[Network], target: str, folder: Path, keys: str = "plain = true") -> AppLibrary:
    application = application_of(networks, target, folder, keys)
    return emit_application(application, JointSearch(application).least.layout)


def test_slices_are_found_by_their_values() -> None:
    networks = [narrowed(whole(), width) for width in (0.5, 1.0)]
    nesting = nesting_of(networks)
    assert nesting is not None
    for small, large in zip(networks[0].layers, networks[1].layers, strict=True):
        if len(small.inputs) < 2 or small.inputs[1] not in networks[0].constants:
            continue
        found = nesting.whole(networks[0].constants[small.inputs[1]])
        assert found is not None and (found.network, found.layer) == (networks[1], large)
        assert nesting.whole(networks[1].constants[large.inputs[1]]) is None
    assert nesting_of([whole(), whole()]) is None  # the same, and no slices
    assert nesting_of([whole(), early_exit(whole(), 4)]) is None


def test_networks_without_blocks_compute_the_other_layers() -> None:
    """Two convolutions of one shape: without the first one, the second one's weights act on what comes before."""
    net = ModelBuilder("three")
    x = net.relu(net.conv(net.input(1, 3, 8, 8), 8, 3))
    for _ in range(2):
        x = net.relu(net.conv(x, 8, 3))
    model = read(quantising.quantise(net.model(net.classifier(x, 10))))
    convolutions = [at for at, layer in enumerate(model.layers) if isinstance(layer.op, Conv2d)]
    first, second = convolutions[1:3]
    short = shortened(model, [(first, second)])
    assert [layer.name for layer in short.layers] == [one.name for at, one in enumerate(model.layers) if at != first]
    assert short.layers[first].inputs == model.layers[second].inputs
    assert short.tensors[short.layers[first - 1].output] == model.tensors[model.layers[first].output]
    both = shortened(model, [(first, second), (second, second + 1)])
    assert len(both.layers) == len(model.layers) - 2
    inputs = random_inputs(model)
    assert all(value.shape == (1, 10) for net in (short, both) for value in execute(net, inputs).values())


def test_a_slice_of_split_weights_begins_their_rows() -> None:
    weights = np.arange(8 * 3 * 3 * 16, dtype=np.int16).reshape(8, 3, 3, 16)
    rows = split_channels(weights).reshape(8, -1)
    small = split_channels(weights[:4, :, :, :8]).reshape(4, -1)
    np.testing.assert_array_equal(rows[:4, : small.shape[1]], small)


def test_views_are_beginnings_of_arrays_or_of_their_rows() -> None:
    constants, rng = Constants("x", has_views=True), np.random.default_rng(1)
    matrix = rng.integers(-128, 128, (6, 8)).astype(np.int8)

    def add(values: np.ndarray, *widths: int) -> str:
        return constants.add(values, "", rows=WeightRows(widths, values.shape[1] // widths[0]) if widths else None)

    columns, lines = add(matrix[:2, :4], 2, 2), add(matrix[:3], 2, 2, 2)
    flat, other = add(matrix[0, :5]), add(matrix[1:3], 2, 2)
    wider = add(matrix[:2], 4, 4)  # rows of other blocks: as bytes they are the first of the whole
    all_rows = add(matrix, 2, 2, 2, 2, 2, 2)
    assert constants.views == {
        columns: WeightView(all_rows, 4),
        lines: WeightView(all_rows, 4),
        flat: WeightView(all_rows, None),
        wider: WeightView(all_rows, 2),
    }
    assert constants.names == [other, all_rows]
    assert constants.bytes == 16 + 48


def test_nothing_is_a_view_in_ordinary_libraries() -> None:
    constants = Constants("x")
    values = np.arange(8, dtype=np.int8)
    assert constants.add(values[:4], "a") != constants.add(values, "b") and not constants.views
    assert len(constants.names) == 2


@pytest.mark.parametrize(
    ("target", "arithmetic", "most"),
    [
        ("cortex-m4", Arithmetic.ONNX, 1.05),
        ("cortex-m4", Arithmetic.TFLITE, 1.0),
        ("cortex-m0plus", Arithmetic.ONNX, 1.07),  # offsets hold what zero points add, and each width has its own
        pytest.param("rv32imc", Arithmetic.TFLITE, 1.07, marks=pytest.mark.slow),
        pytest.param("rv32imc", Arithmetic.ONNX, 1.07, marks=pytest.mark.slow),
        pytest.param("cortex-m0plus", Arithmetic.TFLITE, 1.07, marks=pytest.mark.slow),
        pytest.param("cortex-m55", Arithmetic.ONNX, 1.7, marks=pytest.mark.slow),  # windows are not split
        pytest.param("cortex-m55", Arithmetic.TFLITE, 1.7, marks=pytest.mark.slow),
    ],
)
def test_nested_scenarios_are_exact_and_take_the_weights_of_the_largest(
    target: str, arithmetic: Arithmetic, most: float, tmp_path: Path
) -> None:
    networks = [narrowed(whole(arithmetic), width) for width in WIDTHS]
    alone = library_of(networks[:1], target, tmp_path).weight_bytes
    library = library_of(networks[::-1], target, tmp_path)
    assert library.weight_bytes <= most * alone
    result = LibraryTrial(library).run(FEW)
    assert not result.wrong and result.runs == 12


def test_slices_with_biases_of_their_own_share_weights_alone(tmp_path: Path) -> None:
    networks = [narrowed(whole(Arithmetic.TFLITE), width, seed=1) for width in WIDTHS[::2]]
    alone = library_of(networks[:1], "cortex-m4", tmp_path).weight_bytes
    library = library_of(networks, "cortex-m4", tmp_path)
    assert alone < library.weight_bytes < 1.2 * alone
    assert not LibraryTrial(library).run(FEW).wrong


@pytest.mark.parametrize(
    "target", ["cortex-m4", *(pytest.param(one, marks=pytest.mark.slow) for one in ("rv32imc", "cortex-m0plus"))]
)
def test_streamed_plans_read_views_as_well(target: str, tmp_path: Path) -> None:
    """Rows in rolling buffers, channels in parts."""
    networks = [narrowed(whole(Arithmetic.TFLITE), width) for width in (0.5, 1.0)]
    library = library_of(networks, target, tmp_path, "phases = true")
    assert any(view.window for part in library.parts.values() for view in part.plan.views.values())
    assert not LibraryTrial(library).run(FEW).wrong


@pytest.mark.parametrize("target", ["cortex-m4", pytest.param("host", marks=pytest.mark.slow)])
def test_early_exits_share_arrays_and_kernels(target: str, tmp_path: Path) -> None:
    """The first layers with other heads: nothing is stored twice, whatever layers are called and where they stand."""
    deep = whole(Arithmetic.TFLITE)
    names = {layer.name: f"other {layer.name}" for layer in deep.layers}
    exits = [early_exit(deep, count) for count in (4, 7)]
    exits[1] = replace(exits[1], layers=tuple(replace(x, name=names.get(x.name, x.name)) for x in exits[1].layers))
    alone, library = (library_of(networks, target, tmp_path) for networks in ([deep], [deep, *exits]))
    assert library.weight_bytes == alone.weight_bytes
    kernels = "app_kernels.c"
    own, shared = str(alone.files[kernels]), str(library.files[kernels])
    assert len(shared) < 1.15 * len(own)  # the pool of the heads
    assert not LibraryTrial(library).run(FEW).wrong


@pytest.mark.parametrize(
    ("target", "arithmetic", "keys"),
    [
        ("cortex-m4", Arithmetic.ONNX, ""),  # rows, threes of pixels, fours of channels
        ("rv32imc", Arithmetic.TFLITE, "plain = true"),
        pytest.param("cortex-m4", Arithmetic.TFLITE, "phases = true", marks=pytest.mark.slow),
        pytest.param("cortex-m0plus", Arithmetic.TFLITE, "plain = true", marks=pytest.mark.slow),
    ],
)
def test_nested_scenarios_on_the_virtual_board(target: str, arithmetic: Arithmetic, keys: str, tmp_path: Path) -> None:
    needs_board(target)
    library = library_of([narrowed(whole(arithmetic), width) for width in (0.5, 1.0)], target, tmp_path, keys)
    found = LibraryTrial(library).run_on_board(FEW)
    assert not found.result.wrong and found.result.runs == 12


def test_narrowed_networks_are_slices() -> None:
    small = narrowed(whole(), 0.5)
    assert small.tensors[small.outputs[0]].shape == whole().tensors[whole().outputs[0]].shape
    assert small.total_macs < 0.4 * whole().total_macs
    assert execute(small, random_inputs(small, 1))
