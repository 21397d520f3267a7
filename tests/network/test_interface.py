"""Conversions left to the caller: the same numbers come out, the library is verified, and it says what to feed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import edgewright
from edgewright import samples
from edgewright.cli import main
from edgewright.emit import TARGETS, Options, Rounding
from edgewright.emit import verify as verification
from edgewright.emit.inputs import given_inputs
from edgewright.emit.judge import judge
from edgewright.emit.verify import verify
from edgewright.errors import EdgewrightError, InputError
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Layer, Network, Quant, Tensor, check, random_inputs
from edgewright.network.interface import file_inputs, file_outputs, random_file_inputs, stored_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Clamp, Dequantize, Quantize, Reshape, Transpose
from edgewright.network.parts import subnetwork
from edgewright.network.passes.interface import with_quantised_interface
from edgewright.network.reference import compare, reference, to_file_shape
from edgewright.program import plan_from_dict, plan_to_dict
from tests.helpers.emitting import emit, native
from tests.helpers.parameters import corpus_models
from tests.helpers.random_networks import networks
from tests.helpers.tflite_models import Node, Spec, constant, model, options
from tests.helpers.tools import on_board
from tests.network.passes_networks import Literal, ops

on_host = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")

# Random networks


def with_entry(network: Network, name: str, kind: str) -> Network:
    """The network with its stored input made from a real one, from a real one in another layout, or from uint8."""
    stored = network.tensors[name]
    inner = replace(stored, name=f"{name}:stored")
    real = Tensor(name, stored.shape, DType.FLOAT32)
    if kind == "uint8":
        assert stored.quant
        real = replace(stored, dtype=DType.UINT8, quant=Quant.of(stored.quant.scale[0], stored.quant.zero[0] + 128))
    first: list[Layer] = [Layer(f"{name}:quantise", Quantize(), (name,), inner.name)]
    tensors = {**network.tensors, inner.name: inner, name: real}
    if kind == "moved":
        n, h, w, c = stored.shape
        flat = replace(real, name=f"{name}:flat", shape=(n, c, h * w, 1))
        moved = replace(real, name=f"{name}:moved", shape=(n, h * w, 1, c))
        shaped = replace(real, name=f"{name}:shaped")
        tensors |= {t.name: t for t in (flat, moved, shaped)} | {name: replace(real, shape=(n, c, h, w))}
        first = [
            Layer(flat.name, Reshape(flat.shape), (name,), flat.name),
            Layer(moved.name, Transpose((0, 2, 3, 1)), (flat.name,), moved.name),
            Layer(shaped.name, Reshape(stored.shape), (moved.name,), shaped.name),
            Layer(f"{name}:quantise", Quantize(), (shaped.name,), inner.name),
        ]
    rest = [
        replace(layer, inputs=tuple(inner.name if i == name else i for i in layer.inputs)) for layer in network.layers
    ]
    return check(replace(network, layers=(*first, *rest), tensors=tensors))


def with_exit(network: Network, name: str, kind: str) -> Network:
    """The network with another output: the stored one as real numbers, those in another shape, or as uint8."""
    stored = network.tensors[name]
    real = Tensor(f"{name}:real", stored.shape, DType.FLOAT32)
    last = [Layer(real.name, Dequantize(), (name,), real.name)]
    tensors = [real]
    if kind == "uint8":
        assert stored.quant
        quant = Quant.of(stored.quant.scale[0], stored.quant.zero[0] + 128)
        tensors = [replace(stored, name=real.name, dtype=DType.UINT8, quant=quant)]
        last = [Layer(real.name, Quantize(), (name,), real.name)]
    elif kind == "moved":
        flat = replace(real, name=f"{name}:flat", shape=(1, stored.size))
        last.append(Layer(flat.name, Reshape(flat.shape), (real.name,), flat.name))
        tensors.append(flat)
    outputs = tuple(last[-1].output if output == name else output for output in network.outputs)
    whole = {**network.tensors, **{t.name: t for t in tensors}}
    return check(replace(network, outputs=outputs, layers=(*network.layers, *last), tensors=whole))


KINDS = ("real", "moved", "uint8")


@st.composite
def converted(draw) -> Network:
    """A random int8 network that some of its ends convert for; at least one input and one output."""
    network = draw(networks(("tflite", "onnx"), most=5))
    network = with_entry(network, network.inputs[0], draw(st.sampled_from(KINDS)))
    for name in network.inputs[1:]:
        kind = draw(st.sampled_from((*KINDS, "")))
        network = with_entry(network, name, kind) if kind else network
    return with_exit(network, network.outputs[0], draw(st.sampled_from(KINDS)))


@given(network=converted(), seed=st.integers(0, 99))
def test_the_same_numbers_come_out(network, seed):
    assume(not set(network.inputs) & set(network.outputs))  # such inputs keep their type: the caller sees them again
    before = random_inputs(network, seed)
    bare = check(with_quantised_interface(network, inputs=True, outputs=True))
    assert bare.inputs == network.inputs and bare.outputs == network.outputs
    for name in (network.inputs[0], network.outputs[0]):
        assert bare.tensors[name].dtype is DType.INT8 and bare.tensors[name].quant
        assert bare.tensors[name].shape == network.tensors[name].shape
        assert bare.file_tensors[name] == network.tensors[name]
    stored = stored_inputs(bare, before)
    assert all(stored[name].dtype == bare.tensors[name].dtype.numpy for name in bare.inputs)
    expected, found = execute(network, before), file_outputs(bare, execute(bare, stored))
    for name in network.outputs:
        np.testing.assert_array_equal(found[name], expected[name])
    again = stored_inputs(bare, file_inputs(bare, stored))
    for name in bare.inputs:
        np.testing.assert_array_equal(again[name], stored[name])


@settings(max_examples=6)
@given(network=converted())
@on_host
def test_emitted_code_gives_the_same_numbers(network):
    bare = with_quantised_interface(network, outputs=True)
    library = native(bare)
    inputs = random_file_inputs(bare, 4)
    found = file_outputs(bare, library.run(stored_inputs(bare, inputs)))
    for name, expected in execute(network, inputs).items():
        np.testing.assert_array_equal(found[name], expected)


def test_one_of_several_conversions_alike():
    """Exporters write one Quantize for each reader."""
    b = Literal()
    x = b.input("x", (1, 4, 6, 6))
    a, c = b.quantize(x, "a", zero=2), b.quantize(x, "c", zero=2)
    network = b.build([b.layer(Clamp(0.0), [a], "p"), b.layer(Clamp(-1.0, 1.0), [c], "q")])
    bare = with_quantised_interface(network)
    assert ops(bare) == ["Clamp", "Clamp"] and {layer.inputs for layer in bare.layers} == {("x",)}
    other = b.quantize(x, "other", zero=4)
    with pytest.raises(InputError, match=r"'a' .Quantize. and 'c' .Quantize. and 1 more, which take float32"):
        with_quantised_interface(b.build([*network.outputs, b.layer(Clamp(0.0), [other], "r")]))


# What cannot be left out


def refusals():
    def shared(b):
        x = b.input("x", (1, 4, 6, 6))
        return [b.layer(Clamp(0.0), [b.quantize(x, "q")], "c"), b.layer(Clamp(0.0), [x], "real")]

    def straight(b):
        return [b.quantize(b.input("x", (1, 4, 6, 6)), "q")]

    def channels(b):
        x = b.input("x", (1, 2, 6, 6))
        q = b.layer(Quantize(), [x], "q", dtype=DType.INT8, quant=Quant((0.1, 0.2), (0, 0), 1))
        return [b.layer(Dequantize(), [q], "r", dtype=DType.FLOAT32)]

    def read_inside(b):
        q = b.quantize(b.input("x", (1, 4, 6, 6)), "q")
        y = b.dequantize(b.layer(Clamp(0.0), [q], "c"), "y")
        return [y, b.layer(Clamp(0.0), [y], "z")]

    def twice(b):
        q = b.layer(Clamp(0.0), [b.quantize(b.input("x", (1, 4, 6, 6)), "q")], "c")
        return [q, b.dequantize(q, "y")]

    def plain(b):
        return [b.layer(Clamp(0.0), [b.input("x", (1, 4, 6, 6))], "c")]

    def stored(b):
        return [b.layer(Clamp(0.0), [b.input("x", (1, 4, 6, 6), DType.INT8, Quant.of(0.1))], "c")]

    def indices(b):
        return [b.layer(Reshape((6, 4)), [b.input("x", (4, 6), DType.INT32)], "c")]

    def passed_on(b):
        return [b.dequantize(b.input("x", (1, 4), DType.INT8, Quant.of(0.1)), "y")]

    return [
        (shared, True, r"'x' is read by 'q' \(Quantize\) and 'real' \(Clamp\), which take float32"),
        (plain, True, r"'x' is read by 'c' \(Clamp\), which takes float32"),
        (straight, True, "leads straight to an output"),
        (channels, True, "a scale for each channel"),
        (stored, True, "'x' is int8 already. Leave out --quantised-input"),
        (indices, True, "holds int32 that stand for themselves"),
        (read_inside, False, "'y' is needed elsewhere too"),
        (twice, False, "'c' is int8 already; 'y' is needed elsewhere too"),
        (plain, False, r"'c' is computed as float32 by 'c' \(Clamp\). Leave out --quantised-output"),
        (stored, False, "'c' is int8 already"),
        (passed_on, False, "'y' is an input or a constant in another form"),
    ]


@pytest.mark.parametrize(("build", "is_input", "words"), refusals(), ids=lambda value: getattr(value, "__name__", None))
def test_nothing_to_leave_out(build, is_input, words):
    b = Literal("net")
    with pytest.raises(InputError, match=f"'net' has no {'input' if is_input else 'output'} whose .*{words}"):
        with_quantised_interface(b.build(build(b)), inputs=is_input, outputs=not is_input)


def test_stored_values_that_the_file_cannot_give():
    """The file's own steps are four times as large: three in four stored values have no origin."""
    b = Builder("coarse", Arithmetic.TFLITE)
    x = b.input("x", (1, 8), DType.UINT8, Quant.of(0.4, 128))
    q = b.layer(Quantize(), [x], "q", dtype=DType.INT8, quant=Quant.of(0.1, 0))
    bare = with_quantised_interface(b.build([b.layer(Clamp(0.0), [q], "y")]))
    assert "of another scale than the file's uint8" in bare.notes[0]
    fine = np.array([[0, 4, 8, -4, -128, 124, 40, -40]], np.int8)
    assert file_inputs(bare, {"x": fine})["x"].tolist() == [[128, 129, 130, 127, 96, 159, 138, 118]]
    with pytest.raises(InputError, match="input 'x' holds stored values that no uint8 value of the model file gives"):
        file_inputs(bare, {"x": fine + np.int8(1)})
    with pytest.raises(InputError, match=r"'x' must have the shape \(1, 8\); got \(8,\)"):
        stored_inputs(bare, {"x": np.zeros(8, np.uint8)})


# Models


def tflite(seed: int = 0) -> bytes:
    """A TFLite file: real numbers in, quantised, a convolution and a pooling in int8, real numbers out."""
    rng = np.random.default_rng(seed)
    scales = tuple(float(s) for s in rng.uniform(0.004, 0.02, 6).astype(np.float32))
    weights = rng.integers(-127, 128, (6, 3, 3, 3))
    bias = rng.integers(-500, 500, 6)
    pads = {"padding": 0, "strideH": 1, "strideW": 1}
    specs = [
        Spec("x", (1, 12, 12, 3)),
        Spec("q", (1, 12, 12, 3), "int8", 0.03, -7),
        constant("w", weights, "int8", scale=scales),
        constant("b", bias, "int32", scale=tuple(s * 0.03 for s in scales)),
        Spec("c", (1, 12, 12, 6), "int8", 0.1, 5),
        Spec("p", (1, 6, 6, 6), "int8", 0.1, 5),
        Spec("y", (1, 6, 6, 6)),
    ]
    pool = options("Pool2D", padding=1, strideH=2, strideW=2, filterHeight=2, filterWidth=2)
    nodes = [
        Node("QUANTIZE", ("x",), ("q",)),
        Node("CONV_2D", ("q", "w", "b"), ("c",), options("Conv2D", dilationHFactor=1, dilationWFactor=1, **pads)),
        Node("MAX_POOL_2D", ("c",), ("p",), pool),
        Node("DEQUANTIZE", ("p",), ("y",)),
    ]
    return model(specs, nodes, ["x"], ["y"])


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "small.tflite"
    path.write_bytes(tflite())
    return path


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@on_board
@on_host
def test_verified_against_the_runtime_and_on_the_board(file):
    plain = edgewright.compile_model(file, check=False)
    rng = np.random.default_rng(1)
    either = [
        {"x": rng.standard_normal((1, 12, 12, 3)).astype(np.float32)},
        {"x": rng.integers(-128, 128, (1, 12, 12, 3)).astype(np.int8)},
    ]
    found = edgewright.compile_model(
        file, target="cortex-m4", inputs=either, quantised_input=True, quantised_output=True
    )
    assert found.figures.reference == "LiteRT's reference kernels" and found.figures.verified
    assert [(c.runs, c.difference) for c in found.figures.checks] == [(5, 0.0), (1, 0.0)]
    assert found.figures.ram_linked == found.library.plan.peak_bytes < plain.library.plan.peak_bytes
    header = str(found.library.files["small.h"])
    assert "void small_run(const int8_t *x, int8_t *y);" in header
    assert "/* x: stored = round(real / 0.029999999329447746) - 7, halves away from zero" in header
    assert "#define SMALL_INPUT_X_SCALE 0.03f" in header and "#define SMALL_INPUT_X_ZERO (-7)" in header
    assert "/* y: real = 0.10000000149011612 * (stored - 5) */" in header
    assert found.library.network.notes[0].startswith("input 'x' is taken as int8: stored = round(real / 0.0299")
    assert found.library.network.notes[1].startswith("output 'y' is given as int8: real = 0.1000")


@on_host
def test_wrong_conversions_are_found_out(file, monkeypatch):
    monkeypatch.setattr(verification, "_obstacle", lambda library: "this machine is enough")
    bare = edgewright.read_model(file, quantised_input=True)
    library = emit(make_plan(bare, explain=False), TARGETS["cortex-m4"], bare)
    x = bare.tensors["x"]
    wrong = replace(bare, tensors={**bare.tensors, "x": replace(x, quant=Quant.of(x.quant.scale[0], -4))})
    assert verify(library, file, count=1).verified
    with pytest.raises(EdgewrightError, match="verification failed"):
        verify(replace(library, network=wrong), file, count=1)


@pytest.mark.parametrize("rounding", list(Rounding))
def test_the_judge_speaks_as_the_file(file, rounding):
    before, bare = (
        edgewright.read_model(file),
        edgewright.read_model(file, quantised_input=True, quantised_output=True),
    )
    inputs = random_file_inputs(bare, 6)
    assert inputs["x"].dtype == np.float32
    found = judge(file, bare, Options(rounding)).run(inputs)
    np.testing.assert_array_equal(found["y"], execute(before, inputs)["y"])


@on_host
def test_quantised_onnx(tmp_path):
    """The layout of the file stays: channels first there, last in the library."""
    source = samples.quantise.quantise(samples.build("stahl_running_example"))
    path = tmp_path / "model.onnx"
    path.write_bytes(source.SerializeToString())
    before = edgewright.read_model(path)
    bare = edgewright.read_model(path, quantised_input=True, quantised_output=True)
    name = bare.inputs[0]
    assert bare.layouts == before.layouts and bare.layouts[name] == (0, 2, 3, 1)
    assert bare.tensors[name].dtype is DType.INT8 and "halves to even" in bare.notes[-2]
    image = np.random.default_rng(3).standard_normal(to_file_shape(before, name)).astype(np.float32)
    (values,) = given_inputs(bare, {name: image})
    found = file_outputs(bare, native(bare, "cortex-m4").run(stored_inputs(bare, values)))
    verdict = compare(bare, found, reference(path, bare).run(values))
    assert verdict.passes and verdict.unit == "steps"


# Plans and the command line


def test_a_plan_keeps_what_the_file_has(file):
    bare = edgewright.read_model(file, quantised_input=True)
    plan = make_plan(bare, explain=False)
    again = plan_from_dict(json.loads(json.dumps(plan_to_dict(plan))))
    assert again.network.file_tensors == bare.file_tensors
    older = plan_to_dict(plan)
    del older["network"]["file_tensors"]
    assert plan_from_dict(older).network.file_tensors == {}
    part = subnetwork(bare, [bare.layers[1].name])
    assert part.file_tensors == {} and subnetwork(bare, [bare.layers[0].name]).file_tensors == bare.file_tensors


@on_host
def test_options_of_the_command_line(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("plan", file, "--quantised-input", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["peak_bytes"] < json.loads(run("plan", file, "--json").output)["peak_bytes"]
    assert run("plan", file, "--quantised-input", "-o", "taken.json").exit_code == 0
    result = run("compile", file, "--plan", "taken.json", "-o", "out")
    assert result.exit_code == 1 and "the plan was made with --quantised-input, for 'x'" in result.output
    result = run("compile", file, "--plan", "taken.json", "--quantised-input", "-o", "out")
    assert result.exit_code == 0, result.output
    assert "verified: bit for bit as LiteRT's reference kernels" in result.output
    assert "input 'x' is taken as int8" in " ".join(result.output.split())
    result = run("plan", "--quantised-output", samples.write("stahl_running_example", tmp_path))
    assert result.exit_code == 1 and "Leave out --quantised-output" in " ".join(result.output.split())


@on_host
@pytest.mark.parametrize("form", ["real", "stored"])
def test_inputs_may_be_given_either_way(file, form, tmp_path):
    real = {"x": np.random.default_rng(2).standard_normal((1, 12, 12, 3)).astype(np.float32)}
    bare = edgewright.read_model(file, quantised_input=True)
    np.save(tmp_path / "x.npy", {"real": real, "stored": stored_inputs(bare, real)}[form]["x"])
    result = run("run", file, "--input", tmp_path / "x.npy", "--json", "--quantised-input")
    assert result.exit_code == 0, result.output
    found = np.asarray(json.loads(result.output)["outputs"]["y"], np.float32)
    np.testing.assert_array_equal(found, execute(edgewright.read_model(file), real)["y"])


# Real models


@pytest.mark.parametrize("path", corpus_models("tinyengine_mcunet*.tflite", "st_mobilenet*.tflite"))
def test_real_models(path):
    before = edgewright.read_model(path)
    bare = edgewright.read_model(path, quantised_input=True, quantised_output=True)
    assert len(bare.layers) == len(before.layers) - 2
    assert not {"Quantize", "Dequantize"} & set(ops(bare))
    inputs = random_inputs(before)
    expected = execute(before, inputs)
    found = file_outputs(bare, execute(bare, stored_inputs(bare, inputs)))
    for name in before.outputs:
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize("path", corpus_models("tinyengine_mcunet*.tflite"))
def test_mcunet_in_a_third_of_its_input(path):
    """As real numbers its input alone takes 76800 bytes."""
    network = edgewright.read_model(path, quantised_input=True)
    assert make_plan(network, phases=True, explain=False).peak_bytes <= 28000
    assert make_plan(network, phases=True, pull_rows=True, explain=False).peak_bytes <= 22000
