"""Windows and products as plain loops, in every type and arithmetic: the code that takes what no faster kernel does."""

from __future__ import annotations

import subprocess
from importlib import resources

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.emit import Options, Rounding
from edgewright.emit.files import kernel_files
from edgewright.emit.native import Native
from edgewright.kernels import catalogue
from edgewright.kernels.nests import pools, products, windows
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import (
    AvgPool2d,
    Clamp,
    Conv2d,
    Dense,
    MatMul,
    MaxPool2d,
    Unary,
    UnaryKind,
)
from edgewright.network.reference import compare
from edgewright.program import Sweep
from tests.helpers.emitting import WARNINGS, check_emitted, native
from tests.helpers.emitting_batch import build_together, libraries
from tests.helpers.kernel_cases import cases
from tests.helpers.quantised_cases import KINDS, backward, cut_up, network_of
from tests.helpers.tools import checking

PLAIN = (windows.CONV, products.DENSE, products.MATMUL, pools.MAX_POOL, pools.AVERAGE_POOL)
OPERATORS = sorted({operator for kernel in PLAIN for operator in kernel.operators}, key=lambda kind: kind.__name__)


@pytest.fixture(autouse=True)
def only_plain_loops(monkeypatch):
    """No faster kernel is asked."""
    own = {(operator, kernel.kind): (kernel,) for kernel in PLAIN for operator in kernel.operators}
    monkeypatch.setattr(catalogue, "_KERNELS", {**catalogue._KERNELS, **own})


def agree(network: Network, built: Native, seed: int) -> None:
    """Integers bit for bit; one step where an activation in float32 comes before rounding."""
    values = random_inputs(network, seed)
    actual, expected = built.run(values, poison=0x55 if seed % 2 else 0xFF), execute(network, values)
    activation = getattr(network.layers[0].op, "activation", None)
    if isinstance(activation, Clamp | None) and not network.tensors["y"].dtype.is_float:
        np.testing.assert_array_equal(actual["y"], expected["y"], err_msg=f"{network.layers}")
    verdict = compare(network, actual, expected)
    assert verdict.passes, (network.layers, verdict)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@settings(max_examples=2)
@given(data=st.data())
def test_every_type_and_arithmetic(op, data):
    """As planned, in parts, and backwards."""
    networks, plans = [], []
    for kind in KINDS:
        case = data.draw(cases(op))
        if op is MatMul and kind.startswith("tflite"):
            continue
        network = network_of(case, kind)
        networks += [network] * 3
        apart = make_plan(network, plain=True)
        plans += [make_plan(network), cut_up(apart, np.random.default_rng(case.seed)), backward(apart)]
    for seed, built in enumerate(build_together(libraries(networks, plans=plans))):
        agree(built.network, built, seed)


def image(kind: str, op, shape=(1, 6, 5, 4)) -> Network:
    b = Builder("image", Arithmetic.TFLITE if kind == "tflite" else Arithmetic.ONNX)
    quantised = {"dtype": DType.INT8, "quant": Quant.of(0.05, 3)} if kind != "float" else {}
    x = b.input("x", shape, **quantised)
    return b.build([b.layer(op, [x], "y")])


@pytest.mark.parametrize("kind", ["float", "tflite", "onnx"])
def test_windows_that_leave_the_image(kind):
    """Rows and columns of padding alone; those that no average counts; crops; a window larger than the image."""
    pool = MaxPool2d((2, 2), (2, 2), (1, 1), (0, 0, 1, 1))
    mean = AvgPool2d((2, 3), (2, 2), (1, 1), (0, 0, 1, 2), None, kind != "tflite", (1, 1))
    ops = [pool, mean, AvgPool2d((9, 9), (1, 1), (1, 1), (4, 4, 4, 4)), MaxPool2d((2, 2), pads=(-1, 0, 0, -2))]
    networks = [image(kind, op) for op in ops]
    for seed, built in enumerate(build_together(libraries(networks))):
        agree(built.network, built, seed)


def depthwise(dtype: DType) -> Network:
    """Pointwise, depthwise at the same size, pointwise: with the middle one in place."""
    b = Builder("net", Arithmetic.TFLITE)
    rng = np.random.default_rng(0)
    is_float = dtype is DType.FLOAT32
    quant = None if is_float else Quant.of(0.05, -3)
    x = b.input("x", (1, 12, 10, 8), dtype, quant)

    def layer(op, name: str, shape) -> str:
        if is_float:
            w = b.constant(f"{name}.w", rng.standard_normal(shape).astype(np.float32))
        else:
            w = b.constant(f"{name}.w", rng.integers(-127, 128, shape).astype(np.int8), Quant.of(0.005))
        return b.layer(op, [b.layers[-1].output if b.layers else x, w], name)

    layer(Conv2d(), "first", (16, 1, 1, 8))
    layer(Conv2d((1, 1), (1, 1), (1, 1, 1, 1), 16, Clamp(0.0)), "middle", (16, 3, 3, 1))
    return b.build([layer(Conv2d(), "last", (8, 1, 1, 16))])


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT8])
def test_a_depthwise_layer_exactly_in_place(dtype):
    network = depthwise(dtype)
    plan = make_plan(network)
    sweeps = {step.sweep for stage in plan.program.stages for step in plan.program.steps(stage)}
    assert Sweep.CHANNELS in sweeps
    check_emitted(network, plan=plan)


def test_shared_memory_of_different_types():
    """A layer from 8 bits to 16 whose output trails its input: the order of pixels is all that keeps it right."""
    b = Builder("net", Arithmetic.TFLITE)
    x = b.input("x", (1, 9, 9, 4), DType.INT16, Quant.of(0.001))
    w = b.constant("w", np.random.default_rng(0).integers(-9, 9, (4, 3, 3, 4)).astype(np.int8), Quant.of(0.02))
    y = b.layer(Conv2d(activation=Clamp(0.0)), [x, w], "y")
    z = b.layer(MaxPool2d((2, 2), (2, 2)), [y], "z")
    check_emitted(b.build([z]))


def test_dense_layers_round_as_asked():
    """TFLite Micro rounds a dense layer twice, as a convolution."""
    rng = np.random.default_rng(0)
    b = Builder("net", Arithmetic.TFLITE)
    x = b.input("x", (40, 3), DType.INT8, Quant.of(0.05, 3))
    w = b.constant("w", rng.integers(-9, 9, (7, 3)).astype(np.int8), Quant.of(0.02))
    network = b.build([b.layer(Dense(), [x, w], "y", dtype=DType.INT8, quant=Quant.of(0.002, 1))])
    as_image = Builder("image", Arithmetic.TFLITE)
    as_image.input("x", (1, 1, 40, 3), DType.INT8, Quant.of(0.05, 3))
    as_image.constant("w", network.constants["w"].reshape(7, 1, 1, 3), Quant.of(0.02))
    as_image.layer(Conv2d(), ["x", "w"], "y", dtype=DType.INT8, quant=Quant.of(0.002, 1))
    values = random_inputs(network)
    twice = execute(as_image.build(["y"]), {"x": values["x"].reshape(1, 1, 40, 3)})["y"].reshape(40, 7)
    once = execute(network, values)["y"]
    assert (once != twice).any()
    for rounding, expected in ((Rounding.REFERENCE, once), (Rounding.TFLM, twice)):
        actual = native(network, options=Options(rounding=rounding)).run(values)["y"]
        np.testing.assert_array_equal(actual, expected)


def test_real_layers_between_scales():
    """ONNX: a float activation of a quantised layer, and weights without a scale."""
    rng = np.random.default_rng(0)
    b = Builder("net")
    x = b.input("x", (1, 6, 6, 4), DType.INT8, Quant.of(0.05, 3))
    w = b.constant("w", rng.integers(-99, 99, (5, 3, 3, 4)).astype(np.int8), Quant((0.01,) * 5, (0,) * 5, 0))
    bias = b.constant("b", rng.integers(-99, 99, 5).astype(np.int32))
    y = b.layer(Conv2d(activation=Unary(UnaryKind.SILU)), [x, w, bias], "y", dtype=DType.INT8, quant=Quant.of(0.04))
    v = b.constant("v", rng.standard_normal((3, 1, 1, 5)).astype(np.float32))
    z = b.layer(Conv2d(activation=Clamp(0.0)), [y, v], "z", dtype=DType.UINT8, quant=Quant.of(0.1, 4))
    check_emitted(b.build([z]), exact=False)


# What only one family of kernels uses; the others bring functions of the same names.
FAMILIES = {
    "dsp": ("dsp", "depthwise_pairs"),
    "portable": ("portable", "products", "depthwise_plain"),
    "simd": ("simd",),
}


def all_kernels(family: str) -> dict[str, str]:
    """The kernels of a family, and those for everybody; CMSIS-NN is the project's to bring."""
    names = {f.name[:-2] for f in (resources.files("edgewright.kernels") / "c").iterdir() if f.name.endswith(".h")}
    others = tuple(word for other, words in FAMILIES.items() if other != family for word in words)
    return kernel_files("all", {name for name in names if not name.startswith((*others, "helium", "cmsis"))})


@pytest.mark.parametrize("call", ["gcc -std=c99", "clang -std=c99", "g++ -x c++"])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_kernels_live_in_one_library(family, call, tmp_path):
    """Whatever a network uses: no two kernels share a name, and none warns."""
    for name, text in all_kernels(family).items():
        (tmp_path / name).write_text(text)
    flags = [flag for flag in WARNINGS if not flag.startswith(("-std", "-O"))]
    program, *standard = call.split()
    whole = [*checking(program), *standard, *flags, "all_kernels.c"]
    done = subprocess.run(whole, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
