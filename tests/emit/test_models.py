"""Real models through emitted C: every family of kernels against the model's own runtime."""

from __future__ import annotations

import numpy as np
import pytest

import edgewright
from edgewright.emit import TARGETS, emit
from edgewright.emit.native import build
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, random_inputs
from edgewright.network.reference import compare, reference
from tests.helpers.parameters import corpus_models

QUICK = ("-std=c99", "-Og", "-ffp-contract=off", "-fno-strict-aliasing")
LARGE = 5_000_000  # MACs beyond which a model waits for `make check-all`
MCU = ["cortex-m4", "rv32imc", "cortex-m55"]
LARGER = (
    "mlperf_ad01_int8",
    "mlperf_ic_resnet8_int8",
    "mlperf_vww96_int8",
    "st_miniresnet_1stack_64x50_int8",
    "tfls_movie_review_avg_word_vec",
)


def agree(path, target: str, seeds: int = 2) -> None:
    network = edgewright.read_model(path)
    library = emit(make_plan(network, explain=False), TARGETS[target])
    native, truth = build(library, flags=QUICK), reference(path, network)
    for seed in range(seeds):
        inputs = random_inputs(network, seed)
        expected, actual = truth.run(inputs), native.run(inputs, poison=0xAA)
        verdict = compare(network, actual, expected)
        assert verdict.passes, (path, target, verdict)
        if network.arithmetic is Arithmetic.TFLITE:
            for name in network.outputs:
                if not network.tensors[name].dtype.is_float:
                    np.testing.assert_array_equal(actual[name], expected[name])


@pytest.mark.parametrize("target", MCU)
@pytest.mark.parametrize("path", corpus_models("mlperf_*_int8.tflite", "tflm_*.tflite", "st_mini*.tflite", slow=LARGER))
def test_small_models_are_bit_exact_in_every_family(path, target):
    agree(path, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", [*MCU, "host"])
@pytest.mark.parametrize("path", corpus_models("st_mobilenet*.tflite", "tinyengine*.tflite"))
def test_larger_int8_models_in_every_family(path, target):
    agree(path, target, seeds=1)


@pytest.mark.parametrize("path", corpus_models("mlperf*_int8.tflite", "tfl*.tflite", "ort_*.onnx", slow=LARGER))
def test_trained_models_on_the_host(path):
    agree(path, "host", seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("path", corpus_models("mlperf*_f32.tflite", "st_mini*.tflite", "ultra*.onnx"))
def test_more_trained_models_on_the_host(path):
    agree(path, "host", seeds=1)


@pytest.mark.slow
def test_keyword_accuracy_is_that_of_the_reference(corpus_folder):
    """1000 labelled frames: 90.1 % by LiteRT's reference kernels, and the same scores for each of them from C.

    LiteRT's default kernels (XNNPACK), which round otherwise, get one frame more: 90.2 %.
    """
    path = corpus_folder / "models" / "mlperf_kws_ref_int8.tflite"
    data = np.load(corpus_folder / "data" / "eembc_kws01_int8.npz")
    network = edgewright.read_model(path)
    native = build(emit(make_plan(network, explain=False), TARGETS["cortex-m4"]), flags=QUICK)
    truth = reference(path, network)
    name, output = network.inputs[0], network.outputs[0]
    answers = np.concatenate([native.run({name: x[None]})[output] for x in data["x"]])
    expected = np.concatenate([truth.run({name: x[None]})[output] for x in data["x"]])
    np.testing.assert_array_equal(answers, expected)
    assert (answers.argmax(1) == data["y"]).mean() == pytest.approx(0.901)
