"""`edgewright map` as a user meets it: what it prints and writes, and one sentence for whatever cannot be."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from click.testing import CliRunner

from edgewright import read_model, samples
from edgewright.cli import main
from edgewright.errors import InputError
from edgewright.platform.profile import save_profile
from edgewright.program.deployment_file import load_reduced
from tests.helpers.profiles import made_up_profile


def run(*arguments):
    return CliRunner().invoke(main, ["map", *map(str, arguments)])


def answer(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refusal(*arguments) -> str:
    result = run(*arguments)
    assert result.exit_code in (1, 2), result.output
    assert "Traceback" not in result.output
    return result.output


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return samples.write("lenet5", tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def network(model):
    return read_model(model)


@pytest.fixture(scope="module")
def here(network, tmp_path_factory):
    path = tmp_path_factory.mktemp("times") / "here.json"
    save_profile(made_up_profile(network, lanes=(1, 2)), path)
    return path


@pytest.fixture(scope="module")
def jetson(network, tmp_path_factory):
    path = tmp_path_factory.mktemp("times") / "jetson.json"
    save_profile(made_up_profile(network, "jetson-tx2", {"denver": 2, "a57": 4}, gpu=10.0), path)
    return path


def test_json_has_what_was_promised(model, here):
    found = answer(model, "--times", here)
    keys = {"throughput", "bound", "gap", "latency_s", "memory_bytes", "optimal", "actors", "channels"}
    assert keys <= found.keys()
    assert found["optimal"] and found["throughput"] <= found["bound"] * (1 + 1e-9)
    assert sum(actor["lanes"] * actor["replicas"] for actor in found["actors"]) == 2
    assert {channel["source"] for channel in found["channels"]} >= {""}


def test_a_gpu_is_driven_by_a_core(model, jetson):
    found = answer(model, "--board", "jetson-tx2", "--times", jetson)
    gpu = next(actor for actor in found["actors"] if actor["processor"] == "gpu")
    assert gpu["driver"] in ("denver", "a57") and gpu["executor"] == "torch"
    assert found["energy_j"] > 0
    few = answer(model, "--board", "jetson-tx2", "--times", jetson, "--cores", "denver=0", "--cores", "a57=1")
    assert few["throughput"] < found["throughput"] and few["throughput"] <= few["bound"] * (1 + 1e-9)


def test_limits_of_stages_replicas_and_lanes(model, here):
    pipeline = answer(model, "--times", here, "--replicas", 1, "--lanes", 1)
    assert len(pipeline["actors"]) == 2 and pipeline["gap"] > 0
    lanes = answer(model, "--times", here, "--replicas", 1, "--stages", 1)
    assert [(a["lanes"], a["replicas"]) for a in lanes["actors"]] == [(2, 1)]


def test_tables_and_the_page(model, here, tmp_path):
    page = tmp_path / "page.html"
    result = run(model, "--times", here, "--pareto", "--page", page)
    assert result.exit_code == 0, result.output
    assert "no pipeline is faster by these times; bound" in result.output and "frames/s" in result.output
    html = page.read_text()
    assert "sets the pace" in html and html.count("<svg") == 2
    layers = html[html.index('id="layers"') : html.index('id="fifos"')]
    assert layers.count("<tr><td>") >= len(read_model(model).layers)


def test_rooflines_are_called_so_and_prove_nothing(model, tmp_path):
    page = tmp_path / "page.html"
    result = run(model, "--board", "raspberry-pi-4", "--page", page)
    assert result.exit_code == 0, result.output
    html = page.read_text()
    assert "frames/s estimated by roofline" in result.output and "raspberry-pi-4" in html
    assert "estimated by roofline" in html and 'class="proof proven"' not in html


def test_the_genetic_search_says_how_far_it_is_from_the_bound(model, here):
    found = answer(model, "--times", here, "--method", "ga")
    assert found["method"] == "ga" and not found["optimal"] and 0 <= found["gap"] < 1


def test_built_and_run(model, here, tmp_path):
    folder = tmp_path / "plan"
    found = answer(model, "--times", here, "--lanes", 1, "--run", "--frames", 20, "-o", folder)
    assert found["measured_throughput"] > 0 and found["measured_latency_s"] > 0
    assert found["onnxruntime_throughput"] > 0
    assert (folder / "pipeline.json").exists()
    file = folder / "deployment.json"
    sound = file.read_bytes()
    assert json.loads((folder / "pipeline.json").read_text())["source"] == sha256(sound).hexdigest()
    for damaged in (sound[:-1], sound + b" ", b""):
        file.write_bytes(damaged)
        result = CliRunner().invoke(main, ["run", str(folder), "--frames", "2"])
        assert result.exit_code == 1 and "is damaged, or not what 'pipeline.json' was built from" in result.output
    file.unlink()  # only the pipeline runs
    assert load_reduced(folder).parts


def test_a_full_disk_leaves_no_folder(model, here, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("edgewright.cli.map.save_deployment", full)
    said = refusal(model, "--times", here, "--lanes", 1, "-o", tmp_path / "plan")
    assert "No space left on device" in said and not list(tmp_path.iterdir())


def test_times_that_do_not_fit_are_refused(model, network, here, jetson, tmp_path):
    other = tmp_path / "other.json"
    profile = made_up_profile(network)
    save_profile(profile.model_copy(update={"layers": profile.layers[2:]}), other)
    missing = refusal(model, "--times", other)
    assert all(f"'{layer.name}'" in missing for layer in profile.layers[:2]) and "miss 2 layers" in missing
    save_profile(profile.model_copy(update={"model_digest": "0" * 64}), other)
    assert "belong to another model" in refusal(model, "--times", other)
    assert "taken for board 'jetson-tx2', not for 'this'" in refusal(model, "--times", jetson)
    other.write_text("{}")
    assert "is no profile of layer times" in refusal(model, "--times", other)


def test_what_cannot_be_is_one_sentence(model, here, jetson, tmp_path):
    assert "3 cores of 'cpu' are asked for, but there are 2" in refusal(model, "--times", here, "--cores", 3)
    assert "expected cpu" in refusal(model, "--times", here, "--cores", "gpu=1")
    assert "99 stages are asked for" in refusal(model, "--times", here, "--stages", 99)
    assert "allow" in refusal(model, "--times", here, "--max-latency", "1us")
    assert "allow" in refusal(model, "--times", here, "--ram", 64)
    assert "the bound is" in refusal(model, "--times", here, "--min-throughput", 1e9)
    assert "no [power] active" in refusal(model, "--times", here, "--minimise", "energy")
    assert "knows neither limits" in refusal(model, "--times", here, "--method", "ga", "--ram", "1M")
    assert "not for 'jetson-tx2'" in refusal(model, "--board", "jetson-tx2", "--times", jetson, "--run")
    assert "is not a number of cores" in refusal(model, "--times", here, "--cores", "many")
    assert "is not a number of cores" in refusal(model, "--times", here, "--cores", "²")
    assert "is no board of the catalogue" in refusal(model, "--board", "jetsam", "--times", here)
    assert "needs a name here" in refusal(model, "--board", "jetson-tx2", "--times", jetson, "--cores", 2)


def test_without_a_compiler_onnxruntime_takes_over_and_it_says_so(model, here, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime", reason="it takes over")

    def none(*_):
        raise InputError("no C compiler for this machine is installed")

    monkeypatch.setattr("edgewright.run.profiling.toolchain", none)
    monkeypatch.setattr("edgewright.emit.native.toolchain", none)
    result = run(model, "--lanes", 1, "-o", tmp_path / "plan")
    assert result.exit_code == 0, result.output
    assert "note: onnxruntime executes all layers: no C compiler" in " ".join(result.output.split())
    assert built_executors(tmp_path / "plan") == {"onnxruntime"}
    result = run(model, "--times", here, "--lanes", 1, "--run", "--frames", 4)
    assert result.exit_code == 0, result.output
    assert "onnxruntime executes what our own code would, and times will differ: no C compiler" in " ".join(
        result.output.split()
    )


def built_executors(folder) -> set[str]:
    return {part.built.executor for part in load_reduced(folder).parts}
