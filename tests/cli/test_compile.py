"""`compile` and `run` as a user meets them: tables, JSON, exit status, nothing half-written."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.cli import main
from tests.helpers.onnx_session import onnx_session
from tests.helpers.parameters import corpus_models
from tests.helpers.tools import on_board

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return samples.write("stahl_running_example", tmp_path_factory.mktemp("models"))


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def refused(result, *words):
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: ") and "Traceback" not in result.output
    assert all(word in result.output for word in words), result.output


@on_board
def test_compile_for_a_board(model, tmp_path):
    out = tmp_path / "out"
    result = run("compile", model, "--board", "nucleo-f446re", "-o", out)
    assert result.exit_code == 0, result.output
    assert "verified: " in result.output and "mps2-an386" in result.output
    report = json.loads((out / "report.json").read_text())
    assert report["verified"] and report["ram_linked"] == report["ram_predicted"] == 16640
    assert report["board"] == "nucleo-f446re" and report["instructions"] > report["macs"]
    page = (out / "report.html").read_text()
    assert (
        page.startswith("<!DOCTYPE html>")
        and "<svg" in page
        and "Verified: " in page
        and "://" not in page.split("<svg")[0]
    )
    again = run("compile", model, "--board", "nucleo-f446re", "-o", tmp_path / "again")
    assert again.exit_code == 0
    first, second = (
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in (out, tmp_path / "again")
    )
    assert first == second  # same plan, same bytes


def test_compile_json_holds_what_is_promised(model, tmp_path):
    result = run(
        "compile", model, "--target", "rv32imc", "--name", "My Net", "-o", tmp_path / "o", "--json", "--no-verify"
    )
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    promised = "verified max_difference ram_predicted ram_linked stack_bytes flash_code flash_weights instructions macs"
    assert set(promised.split()) <= set(data)
    assert data["verified"] is False and data["instructions"] is None and data["macs"] == 174464
    assert (tmp_path / "o" / "src" / "my_net.h").is_file()


def test_without_verification_it_says_so(model, tmp_path):
    result = run("compile", model, "--target", "cortex-m0plus", "-o", tmp_path / "o", "--no-verify")
    assert result.exit_code == 0 and "not verified" in result.output


def test_an_input_of_the_wrong_shape(model, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 3), np.float32))
    for verb in ("compile", "run"):
        refused(
            run(verb, model, "--input", tmp_path / "x.npy", *(("-o", tmp_path / "o") if verb == "compile" else ())),
            "(1, 1, 32, 8)",
            "(3, 3)",
        )
    assert not (tmp_path / "o").exists()


def test_a_strangers_folder_is_left_alone(model, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    refused(run("compile", model, "-o", tmp_path, "--no-verify"), "not empty", "--force")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    assert run("compile", model, "-o", tmp_path, "--no-verify", "--force").exit_code == 0
    assert (tmp_path / "thesis.tex").exists() and (tmp_path / "src").is_dir()


def test_plans_made_before(model, tmp_path):
    plan = tmp_path / "plan.json"
    assert run("plan", model, "--board", "nucleo-f446re", "-o", plan).exit_code == 0
    result = run("compile", model, "--plan", plan, "-o", tmp_path / "o", "--no-verify", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["board"] == "nucleo-f446re"  # the plan's own
    refused(
        run("compile", model, "--plan", plan, "--board", "nucleo-h743zi", "-o", tmp_path / "p"),
        "made for the board 'nucleo-f446re'",
    )
    other = samples.write("stahl_two_paths", tmp_path)
    refused(run("compile", other, "--plan", plan, "-o", tmp_path / "p"), "another model", "differ in their")
    (tmp_path / "bad.json").write_text("{}")
    refused(run("compile", model, "--plan", tmp_path / "bad.json", "-o", tmp_path / "p"), "not an edgewright plan")
    assert not (tmp_path / "p").exists()


def board_file(path, ram: str, flash: str):
    path.write_text(
        'name = "tiny"\n[[processor]]\nname = "core"\nkind = "cortex-m4f"\nclock = "1 MHz"\n'
        f'[[memory]]\nname = "sram"\nsize = "{ram}"\n[[memory]]\nname = "flash"\nsize = "{flash}"\nread_only = true\n'
    )
    return path


def test_a_board_that_is_too_small(model, tmp_path):
    small = board_file(tmp_path / "ram.toml", "16 KiB", "1 MiB")
    refused(
        run("compile", model, "--board", small, "--plain", "-o", tmp_path / "o"),
        *("24,576 B of", "B more than the 16,384 B there are", "Try"),
    )
    small = board_file(tmp_path / "ram.toml", "1 KiB", "1 MiB")
    refused(
        run("compile", model, "--board", small, "-o", tmp_path / "o"),
        *("does not fit", "at least, and 1,024 B are there", "nucleo-f446re", "would do"),
    )
    small = board_file(tmp_path / "flash.toml", "64 KiB", "8 KiB")
    refused(
        run("compile", model, "--board", small, "-o", tmp_path / "o"),
        *("B of flash (", "B more than the 8,192 B there are"),
        "Try int8 weights or a board with more flash (nucleo-f446re, ",
    )
    integers = samples.write("ds_cnn_int8", tmp_path)
    refused(run("compile", integers, "--board", small, "-o", tmp_path / "o"), "Try a smaller model or a board with")
    assert not (tmp_path / "o").exists()


@on_board
def test_weights_that_fit_without_the_code(model, tmp_path):
    small = board_file(tmp_path / "tight.toml", "64 KiB", "13000 B")
    refused(run("compile", model, "--board", small, "-o", tmp_path / "o"), "flash", "more")
    assert not (tmp_path / "o").exists()


def test_a_missing_compiler_is_named_with_its_package(model, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_: None)
    monkeypatch.setattr("edgewright.board.toolchain.find_spec", lambda *_: None)
    refused(run("compile", model, "--board", "nucleo-f446re", "-o", tmp_path / "o"), "gcc-arm-none-eabi", "--no-verify")
    refused(run("run", model, "--board", "nucleo-f446re"), "gcc-arm-none-eabi")
    assert list(tmp_path.iterdir()) == []


def test_a_board_without_a_compiler_here_gets_c_that_is_tried_on_this_machine(model, tmp_path):
    done = run("compile", model, "--board", "esp32-s3-devkitc", "-o", tmp_path / "o", "--json")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert figures["target"] == "portable" and figures["verified"] is True
    assert any("no virtual xtensa-lx7" in note for note in figures["notes"])


def test_a_target_that_the_board_does_not_run_is_refused(model, tmp_path):
    asked = ("--board", "nucleo-f446re", "--target", "rv32imc")
    refused(run("compile", model, *asked, "-o", tmp_path / "o"), "nucleo-f446re", "rv32imc", "cortex-m4")
    refused(run("plan", model, *asked), "nucleo-f446re", "rv32imc", "cortex-m4")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_is_compiled_for_the_target_it_was_made_for(model, tmp_path):
    plan = tmp_path / "p.json"
    assert run("plan", model, "--target", "cortex-m4", "-o", plan).exit_code == 0
    done = run("compile", model, "--plan", plan, "-o", tmp_path / "o", "--no-verify", "--json")
    assert json.loads(done.stdout)["target"] == "cortex-m4"


@pytest.mark.parametrize(
    "option", [("--target", "z80"), ("--rounding", "up"), ("--kernels", "magic"), ("--shape", "x")]
)
def test_options_that_do_not_exist_are_usage_errors(model, option, tmp_path):
    result = run("compile", model, "-o", tmp_path / "o", *option)
    assert result.exit_code == 2 and not (tmp_path / "o").exists()


@on_board
def test_run_on_the_virtual_board(model, tmp_path):
    x = np.linspace(-1, 1, 256, dtype=np.float32).reshape(1, 1, 32, 8)
    np.save(tmp_path / "x.npy", x)
    arguments = ("run", model, "--board", "nucleo-f446re", "--input", tmp_path / "x.npy")
    result = run(*arguments, "-o", tmp_path / "y.npz")
    assert result.exit_code == 0, result.output
    assert "instructions" in result.output and "stack" in result.output and "Dense" in result.output
    data = json.loads(run(*arguments, "--json").output)
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["Dense"], data["outputs"]["Dense"], rtol=1e-5)
    [expected] = onnx_session(str(model)).run(None, {"input": x})
    np.testing.assert_allclose(data["outputs"]["Dense"], expected, rtol=1e-3, atol=1e-4)
    assert data["instructions"] > 0 and data["ram_linked"] == 16640


@on_board
@pytest.mark.parametrize("path", corpus_models("tflm_micro_speech_int8.tflite"))
def test_a_trained_model_is_bit_exact_on_the_board(path, tmp_path):
    result = run("compile", path, "--board", "nucleo-f446re", "-o", tmp_path / "o", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    assert data["verified"] and data["max_difference"] == 0 and data["reference"] == "LiteRT's reference kernels"
