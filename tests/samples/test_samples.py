"""The samples: valid, runnable, as large as the literature says, and the same every time."""

import hashlib
import logging
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, shape_inference

from edgewright import samples
from edgewright.errors import InputError
from edgewright.samples.builder import same_pads
from tests.helpers.onnx_session import onnx_session

Array = npt.NDArray[np.float32]

SHAPES = {  # name: input, output
    "stahl_running_example": ((1, 1, 32, 8), (1, 6)),
    "stahl_two_paths": ((20, 40), (20, 20)),
    "minakova_example": ((1, 1, 32, 32), (1, 2)),
    "ds_cnn": ((1, 1, 49, 10), (1, 12)),
    "mobilenet_v1": ((1, 3, 96, 96), (1, 2)),
    "resnet8": ((1, 3, 32, 32), (1, 10)),
    "autoencoder": ((1, 640), (1, 640)),
    "mobilenet_v2": ((1, 3, 96, 96), (1, 1000)),
    "resnet18": ((1, 3, 224, 224), (1, 1000)),
    "squeezenet": ((1, 3, 224, 224), (1, 1000)),
    "lenet5": ((1, 1, 28, 28), (1, 10)),
    "tiny_inception": ((1, 3, 64, 64), (1, 10)),
    "tiny_densenet": ((1, 3, 32, 32), (1, 10)),
    "tiny_mobilenet_v3": ((1, 3, 64, 64), (1, 10)),
    "unet": ((1, 1, 64, 64), (1, 2, 64, 64)),
    "randwire": ((1, 3, 32, 32), (1, 10)),
    "text_classifier": ((1, 256), (1, 2)),
}
INT8 = [name for name in samples.names() if name.endswith("_int8")]


@cache
def build(name: str) -> onnx.ModelProto:
    """A sample shared by the tests of this file, none of which changes it."""
    return samples.build(name)


def run(model: onnx.ModelProto, *seeds: int) -> list[list[Array]]:
    """All outputs, for the example inputs of each seed."""
    session = onnx_session(model)
    return [session.run(None, samples.example_inputs(model, seed)) for seed in seeds]


def shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor, by ONNX's own inference."""
    graph = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    dims = {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in values}
    return dims | {w.name: tuple(w.dims) for w in graph.initializer}


def macs(model: onnx.ModelProto) -> int:
    shape, total = shapes(model), 0
    for node in model.graph.node:
        if node.op_type == "Conv":
            total += math.prod(shape[node.output[0]]) * math.prod(shape[node.input[1]][1:])
        elif node.op_type == "Gemm":
            total += math.prod(shape[node.input[1]])
    return total


def parameters(model: onnx.ModelProto) -> int:
    """Weights and biases; the bounds of a Clip are scalars and do not count."""
    return sum(math.prod(w.dims) for w in model.graph.initializer if w.dims)


def test_every_sample_is_covered_here() -> None:
    assert {name.removesuffix("_int8") for name in samples.names()} == set(SHAPES)
    assert set(INT8) >= {"ds_cnn_int8", "resnet8_int8", "mobilenet_v1_int8"}


@pytest.mark.parametrize("name", samples.names())
def test_sample_is_valid_and_runs(name: str) -> None:
    model = build(name)
    onnx.checker.check_model(model, full_check=True)
    assert (model.ir_version, model.opset_import[0].version) == (8, 17)
    wanted_input, wanted_output = SHAPES[name.removesuffix("_int8")]
    assert shapes(model)[model.graph.input[0].name] == wanted_input
    (first,), (second,), (third,) = run(model, 101, 102, 103)
    assert first.shape == wanted_output
    assert first.dtype == np.float32
    assert np.isfinite(first).all()
    assert first.std() > 1e-2  # outputs differ from each other
    assert np.ptp([first, second, third], axis=0).max() > 1e-2  # and depend on the input


@pytest.mark.parametrize("name", SHAPES)
def test_activations_stay_in_a_sane_range(name: str) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(shape_inference.infer_shapes(build(name)))
    model.graph.output.extend(model.graph.value_info)
    (tensors,) = run(model, 101)
    largest = [float(np.abs(tensor).max()) for tensor in tensors]
    assert min(largest) > 0.05
    assert max(largest) < 50


# Parameters and MACs with batch normalisation folded: of the MLPerf Tiny reference models, of torchvision's and timm's
# networks, of ST's MobileNetV2 0.35, and of the TensorFlow Lite text model.
@pytest.mark.parametrize(
    ("name", "options", "wanted_parameters", "wanted_macs"),
    [
        ("ds_cnn", {}, 22_604, 2_656_768),
        ("mobilenet_v1", {}, 210_850, 7_489_664),
        ("mobilenet_v1", {"alpha": 1.0, "size": 224, "classes": 1000}, 4_221_032, 568_740_352),
        ("resnet8", {}, 77_706, 12_501_632),
        ("autoencoder", {}, 265_864, 264_192),
        ("mobilenet_v2", {"size": 128}, 1_670_088, 20_220_672),
        ("mobilenet_v2", {"alpha": 1.0, "size": 224}, 3_487_816, 300_774_272),
        ("resnet18", {}, 11_684_712, 1_814_073_344),
        ("squeezenet", {}, 1_235_496, 349_151_936),
        ("lenet5", {}, 61_706, 416_520),
        ("text_classifier", {}, 160_354, 288),
    ],
)
def test_sizes_agree_with_the_literature(
    name: str, options: dict[str, float], wanted_parameters: int, wanted_macs: int
) -> None:
    model = samples.build(name, **options) if options else build(name)
    assert parameters(model) == wanted_parameters
    assert macs(model) == wanted_macs


def test_stahl_figure_4_4() -> None:
    shape = shapes(build("stahl_running_example"))
    assert [shape[layer] for layer in ("Conv1", "Conv2", "Conv3", "Dense")] == [
        (1, 32, 16, 4),
        (1, 32, 16, 4),
        (1, 64, 16, 4),
        (1, 6),
    ]
    # Untiled peak, S 4.3.2: input and output of Conv3, float32.
    assert 4 * (math.prod(shape["Conv2"]) + math.prod(shape["Conv3"])) == 24_576


def test_stahl_section_4_3_1_schedules() -> None:
    graph = build("stahl_two_paths").graph
    units = {name: 4 * math.prod(dims) // 160 for name, dims in shapes(build("stahl_two_paths")).items()}
    reads = {n.name: [i for i in n.input if "." not in i] for n in graph.node}
    assert [units[layer] for layer in ("A1", "B1", "C1", "B2", "C2")] == [50, 30, 40, 40, 40]

    def peak(order: tuple[str, ...]) -> int:
        """The most that is live while a layer runs: its output, and whatever it or a later one reads."""
        held = [
            {layer, *(t for t in ("input", *order[:i]) if any(t in reads[o] for o in order[i:]))}
            for i, layer in enumerate(order)
        ]
        return max(sum(units[tensor] for tensor in tensors) for tensors in held)

    def orders(done: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        ready = [n for n in reads if n not in done and set(reads[n]) <= {"input", *done}]
        if not ready:
            yield done
        for layer in ready:
            yield from orders((*done, layer))

    peaks = {order: peak(order) for order in orders()}
    assert len(peaks) == 20  # two chains of three, interleaved
    assert min(peaks.values()) == peaks["A1", "B1", "A2", "B2", "C2", "C1", "D"] == 110
    assert peaks["A1", "B1", "C1", "A2", "B2", "C2", "D"] == 120
    assert peaks["A2", "B2", "C2", "A1", "B1", "C1", "D"] == 120


def test_minakova_table_4_1() -> None:
    shape = shapes(build("minakova_example"))
    edges = [shape[name] for name in ("input", "l2", "l3", "l4")]
    assert edges == [(1, 1, 32, 32), (1, 4, 16, 16), (1, 3, 4, 4), (1, 2)]
    assert shape["l3.crop"] == (
        1,
        4,
        14,
        14,
    )  # pads of -1: without them l3 has the same size, but other values
    assert sum(map(math.prod, edges)) == 2098  # Ex1: every edge whole, a byte per element


@pytest.mark.parametrize("name", ["stahl_two_paths", "mobilenet_v2", "randwire", "ds_cnn_int8"])
def test_same_call_same_bytes(name: str, tmp_path: Path) -> None:
    path = samples.write(name, tmp_path / "new")
    assert path == tmp_path / "new" / f"{name}.onnx"
    code = f"from edgewright import samples; samples.write({name!r}, {str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    digests = {hashlib.sha256(file.read_bytes()).hexdigest() for file in tmp_path.rglob("*.onnx")}
    assert len(list(tmp_path.rglob("*.onnx"))) == 2
    assert len(digests) == 1


@pytest.mark.parametrize("form", ["qdq", "qoperator"])
@pytest.mark.parametrize("name", ["ds_cnn", "resnet8", "mobilenet_v1", "minakova_example", "tiny_inception"])
def test_int8_is_close_to_float(name: str, form: samples.Form) -> None:
    model = build(name)
    quantised = samples.quantised(name, form)
    ops = {node.op_type for node in quantised.graph.node}
    assert ("QLinearConv" in ops) == (form == "qoperator")
    weights = [w for w in quantised.graph.initializer if len(w.dims) == 4]
    assert weights
    assert all(w.data_type == TensorProto.INT8 for w in weights)
    wanted, got = np.array(run(model, *range(101, 109))), np.array(run(quantised, *range(101, 109)))
    # Eight bits through a dozen layers of random weights: about a tenth of the outputs' spread is noise.
    noise = np.sqrt(np.mean((got - wanted) ** 2))
    assert noise < 0.2 * wanted.std()


def test_int8_weights_have_a_scale_per_channel() -> None:
    scales = {w.name: w for w in build("resnet8_int8").graph.initializer if w.name.endswith("weight_scale")}
    assert [tuple(w.dims) for w in scales.values() if w.name.startswith("conv1")] == [(16,)]


def test_quantising_is_quiet_clean_and_leaves_the_model_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = samples.build("lenet5")
    before = model.SerializeToString(deterministic=True)
    samples.quantised(model)
    assert list(tmp_path.iterdir()) == []
    assert tuple(capfd.readouterr()) == ("", "")
    assert caplog.records == []
    assert logging.root.isEnabledFor(logging.WARNING)
    assert model.SerializeToString(deterministic=True) == before


def test_descriptions_are_single_lines() -> None:
    lines = [samples.describe(name) for name in samples.names()]
    assert all(line and "\n" not in line for line in lines)
    assert len(set(lines)) == len(lines)


def test_errors_say_what_to_try() -> None:
    with pytest.raises(InputError, match=r"unknown sample 'resnet9'\. Did you mean resnet8 or"):
        samples.build("resnet9")
    with pytest.raises(InputError, match=r"unknown sample 'zzz'\. Choose one of: stahl_running_example, "):
        samples.describe("zzz")
    with pytest.raises(InputError, match=r"'resnet18' has no option 'depth'\. It has: size, classes\."):
        samples.build("resnet18", depth=50)
    with pytest.raises(InputError, match=r"squeezenet: maxpool2 would be of shape \(1, 128, 0, 0\)"):
        samples.build("squeezenet", size=8)
    with pytest.raises(InputError, match=r"unknown quantised form 'int4'\. Choose one of: qdq, qoperator\."):
        samples.quantised("lenet5", form="int4")  # type: ignore[arg-type]


@given(seed=st.integers(0, 2**32 - 1), nodes=st.integers(6, 24))
@settings(max_examples=15, deadline=None)
def test_randwire_wires_every_node(seed: int, nodes: int) -> None:
    model = samples.build("randwire", seed=seed, nodes=nodes, width=4)
    onnx.checker.check_model(model, full_check=True)
    assert sum(n.op_type == "Conv" for n in model.graph.node) == 1 + 2 * nodes
    read = {i for n in model.graph.node for i in n.input}
    assert [n.name for n in model.graph.node if n.name not in read] == [model.graph.output[0].name]


def test_randwire_seeds_differ() -> None:
    wirings = [[tuple(n.input) for n in samples.build("randwire", seed=s).graph.node] for s in range(4)]
    assert all(a != b for a, b in pairwise(wirings))


def test_unet_has_both_ways_up() -> None:
    model = samples.build("unet", transposed=True)
    onnx.checker.check_model(model, full_check=True)
    assert run(model, 101)[0][0].shape == run(build("unet"), 101)[0][0].shape == (1, 2, 64, 64)
    assert "ConvTranspose" in {n.op_type for n in model.graph.node}


@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
@settings(max_examples=40, deadline=None)
def test_same_pads_are_onnxruntimes(size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int]) -> None:
    def conv(**padding: object) -> onnx.ModelProto:
        node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=kernel, strides=stride, **padding)
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, *size))
        w = helper.make_tensor_value_info("w", TensorProto.FLOAT, (1, 1, *kernel))
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph([node], "conv", [x, w], [y])
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])

    ((wanted,),) = run(conv(auto_pad="SAME_UPPER"), 0)
    ((got,),) = run(conv(pads=same_pads(*size, kernel, stride)), 0)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("is_application", [False, True])
def test_nothing_is_left_where_the_disk_is_full(
    is_application: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    write = samples.write_application if is_application else samples.write
    name = samples.application_names()[0] if is_application else "stahl_running_example"
    with pytest.raises(InputError, match="No space left"):
        write(name, tmp_path / "new" / "folder")
    assert not list(tmp_path.iterdir())
