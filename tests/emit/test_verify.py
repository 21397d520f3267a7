"""Verification that can fail: right code passes, wrong code, wrong RAM and wrong inputs are found out."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import edgewright
from edgewright import samples
from edgewright.emit import TARGETS, Options, Rounding, emit
from edgewright.emit import verify as verification
from edgewright.emit.inputs import given_inputs, load_inputs
from edgewright.emit.judge import judge, rounded_twice
from edgewright.emit.native import build
from edgewright.emit.verify import predicted, verify
from edgewright.errors import EdgewrightError, InputError
from edgewright.fusion.by_hand import parse_tile, schedule_of
from edgewright.memory import plan as make_plan
from edgewright.network import Arithmetic, Builder, DType, Quant, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.kernels.contraction import contracted
from edgewright.network.operators import Clamp, Dense
from edgewright.network.reference import compare
from tests.helpers.parameters import corpus_models
from tests.helpers.sanitized_runs import run_sanitized
from tests.helpers.tflite_cases import drawn
from tests.helpers.tools import on_board

pytestmark = pytest.mark.usefixtures("fully_compiled")
on_host = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


@pytest.fixture(scope="module")
def model():
    return samples.build("stahl_running_example")


@pytest.fixture(scope="module")
def library(model):
    network = edgewright.read_model(model)
    return emit(make_plan(network, explain=False), TARGETS["cortex-m4"])


@on_board
@on_host
def test_right_code_passes_here_and_on_the_board(model, library):
    given = [random_inputs(library.network, 77)]
    found = verify(library, model.SerializeToString(), given, count=1)
    assert found.verified and found.reference == "onnxruntime"
    assert [check.runs for check in found.checks] == [2, 1]
    assert found.ram_linked == found.ram_predicted == library.plan.peak_bytes
    assert found.flash_weights == library.weight_bytes
    assert 0 < found.stack_bytes < 2000 and 0 < found.flash_code < 20_000
    stages = [cost.instructions for cost in found.layers]
    assert 0.9 * found.instructions < sum(stages) < 1.1 * found.instructions
    assert sum(cost.macs for cost in found.layers) == found.macs == library.plan.macs
    data = found.to_dict()
    promised = "verified max_difference ram_predicted ram_linked stack_bytes flash_code flash_weights instructions macs"
    assert set(promised.split()) <= set(data) and data["layers"][0]["instructions_per_mac"] > 0


def broken(library):
    """The library with one weight changed."""
    name = f"{library.name}_weights.c"
    text = str(library.files[name])
    at = text.index("f,")
    return replace(library, files={**library.files, name: text[:at] + "e3" + text[at:]})


@on_host
def test_wrong_code_is_found_out(model, library, monkeypatch):
    monkeypatch.setattr(verification, "_obstacle", lambda _: "none here")
    with pytest.raises(EdgewrightError, match="verification failed: the code differs from onnxruntime on this machine"):
        verify(broken(library), model.SerializeToString(), count=1)


@on_board
def test_wrong_code_is_found_out_on_the_board_alone(model, library, monkeypatch):
    monkeypatch.setattr(verification, "_with_native", lambda figures, *_: figures)
    with pytest.raises(
        EdgewrightError, match=r"verification failed: the code differs from onnxruntime on (qemu|unicorn)"
    ):
        verify(broken(library), model.SerializeToString(), count=1)


@on_board
def test_more_ram_than_predicted_is_an_error(model, library, monkeypatch):
    """The linker refuses it; and what it would let through, the comparison of the figures does not."""
    name = f"{library.name}.c"
    greedy = str(library.files[name]).replace("_ARENA_SIZE]", "_ARENA_SIZE + 16]")
    with pytest.raises(EdgewrightError, match=r"does not fit.*16640 bytes"):
        verify(replace(library, files={**library.files, name: greedy}), model.SerializeToString(), count=1)
    measure = verification.measure
    monkeypatch.setattr(verification, "measure", lambda *a, **k: replace(measure(*a, **k), ram_linked=16644))
    with pytest.raises(EdgewrightError, match="16644 bytes of RAM are linked, 16640 were predicted"):
        verify(library, model.SerializeToString(), count=1)


def test_layers_count_the_macs_of_their_shares(model):
    """Groups by channels compute sums share by share: the whole layer is not counted for each."""
    network = edgewright.read_model(model)
    plan = make_plan(network, schedules=(schedule_of(network, parse_tile("Conv2..Conv3:channels=4")),))
    found = predicted(emit(plan, TARGETS["host"], network))
    assert sum(cost.macs for cost in found.layers) == found.macs == plan.macs == network.total_macs


def test_without_any_compiler_it_says_what_to_install(model, library, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_: None)
    monkeypatch.setattr("edgewright.board.toolchain.find_spec", lambda *_: None)
    with pytest.raises(EdgewrightError, match=r"(?s)nothing can be verified: .*gcc.*gcc-arm-none-eabi.*--no-verify"):
        verify(library, model.SerializeToString(), count=1)


@on_host
def test_without_an_emulator_it_says_so_and_checks_the_rest(model, library, monkeypatch):
    monkeypatch.setattr("edgewright.emit.firmware.measurement.has_qemu", lambda _: False)
    monkeypatch.setattr("edgewright.board.qemu.has_qemu", lambda _: False)
    monkeypatch.setattr("edgewright.emit.firmware.measurement.has_unicorn", lambda: False)
    found = verify(library, model.SerializeToString(), count=1)
    assert found.verified and found.instructions is None
    assert any("qemu-system-arm is not installed" in note for note in found.notes)


def test_without_the_runtime_our_kernels_judge(library, monkeypatch):
    def absent(*_):
        raise EdgewrightError("running a TFLite file needs LiteRT; install it")

    monkeypatch.setattr("edgewright.emit.judge.reference", absent)
    truth = judge(b"model", library.network, Options())
    assert truth.name == "edgewright's own reference kernels" and "needs LiteRT" in truth.missing
    inputs = random_inputs(library.network)
    assert compare(library.network, truth.run(inputs), execute(library.network, inputs)).largest == 0


@pytest.mark.parametrize(
    ("name", "dtype", "why"),
    [("sum_", "int8", "write no quantised SUM"), ("local_response_normalization", "float32", "leaves out")],
)
def test_where_litert_is_wrong_our_kernels_judge(name, dtype, why):
    content, network, values = drawn(name, dtype, 1)
    truth = judge(content, network, Options())
    assert why in truth.missing
    found, wanted = truth.run(values), execute(network, values)
    assert all(np.array_equal(found[output], wanted[output]) for output in network.outputs)


def quantised_dense(seed: int = 0):
    rng = np.random.default_rng(seed)
    b = Builder("dense", Arithmetic.TFLITE)
    x = b.input("x", (1, 64), DType.INT8, Quant((0.05,), (3,)))
    w = b.constant("w", rng.integers(-127, 128, (256, 64)).astype(np.int8), Quant((0.0123,), (0,)))
    c = b.constant("c", rng.integers(-999, 999, 256).astype(np.int32), Quant((0.05 * 0.0123,), (0,)))
    y = b.layer(Dense(), [x, w, c], "y", dtype=DType.INT8, quant=Quant((0.31,), (-4,)))
    return b.build([y])


@on_host
def test_the_rounding_of_tflm_is_judged_by_our_own_kernels():
    network = quantised_dense()
    options = Options(rounding=Rounding.TFLM)
    truth = judge(b"", network, options)
    twice = rounded_twice(network)
    seeds = [random_inputs(network, seed) for seed in range(8)]
    steps = [np.abs(execute(twice, x)["y"].astype(int) - execute(network, x)["y"]).max() for x in seeds]
    assert max(steps) <= 1 and "TFLM" in truth.notes[0]
    built = build(emit(make_plan(network), TARGETS["rv32imc"], options=options), flags=verification.QUICK)
    for x in seeds:
        np.testing.assert_array_equal(built.run(x)["y"], truth.run(x)["y"])


@on_host
def test_the_sanitizers_see_a_read_beyond_the_end(library):
    name = f"{library.name}.c"
    text = str(library.files[name])
    bad = text.replace("_ARENA_SIZE]", "_ARENA_SIZE - 8]")
    assert bad != text
    with pytest.raises(EdgewrightError, match=r"(?s)the sanitizers object.*AddressSanitizer"):
        run_sanitized(replace(library, files={**library.files, name: bad}), random_inputs(library.network))


def test_networks_too_large_to_run_here_are_refused():
    b = Builder("giant")
    network = b.build([b.layer(Clamp(0.0, 6.0), [b.input("x", (1 << 20, 8, 8, 2))], "y")])
    library = emit(make_plan(network, explain=False), TARGETS["host"])
    with pytest.raises(EdgewrightError, match=r"'x' has 134,217,728 elements.*--no-verify"):
        verify(library)


SMALL = ["stahl_running_example", "stahl_two_paths", "minakova_example_int8", "lenet5", "text_classifier"]


@on_host
@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=() if name in SMALL and target == "rv32imc" else pytest.mark.slow)
        for name in samples.names()
        for target in ("rv32imc", "cortex-m4", "host")
    ],
)
def test_samples_are_clean_under_the_sanitizers(name, target):
    sanitized(samples.build(name), target)


@on_host
@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc", "cortex-m55", "host"])
@pytest.mark.parametrize(
    "path", corpus_models("*.tflite", "lenet5.onnx", "ort_*.onnx", "ultra*.onnx", "mobilenet*.onnx")
)
def test_real_models_are_clean_under_the_sanitizers(path, target):
    sanitized(path, target)


def sanitized(model, target: str) -> None:
    network = edgewright.read_model(model)
    library = emit(make_plan(network, explain=False), TARGETS[target])
    inputs = random_inputs(network, 5)
    source = model.SerializeToString() if hasattr(model, "SerializeToString") else model
    truth = judge(source, network, Options())
    verdict = compare(network, run_sanitized(library, inputs), truth.run(inputs))
    assert verdict.passes, verdict


class TestInputs:
    @pytest.fixture
    def network(self):
        return edgewright.read_model(samples.build("stahl_running_example"))  # file: 1x1x32x8, ours: 1x32x8x1

    @pytest.mark.parametrize("shape", [(1, 1, 32, 8), (1, 32, 8, 1), (1, 32, 8), (32, 8, 1)])
    def test_either_layout_will_do(self, network, shape):
        values = np.arange(256, dtype=np.float64).reshape(shape)
        [found] = given_inputs(network, {"input": values})
        assert found["input"].shape == (1, 32, 8, 1) and found["input"].dtype == np.float32
        np.testing.assert_array_equal(found["input"].reshape(-1), np.arange(256))

    def test_a_longer_first_axis_is_several_runs(self, network):
        assert len(given_inputs(network, {"input": np.zeros((5, 1, 32, 8), np.float32)})) == 5

    def test_another_shape_is_refused_with_both_that_would_do(self, network):
        with pytest.raises(InputError, match=r"\(1, 1, 32, 8\) as in the model file or \(1, 32, 8, 1\).*got \(8, 32\)"):
            given_inputs(network, {"input": np.zeros((8, 32))})

    def test_names_and_counts(self, network, tmp_path):
        with pytest.raises(InputError, match="there is no input 'y'; the model has 1 input: input"):
            given_inputs(network, {"y": np.zeros(3)})
        np.save(tmp_path / "x.npy", np.zeros((1, 32, 8, 1), np.float32))
        np.savez(tmp_path / "x.npz", input=np.zeros((1, 32, 8, 1), np.float32))
        assert len(load_inputs(network, [tmp_path / "x.npy"])) == len(load_inputs(network, [tmp_path / "x.npz"])) == 1
        with pytest.raises(InputError, match="2 arrays were given for 1 input"):
            load_inputs(network, [tmp_path / "x.npy"] * 2)

    @pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 no zip", b"\x93NUMPY\x01\x00"])
    def test_what_is_no_array(self, network, tmp_path, content):
        (tmp_path / "x.npy").write_bytes(content)
        with pytest.raises(InputError, match="no array of numpy"):
            load_inputs(network, [tmp_path / "x.npy"])
        with pytest.raises(InputError, match="cannot read the input"):
            load_inputs(network, [tmp_path / "y.npy"])

    def test_arrays_that_claim_more_than_there_is(self, network, tmp_path):
        file = tmp_path / "x.npy"
        np.save(file, np.zeros((1, 32, 8, 1), np.float32))
        file.write_bytes(file.read_bytes().replace(b"(1, 32, 8, 1), }     ", b"(1, 32, 8, 99999999)}"))
        with pytest.raises(InputError, match="no array of numpy in good order"):
            load_inputs(network, [file])
        np.save(file, np.array([{}, "x"], object), allow_pickle=True)
        with pytest.raises(InputError, match="no array of numpy in good order"):
            load_inputs(network, [file])
        file.write_text("import pickle")
        with pytest.raises(InputError, match=r"\(.npy or .npz\); write one with numpy.save"):
            load_inputs(network, [file])

    def test_integers_must_fit(self):
        network = quantised_dense()
        with pytest.raises(
            InputError, match=r"must be int8; got float64 that does not fit \(stored = round\(real / 0.05\) \+ 3\)"
        ):
            given_inputs(network, {"x": np.full((1, 64), 0.5)})
        assert given_inputs(network, {"x": np.full((1, 64), -128.0)})[0]["x"].dtype == np.int8


@on_host
def test_a_plan_from_a_file_asks_for_its_weights(model, tmp_path):
    network = edgewright.read_model(model)
    edgewright.save_plan(make_plan(network), tmp_path / "plan.json")
    plan = edgewright.load_plan(tmp_path / "plan.json")
    with pytest.raises(InputError, match="a plan file holds no weights"):
        edgewright.load(plan)
    inputs = random_inputs(network, 1)
    actual = edgewright.load(plan, network).run(inputs)
    assert compare(network, actual, execute(network, inputs)).passes


def test_writing_outside_the_arena_is_noticed(model):
    """A plan that claims less memory than its buffers take: the guard behind the arena shows it."""
    network = edgewright.read_model(model)
    plan = make_plan(network)
    library = emit(plan, TARGETS["host"])
    (name, size), *_ = library.arenas.items()
    native = build(replace(library, arenas={name: size - 64}), flags=("-Og", "-std=c99"))
    with pytest.raises(AssertionError, match="outside its arena"):
        native.run(random_inputs(network, 1))


@on_host
def test_a_processor_that_the_emulator_lacks_is_a_note(model, monkeypatch):
    """Unicorn has no Cortex-M55: the same sources are still checked on this machine."""
    pytest.importorskip("unicorn")
    monkeypatch.setattr("edgewright.emit.firmware.measurement.has_qemu", lambda _: False)
    network = edgewright.read_model(model)
    library = emit(edgewright.plan(network, explain=False), TARGETS["cortex-m55"], network)
    found = verify(library, model.SerializeToString(), count=1)
    assert found.verified and [check.where for check in found.checks] == ["this machine"]
    assert any("Unicorn has not the processor of mps3-an547; install QEMU" in note for note in found.notes)


@on_host
def test_a_runtime_that_contracts_on_this_processor_is_told_from_wrong_code(monkeypatch):
    """As LiteRT does on Arm: the code follows x86-64, and what differs is named."""
    content, network, values = drawn("resize_bilinear", "uint8", 23)
    library = emit(make_plan(network, explain=False), TARGETS["host"], network)

    class OnArm:
        def run(self, inputs):
            with contracted():
                return execute(network, inputs)

    monkeypatch.setattr("edgewright.emit.judge.reference", lambda *_: OnArm())
    found = verify(library, content, [values], count=1)
    assert found.verified and found.worst.difference == 0
    layer = network.layers[0].name
    assert f"LiteRT rounds otherwise on this processor, in layer '{layer}'; compared with x86-64" in found.notes

    class Wrong:
        def run(self, inputs):
            return {name: value ^ 1 for name, value in execute(network, inputs).items()}

    monkeypatch.setattr("edgewright.emit.judge.reference", lambda *_: Wrong())
    with pytest.raises(EdgewrightError, match=r"verification failed: .* 1 step off \(0 allowed\)"):
        verify(library, content, [values], count=1)
