"""Quantised ONNX networks judged layer by layer, each from onnxruntime's own inputs; the first to differ is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgewright.emit import TARGETS, emit
from edgewright.emit import verify as verification
from edgewright.emit.verify import verify
from edgewright.errors import EdgewrightError
from edgewright.memory import plan as make_plan
from edgewright.network import Array, Layer, Network, layerwise
from edgewright.network.interface import random_file_inputs
from edgewright.network.kernels import execute, run_layer
from edgewright.network.layerwise import Layerwise, compare_layers
from edgewright.network.read import read_bytes
from edgewright.network.reference import Reference, compare, reference
from edgewright.network.tflite import read_tflite
from tests.helpers.tflite_cases import CASES, FLOAT
from tests.network.qdq_models import KINDS, deep, flattened


def compared(content: bytes, seed: int = 0) -> tuple[Network, Layerwise]:
    network = read_bytes(content, "model")
    truth = reference(content, network)
    inputs = random_file_inputs(network, seed)
    return network, compare_layers(network, truth, inputs, truth.run(inputs))


@pytest.mark.parametrize("powers", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_is_at_most_a_step_off(kind: str, powers: bool) -> None:
    for seed in range(3):
        content = deep(seed, kind, dtype=(np.int8, np.uint8)[seed % 2], powers=powers)
        network, found = compared(content, seed)
        assert found.compared >= len(network.layers) - 1  # all but, perhaps, a conversion of the input
        assert found.passes, (seed, found.worst)
        if powers:  # float32 holds every number on the way, whatever the order of sums: nothing is left to chance
            assert found.first is None, (seed, found.first)


def test_equal_layers_make_equal_networks() -> None:
    network, found = compared(deep(1, "relu", powers=True))
    assert found.first is None
    assert compare(network, found.outputs, found.plain).largest == 0


@pytest.mark.parametrize("seed", range(4))
def test_images_that_are_flattened_come_in_another_order(seed: int) -> None:
    _, found = compared(flattened(seed, (np.int8, np.uint8)[seed % 2]), seed)
    assert found.compared >= 4  # the flattened image among them
    assert found.passes, found.worst


def broken(monkeypatch: pytest.MonkeyPatch, name: str, steps: int) -> None:
    """Makes our kernels err in one layer."""

    def run(network: Network, layer: Layer, values: Any) -> Array:
        y = run_layer(network, layer, values)
        if layer.name == name:
            y = np.where(y < 0, y + steps, y - steps).astype(y.dtype)
        return y

    monkeypatch.setattr(layerwise, "run_layer", run)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_layer_that_errs_is_named_and_no_other_is(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    content = deep(1, "relu", powers=True)
    network = read_bytes(content, "model")
    name = network.layers[len(network.layers) // 2].name
    broken(monkeypatch, name, steps)
    _, found = compared(content)
    assert found.first is not None and found.worst is not None
    assert found.first == found.worst
    assert found.first.layer == name
    assert found.first.difference.largest == steps
    assert found.passes == (steps == 1)


def library_of(content: bytes) -> Any:
    network = read_bytes(content, "model")
    return emit(make_plan(network), TARGETS["host"], network)


def test_verification_names_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    content = deep(1, "relu", depth=1, powers=True)
    library = library_of(content)
    name = library.network.layers[3].name
    broken(monkeypatch, name, 2)
    with pytest.raises(EdgewrightError, match=rf"at most 2 steps off, first at '{name}' \(1 step allowed\)"):
        verify(library, content, count=1)


def test_what_the_reference_is_off_itself_is_allowed_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if its optimisations moved an output by three steps."""
    content = deep(1, "relu", depth=1, powers=True)
    library = library_of(content)
    network, run = library.network, Reference.run
    (output,) = network.outputs
    scale = network.tensors[network.producers[output].inputs[0]].quant.scale[0]

    def moved(self: Reference, inputs: Any) -> dict[str, Array]:
        values = run(self, inputs)
        values[output] = values[output] + np.float32(3 * scale)
        return values

    monkeypatch.setattr(Reference, "run", moved)
    figures = verify(library, content, count=1)
    assert figures.verified and figures.by_layers is not None
    assert figures.by_layers.itself == 3
    assert "with its optimisations onnxruntime is 3 steps off itself without them" in figures.notes
    assert figures.reference == "onnxruntime, with or without its optimisations"
    assert all(check.difference == 0 for check in figures.checks)


def test_steps_that_add_up_pass_where_the_code_gives_what_the_kernels_give() -> None:
    content = deep(2, "relu", depth=1, powers=True)
    network, found = compared(content)
    (output,) = network.outputs
    step = network.tensors[network.producers[output].inputs[0]].quant.scale[0]
    far = {output: found.outputs[output] + np.float32(4 * step)}
    inputs = random_file_inputs(network)
    layers = replace(found, plain=far)
    case = verification._Case(inputs, inputs, far, judge=None)
    case.__dict__["layers"] = layers
    ours = execute(network, inputs)
    library = library_of(content)
    accepted = verification._compared(library, case, ours)
    assert accepted.passes and accepted.largest == accepted.allowed == 4
    wrong = {output: ours[output] + np.float32(step)}
    assert not verification._compared(library, case, wrong).passes
    case.__dict__["layers"] = replace(layers, worst=found.worst or _too_far(found))
    assert not verification._compared(library, case, ours).passes


def _too_far(found: Layerwise) -> layerwise.LayerDifference:
    return layerwise.LayerDifference("x", replace(found.itself, largest=2.0, allowed=1.0, passes=False))


@pytest.mark.parametrize("name", ["conv_2d", "transpose_conv", "mean"])
def test_tensors_of_tflite_files_are_found_too(name: str) -> None:
    content = CASES[name, FLOAT](np.random.default_rng(0), FLOAT)
    network = read_tflite(content)
    truth = reference(content, network)
    inputs = random_file_inputs(network, 0)
    found = compare_layers(network, truth, inputs, truth.run(inputs))
    assert found.compared >= 1 and found.passes
