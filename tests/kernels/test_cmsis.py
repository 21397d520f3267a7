"""Calls to CMSIS-NN, compiled against a stand-in for the library that checks and computes by simple loops."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from edgewright.cli import main
from edgewright.emit import TARGETS, Options
from edgewright.emit.native import build
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import (
    AvgPool2d,
    Binary,
    BinaryKind,
    Clamp,
    Conv2d,
    Dense,
    MaxPool2d,
    Reshape,
    Softmax,
)
from edgewright.network.parts import subnetwork
from edgewright.program import Buffer, Plan
from edgewright.program.options import Kernels, Rounding
from tests.helpers import tflite_cases
from tests.helpers.emitting import WARNINGS, emit
from tests.helpers.tools import needs

STAND_IN = Path(__file__).parent / "cmsis_nn"
CMSIS = Options(kernels=Kernels.CMSIS_NN)
FLAGS = [*WARNINGS, "-I", str(STAND_IN)]
RELU = Clamp(0.0)


def quant(scale: float, zero: int = -3) -> dict:
    return {"dtype": DType.INT8, "quant": Quant.of(float(np.float32(scale)), zero)}


def weights(b: Builder, shape: tuple[int, ...], per_channel: bool = True) -> list[str]:
    rng = np.random.default_rng(len(b.layers))
    count = shape[0] if per_channel else 1
    scales = tuple(float(np.float32(s)) for s in rng.uniform(0.002, 0.02, count))
    values = rng.integers(-127, 128, shape).astype(np.int8)
    bias = rng.integers(-900, 900, shape[0]).astype(np.int32)
    axis = 0 if per_channel else None
    return [b.constant("w", values, Quant(scales, (0,) * count, axis)), b.constant("b", bias)]


def network() -> Network:
    """Every operator that CMSIS-NN takes."""
    b = Builder("every", Arithmetic.TFLITE)
    x = b.input("x", (1, 11, 9, 3), DType.INT8, Quant.of(0.05, 7))
    conv = Conv2d((2, 1), (1, 1), (1, 1, 0, 1), activation=RELU)
    y = b.layer(conv, [x, *weights(b, (8, 3, 3, 3))], "conv", **quant(0.1, -128))
    one = b.layer(Conv2d(), [y, *weights(b, (8, 1, 1, 8))], "one", **quant(0.2))
    y = b.layer(Binary(BinaryKind.ADD, RELU), [y, one], "add", **quant(0.15, -100))
    dw = Conv2d(pads=(1, 2, 1, 0), groups=8, activation=RELU)
    y = b.layer(dw, [y, *weights(b, (16, 3, 3, 1))], "dw", **quant(0.1, -128))
    y = b.layer(MaxPool2d((2, 2), (1, 2), pads=(0, 0, 1, 0)), [y], "max")
    y = b.layer(AvgPool2d((3, 2), (2, 1), pads=(1, 0, 0, 1)), [y], "avg")
    y = b.layer(Reshape((1, int(np.prod(b.shape(y))))), [y], "flat")
    y = b.layer(Dense(), [y, *weights(b, (5, b.shape(y)[1]), per_channel=False)], "dense", **quant(0.4))
    return b.build([y])


CALLS = ["convolve_wrapper", "depthwise_conv_wrapper", "elementwise_add", "avgpool", "max_pool"]


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_layers_called_in_cmsis_nn_are_exact(target):
    net = network()
    library = emit(make_plan(net, plain=True), TARGETS[target], net, options=CMSIS)
    text = str(library.files[f"{library.name}.c"])
    assert "arm_convolve_wrapper_s8" in text
    assert "arm_fully_connected" not in text, "the reference rounds a dense layer once"
    native = build(library, flags=FLAGS)
    for seed in range(3):
        inputs = random_inputs(net, seed)
        actual, expected = native.run(inputs, poison=0x55), execute(net, inputs)
        np.testing.assert_array_equal(actual["dense"], expected["dense"])


def test_every_call_is_made_where_there_is_room():
    text = ""
    net = network()
    for layer in net.layers:
        if layer.name == "flat":
            continue
        part = subnetwork(net, [layer.name])
        plan = make_plan(part, plain=True)
        library = emit(with_room(plan), TARGETS["cortex-m4"], part, options=CMSIS)
        text += str(library.files[f"{library.name}.c"])
        native, inputs = build(library, flags=FLAGS), random_inputs(part, 1)
        (name,) = part.outputs
        np.testing.assert_array_equal(native.run(inputs)[name], execute(part, inputs)[name])
    assert [call for call in CALLS if f"arm_{call}_s8(" not in text] == []


def with_room(plan: Plan) -> Plan:
    """The plan in an arena with a hole at its end."""
    end, last = max(buffer.end for buffer in plan.buffers), len(plan.program.stages)
    room = Buffer("room", 4096, end, last, last)
    return replace(plan, buffers=(*plan.buffers, room), peak_bytes=room.end)


def text_of(net: Network, plan: Plan, options: Options = CMSIS, target: str = "cortex-m4") -> str:
    library = emit(plan, TARGETS[target], net, options=options)
    return str(library.files[f"{library.name}.c"])


def test_a_dense_layer_is_called_for_the_rounding_of_tflm():
    """It then gives what our own kernels give for that rounding."""
    net = subnetwork(network(), ["dense"])
    own = Options(rounding=Rounding.TFLM)
    called = replace(own, kernels=Kernels.CMSIS_NN)
    assert "arm_fully_connected_s8(" in text_of(net, make_plan(net), called)
    assert "arm_fully_connected_s8(" not in text_of(net, make_plan(net), called, "cortex-m55")
    libraries = [build(emit(make_plan(net), TARGETS["cortex-m4"], net, options=o), flags=FLAGS) for o in (own, called)]
    for seed in range(4):
        first, second = (library.run(random_inputs(net, seed))["dense"] for library in libraries)
        np.testing.assert_array_equal(first, second)


def test_softmax_is_called_with_the_scale_of_its_input():
    b = Builder("softmax", Arithmetic.TFLITE)
    x = b.input("x", (2, 10), DType.INT8, Quant.of(0.125, 4))
    net = b.build([b.layer(Softmax(-1), [x], "y", dtype=DType.INT8, quant=Quant.of(1 / 256, -128))])
    # In steps of 2^-26 (five integer bits) 0.125 is 2^23: one half in 31 bits, shifted by 24. Differences count down to
    # 31 * 2^26 / 2^24 = 124.
    assert ", 2, 10, 1073741824, 24, -124, " in text_of(net, make_plan(net, plain=True))


def test_layers_that_share_memory_or_another_arithmetic_keep_our_kernels():
    net = subnetwork(network(), ["one", "add"])
    shared = make_plan(net)
    assert shared.peak_bytes < make_plan(net, plain=True).peak_bytes, "nothing is shared here"
    assert "arm_elementwise_add_s8" not in text_of(net, shared)
    onnx = replace(network(), arithmetic=Arithmetic.ONNX)
    assert "arm_" not in text_of(
        subnetwork(onnx, ["conv"]), with_room(make_plan(subnetwork(onnx, ["conv"]), plain=True))
    )
    conv = subnetwork(network(), ["conv"])
    assert "arm_" not in text_of(conv, with_room(make_plan(conv, plain=True)), target="rv32imc")


def test_compiling_runs_nothing_and_names_what_the_project_brings(tmp_path):
    """The folder is written; with the headers at hand its own Makefile builds it."""
    softmax = tflite_cases.softmax(np.random.default_rng(0), "int8")
    (tmp_path / "net.tflite").write_bytes(softmax)
    arguments = ["compile", tmp_path / "net.tflite", "--target", "cortex-m4", "--kernels", "cmsis-nn"]
    result = CliRunner().invoke(main, [*map(str, arguments), "--plain", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "calls CMSIS-NN (arm_nnfunctions.h), which the project must bring" in said
    assert "not verified: nothing was run" in said
    assert "arm_softmax_s8(" in (tmp_path / "out/src/net.c").read_text()
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert not report["verified"] and report["checks"] == [] and report["instructions"] is None
    needs("make", "cc")
    call = ["make", "-s", "CC=cc", "AR=ar", "CFLAGS=-O1", f"CMSIS_NN={STAND_IN}"]
    built = subprocess.run(call, cwd=tmp_path / "out", capture_output=True, text=True)
    assert built.returncode == 0 and (tmp_path / "out/build/libnet.a").is_file(), built.stderr
