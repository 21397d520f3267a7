"""Real TFLite models: each is read, and gives what LiteRT's reference kernels give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgewright.network import random_inputs
from edgewright.network.kernels import execute
from edgewright.network.tflite import read_tflite
from tests.helpers.parameters import corpus_models
from tests.helpers.tflite_models import run_litert


@pytest.mark.parametrize("file", corpus_models("*.tflite"))
def test_as_litert_computes_it(file: Path) -> None:
    network = read_tflite(file)
    inputs = random_inputs(network, seed=1)
    found = execute(network, inputs)
    expected = run_litert(file.read_bytes(), [inputs[name] for name in network.inputs])
    is_float = not any(tensor.quant for tensor in network.tensors.values())
    for name, wanted in zip(network.outputs, expected, strict=True):
        if is_float:
            np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(found[name], wanted)


@pytest.mark.parametrize("file", corpus_models("*.tflite"))
def test_weights_are_views_of_the_file(file: Path) -> None:
    """Nothing of size is copied: what a model's weights weigh is mapped, not held."""
    network = read_tflite(file)
    for name, value in network.constants.items():
        base = value
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        assert not isinstance(base, np.ndarray) or value.nbytes < 4096, f"'{name}' is a copy"
