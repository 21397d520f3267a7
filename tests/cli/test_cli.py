"""The command line as a user meets it: tables, JSON, exit status, nothing left behind."""

import json

import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.cli import main
from edgewright.program import load_plan


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return samples.write("resnet8_int8", tmp_path_factory.mktemp("models"))


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_inspect(model):
    result = run("inspect", model)
    assert result.exit_code == 0, result.output
    assert "Conv2d 3×3" in result.output and "12,501,632 MACs" in result.output


def test_inspect_json(model):
    data = json.loads(run("inspect", model, "--json").output)
    assert data["macs"] == 12_501_632
    assert data["inputs"][0]["shape"] == [1, 32, 32, 3]
    assert sum(layer["macs"] for layer in data["layers"]) == data["macs"]


def test_plan_json_holds_what_is_promised(model, tmp_path):
    out = tmp_path / "plan.json"
    result = run("plan", model, "--board", "nucleo-f446re", "-o", out, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    promised = [
        "peak_bytes",
        "bound_bytes",
        "optimal",
        "flash_bytes",
        "weights_bytes",
        "macs",
        "macs_plain",
        "order",
        "buffers",
        "fits",
        "critical",
    ]
    assert set(promised) <= set(data)
    assert set(data["buffers"][0]) >= {"name", "offset", "size", "first", "last"}
    assert data["peak_bytes"] == max(b["offset"] + b["size"] for b in data["buffers"])
    assert load_plan(out).peak_bytes == data["peak_bytes"]


def test_plan_writes_only_what_is_asked_for(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("plan", model)
    assert result.exit_code == 0 and list(tmp_path.iterdir()) == [] and "wrote" not in result.output
    result = run("plan", model, "-o", "p.json")
    assert result.exit_code == 0 and [path.name for path in tmp_path.iterdir()] == ["p.json"]


def test_plain_needs_more(model, tmp_path):
    peaks = [
        json.loads(run("plan", model, "-o", tmp_path / "p.json", "--json", *extra).output)["peak_bytes"]
        for extra in ((), ("--plain",))
    ]
    assert peaks[0] < peaks[1]


def test_plan_writes_a_page(model, tmp_path):
    page = tmp_path / "plan.html"
    result = run("plan", model, "-o", tmp_path / "p.json", "--page", page)
    assert result.exit_code == 0, result.output
    assert "proven least for whole layers" in " ".join(result.output.split())
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_too_little_ram_says_by_how_much_and_why(model, tmp_path):
    result = run("plan", model, "--ram", "16K", "--plain", "-o", tmp_path / "p.json")
    assert result.exit_code == 1
    assert "does not fit" in result.output and "more than the 16,384 B there are" in result.output
    assert "in the way: '" in result.output


def test_too_little_ram_for_whole_layers_is_enough_for_parts(model, tmp_path):
    """Nothing was asked for but a size: what fits is found, and it is said what was done."""
    result = run("plan", model, "--ram", "16K", "-o", tmp_path / "p.json")
    assert result.exit_code == 0
    assert "whole layers do not fit: some run in parts" in result.output and "no extra MACs" in result.output


def test_too_little_ram_for_any_plan_says_the_least_there_is(model, tmp_path):
    result = run("plan", model, "--ram", "1K", "-o", tmp_path / "p.json")
    assert result.exit_code == 1 and not (tmp_path / "p.json").exists()
    assert "needs" in result.output and "would do" in result.output


def test_enough_ram_says_so(model, tmp_path):
    result = run("plan", model, "--ram", "64K", "-o", tmp_path / "p.json")
    assert result.exit_code == 0 and "of 65,536 B RAM stay free" in result.output


@pytest.mark.parametrize("ram", ["0", "-5", "lots", "64 parsecs", ""])
def test_ram_that_is_no_size_is_a_usage_error(model, ram, tmp_path):
    result = run("plan", model, "--ram", ram, "-o", tmp_path / "p.json")
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["inspect", "plan"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no file"),
        (b"", "is empty"),
        (b"hello, I am not a model at all\n", "ONNX"),
        (b"PK\x03\x04 a zip", ""),
        (b"\x1c\x00\x00\x00TFL3" + bytes(40), ""),
    ],
    ids=["missing", "empty", "text", "zip", "tflite-stump"],
)
def test_what_is_no_model_gets_one_sentence(verb, content, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    result = run(verb, path)
    assert result.exit_code == 1, result.output
    assert words in result.output
    assert result.output.startswith("Error: ") and len(result.output.strip().splitlines()) == 1
    assert {p.name for p in tmp_path.iterdir()} <= {"model.onnx"}


def test_an_unknown_board_is_named_with_a_suggestion(model, tmp_path):
    result = run("plan", model, "--board", "nucleo-f446", "-o", tmp_path / "p.json")
    assert result.exit_code == 1 and "nucleo-f446re" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["-o", "--page"])
def test_an_output_that_cannot_be_written(model, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("plan", model, option, tmp_path / "no" / "such" / "folder.json")
    assert result.exit_code == 1 and "cannot write" in result.output
    assert list(tmp_path.iterdir()) == []


def test_layout(tmp_path):
    """The example of MiniMalloc's README fits in 12."""
    path = tmp_path / "buffers.csv"
    path.write_text("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n")
    data = json.loads(run("layout", path, "--capacity", "12", "--json").output)
    assert (data["peak_bytes"], data["optimal"], len(data["offsets"])) == (12, True, 5)
    refused = run("layout", path, "--capacity", "11")
    assert refused.exit_code == 1 and "no placement exists in 11 bytes" in refused.output
    written = run("layout", path, "-o", tmp_path / "out.csv")
    assert written.exit_code == 0 and "offset" in (tmp_path / "out.csv").read_text().splitlines()[0]


def test_boards():
    assert "nucleo-f446re" in run("boards").output
    data = json.loads(run("boards", "--json").output)
    assert len(data) >= 12 and all(board["memory"] for board in data)


def test_sample(tmp_path):
    assert "ds_cnn" in run("sample").output
    assert run("sample", "lenet5", "-o", tmp_path).exit_code == 0
    assert (tmp_path / "lenet5.onnx").exists()
    unknown = run("sample", "lenet", "-o", tmp_path)
    assert unknown.exit_code == 1 and "lenet5" in unknown.output


def test_usage_errors_end_with_2():
    assert run("plan").exit_code == 2
    assert run("inspect", "x.onnx", "--shape", "nonsense").exit_code == 2
    assert run("nothing").exit_code == 2
