"""What is written as ONNX runs in onnxruntime with the numbers of our kernels."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings

from edgewright.errors import InputError, Unsupported
from edgewright.network import Array, Builder, DType, Network, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.onnx_writer import to_onnx, write_onnx
from edgewright.network.onnx_writer.table import WRITERS
from edgewright.network.operators import (
    BETWEEN_PARTS,
    ArgMax,
    AvgPool2d,
    Binary,
    BinaryKind,
    Cast,
    Clamp,
    Compare,
    Conv2d,
    ConvTranspose2d,
    Custom,
    Dense,
    Dequantize,
    DynamicProduct,
    DynamicQuantize,
    Gather,
    GatherElements,
    Lrn,
    MatMul,
    MaxPool2d,
    Op,
    Pad,
    PadMode,
    Quantize,
    Select,
    TopK,
    Unary,
    UnaryKind,
)
from edgewright.network.parts import subnetwork
from edgewright.network.passes import run
from edgewright.network.read import read_bytes
from edgewright.network.reference import to_file_layout, to_our_layout
from tests.helpers.kernel_cases import CASES, Case, cases
from tests.helpers.onnx_session import onnx_session
from tests.helpers.random_networks import networks
from tests.network.passes_networks import Literal, results

KINDS = tuple(kind for kind in get_args(Op) if kind not in (Custom, *BETWEEN_PARTS))
quick = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def run_onnx(model: onnx.ModelProto | Path, inputs: dict[str, Array]) -> dict[str, Array]:
    session = onnx_session(model)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def written(network: Network, inputs: dict[str, Array]) -> dict[str, Array]:
    """The outputs of the written model, in our layout."""
    model = to_onnx(network)
    onnx.checker.check_model(model, full_check=True)
    theirs = {name: np.ascontiguousarray(to_file_layout(network, name, value)) for name, value in inputs.items()}
    return {name: to_our_layout(network, name, value) for name, value in run_onnx(model, theirs).items()}


def assert_written(network: Network, steps: int = 0) -> None:
    inputs = random_inputs(network)
    with np.errstate(all="ignore"):
        expected = execute(network, inputs)
    actual = written(network, inputs)
    assert list(actual) == list(network.outputs)
    for name, value in expected.items():
        assert actual[name].dtype == value.dtype
        if value.dtype == np.float32:
            scale = float(np.abs(value[np.isfinite(value)]).max(initial=1))
            np.testing.assert_allclose(actual[name], value, rtol=2e-4, atol=2e-5 * scale, err_msg=name)
        else:
            gap = np.abs(actual[name].astype(np.int64) - value.astype(np.int64))
            assert gap.max(initial=0) <= steps, name


def test_every_operator_has_a_writer() -> None:
    assert set(WRITERS) == set(get_args(Op))


def single(case: Case) -> Network:
    """The case as a network: products and joins of inputs, everything else with constants behind the first input."""
    b = Builder("one")
    values = case.values()
    free = {0} if not isinstance(case.op, Binary | MatMul) and type(case.op).__name__ != "Concat" else set(range(9))
    if isinstance(case.op, Gather | GatherElements):
        free = set()
    names = []
    for i, value in enumerate(values):
        if i in free:
            names.append(b.input(f"x{i}", value.shape, DType(value.dtype.name)))
        else:
            names.append(b.constant(f"c{i}", value))
    if not free:
        names[0] = b.layer(Binary(BinaryKind.ADD), [b.input("x0", values[0].shape), names[0]], "sum")
    dtype: DType | None = None
    quant = None
    match case.op:
        case ArgMax() | TopK():
            dtype = DType.INT64
        case Cast():
            dtype = case.op.dtype
        case Compare():
            dtype = DType.BOOL
        case Select():
            dtype = DType.FLOAT32
        case DynamicQuantize():
            dtype = DType.INT8
        case DynamicProduct():
            dtype = DType.FLOAT32
        case Quantize():
            dtype, quant = DType.UINT8, Quant.of(0.05, 100)
        case Dequantize():
            names[0] = b.layer(Quantize(), names, "stored", dtype=DType.INT8, quant=Quant.of(0.1, 3))
            dtype = DType.FLOAT32
    return b.build([b.layer(case.op, names, "y", dtype=dtype, quant=quant)])


def supported(case: Case) -> bool:
    """Whether onnxruntime takes it: pads below the kernel or what they mirror, LRN across an odd number."""
    match case.op:
        case MaxPool2d() | AvgPool2d():
            kernel = (*case.op.kernel, *case.op.kernel)
            bottom = np.array((0, 0, *getattr(case.op, "uncounted", (0, 0))))
            return all(p < k for p, k in zip(np.array(case.op.pads), kernel, strict=True)) and not bottom.any()
        case Pad(mode=mode) if mode is not PadMode.CONSTANT:
            sides = zip(case.shapes[0], case.op.before, case.op.after, strict=True)
            return all(max(a, b) < size + min(a, 0) + min(b, 0) for size, a, b in sides)
        case DynamicProduct(product=ConvTranspose2d(groups=groups, pads=pads)):
            return groups == 1 and min(pads) >= 0
        case DynamicProduct(product=Conv2d(pads=pads)):
            return min(pads) >= 0
        case Lrn(size=size):
            return size % 2 == 1
        case Unary(kind=kind):
            return kind not in (UnaryKind.LOG, UnaryKind.SQRT, UnaryKind.RSQRT, UnaryKind.RECIPROCAL)
        case Binary(kind=kind):
            return kind is not BinaryKind.POW
    return True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_written_operator_equals_kernel(kind: type) -> None:
    @given(cases(kind))
    @quick
    def check(case: Case) -> None:
        assume(supported(case))
        assert_written(single(case))

    check()


def test_every_operator_has_a_case() -> None:
    assert set(CASES) == set(KINDS)


@pytest.mark.parametrize("kind", list(UnaryKind), ids=lambda kind: kind.value)
def test_unary(kind: UnaryKind) -> None:
    b = Builder("unary")
    x = b.layer(Unary(UnaryKind.SIGMOID), [b.input("x", (2, 7))], "positive")
    assert_written(b.build([b.layer(Unary(kind), [x], "y")]))


@given(networks(kinds=("float",)))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_networks(network: Network) -> None:
    assert_written(network)


@given(networks(kinds=("onnx", "tflite"), most=3))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_quantised_networks(network: Network) -> None:
    """Layers in a row may each be off by a step, and a layer with a finer scale shows it as several."""
    assert_written(network, steps=8)


def small(seed: int = 0) -> Network:
    b = Literal(seed=seed)
    x = b.conv(b.input("x", (1, 3, 8, 6)), 4, "conv", pads=(1, 1, 1, 1))
    return run(b.build([b.layer(Clamp(0.0), [x], "y")]))


def test_interface_is_that_of_the_file() -> None:
    """Read from NCHW and kept in NHWC, it is written in NCHW again, without a Transpose."""
    network = small()
    assert network.tensors["x"].shape == (1, 8, 6, 3)
    model = to_onnx(network)
    dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    assert dims == [1, 3, 8, 6]
    assert [node.op_type for node in model.graph.node] == ["Conv", "Relu"]
    assert_written(network)


def test_interface_is_ours_when_no_file_had_another() -> None:
    b = Builder("ours")
    w = b.constant("w", np.ones((2, 3, 3, 1), np.float32))
    network = b.build([b.layer(Conv2d(), [b.input("x", (1, 5, 5, 1)), w], "y")])
    model = to_onnx(network)
    assert [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim] == [1, 3, 3, 2]
    assert [node.op_type for node in model.graph.node] == ["Transpose", "Conv", "Transpose"]
    assert_written(network)


def test_part_of_a_network_is_written_too() -> None:
    b = Literal()
    x = b.conv(b.input("x", (1, 3, 9, 8)), 4, "one")
    network = run(b.build([b.conv(b.conv(x, 5, "two"), 2, "three")]))
    assert_written(subnetwork(network, ["two"]))


def test_int16_needs_a_later_opset() -> None:
    b = Builder("sixteen")
    x = b.input("x", (1, 6), DType.INT16, Quant.of(0.001))
    network = b.build([b.layer(Binary(BinaryKind.ADD), [x, x], "y", dtype=DType.INT16, quant=Quant.of(0.002))])
    assert to_onnx(network).opset_import[0].version == 21
    assert_written(network, steps=1)


def test_written_file_is_whole(tmp_path: Path) -> None:
    network = small()
    path = write_onnx(network, tmp_path / "net.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["net.onnx"]
    inputs = random_inputs(network)
    outputs = run_onnx(path, {"x": np.ascontiguousarray(to_file_layout(network, "x", inputs["x"]))})
    np.testing.assert_allclose(
        to_our_layout(network, "y", outputs["y"]), execute(network, inputs)["y"], rtol=1e-4, atol=1e-5
    )


def test_large_weights_go_beside_the_file(tmp_path: Path) -> None:
    b = Builder("wide")
    w = b.constant("w", np.random.default_rng(0).standard_normal((40, 64)).astype(np.float32))
    network = b.build([b.layer(Dense(), [b.input("x", (1, 64)), w], "y")])
    path = write_onnx(network, tmp_path / "net.onnx", limit=1000)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    assert path.stat().st_size < 1000
    inputs = random_inputs(network)
    np.testing.assert_allclose(run_onnx(path, inputs)["y"], execute(network, inputs)["y"], rtol=1e-4, atol=1e-4)


def test_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"old")
    monkeypatch.setattr(onnx, "save_model", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(InputError, match=r"cannot write .*net\.onnx.*disk full"):
        write_onnx(small(), path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is the folder there"):
        write_onnx(small(), tmp_path / "nowhere" / "net.onnx")


def test_lrn_across_an_even_number_is_refused() -> None:
    b = Builder("even")
    with pytest.raises(Unsupported, match="even number of channels"):
        to_onnx(b.build([b.layer(Lrn(4), [b.input("x", (1, 3, 3, 8))], "norm")]))


@given(networks(kinds=("float",), most=5))
@quick
def test_read_back_it_is_the_same(network: Network) -> None:
    """But for layers that find scales as they run: they become operators on truth values, which are written only."""
    assume(not any(isinstance(layer.op, DynamicQuantize) for layer in network.layers))
    again = read_bytes(to_onnx(network).SerializeToString(), network.name)
    inputs = random_inputs(network)
    outputs = results(again, inputs)
    for name, value in execute(network, inputs).items():
        scale = float(np.abs(value).max(initial=1))
        np.testing.assert_allclose(outputs[name], value, rtol=2e-4, atol=2e-5 * scale)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kind", [Conv2d, ConvTranspose2d])
def test_scales_per_channel_and_bias_in_steps(kind: type[Conv2d] | type[ConvTranspose2d], groups: int) -> None:
    """The axis of the scales moves with the weights; a bias that tells no scale counts steps of the products."""
    rng = np.random.default_rng(0)
    b = Builder("stored")
    x = b.input("x", (1, 5, 5, 4), DType.INT8, Quant.of(0.05, 3))
    weights = rng.integers(-127, 128, (6, 3, 3, 4 // groups)).astype(np.int8)
    scales = tuple(float(s) for s in rng.uniform(0.001, 0.05, 6))
    w = b.constant("w", weights, Quant(scales, (0,) * 6, 0))
    bias = b.constant("bias", rng.integers(-2000, 2000, 6).astype(np.int32))
    y = b.layer(kind(groups=groups), [x, w, bias], "y", dtype=DType.INT8, quant=Quant.of(0.2, -7))
    assert_written(b.build([y]), steps=1)
