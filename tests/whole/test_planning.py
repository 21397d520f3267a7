"""`edgewright.plan` gives what the command line gives, and keeps limits."""

import json
from dataclasses import replace

import onnx
import pytest

import edgewright
from edgewright.errors import Infeasible, InputError
from edgewright.network.kernels.compute import by_name
from edgewright.network.onnx_writer import write_onnx
from tests.cli.test_cli import run


@pytest.fixture(scope="module")
def resnet():
    return edgewright.read_model(edgewright.samples.build("resnet8_int8"), quantised_input=True)


@pytest.mark.parametrize(
    ("wishes", "options"),
    [
        ({"board": "nucleo-f446re"}, ("--board", "nucleo-f446re")),
        ({"board": "nucleo-f446re", "ram": "18K"}, ("--board", "nucleo-f446re", "--ram", "18K")),
        ({"minimise": "ram", "max_overhead": 0.05}, ("--minimise", "ram", "--max-overhead", "5%")),
    ],
)
def test_python_and_the_command_line_make_the_same_plan(wishes, options, resnet, tmp_path):
    model = tmp_path / "model.onnx"
    write_onnx(resnet, model)
    found = json.loads(run("plan", model, *options, "--json").stdout)
    made = edgewright.plan(edgewright.read_model(model), **wishes)
    assert (made.peak_bytes, made.flash_bytes) == (found["peak_bytes"], found["flash_bytes"])


def test_a_proof_for_whole_layers_says_what_layers_in_parts_would_take(resnet, tmp_path):
    """In Python, the table, the JSON, the plan's file, the header and the page."""
    model, folder = tmp_path / "model.onnx", tmp_path / "out"
    write_onnx(resnet, model)
    whole = edgewright.plan(edgewright.read_model(model), "nucleo-f446re")
    least = edgewright.plan(edgewright.read_model(model), "nucleo-f446re", minimise="ram")
    assert whole.cheaper is not None and whole.cheaper.peak_bytes == least.peak_bytes < whole.peak_bytes
    words = " ".join(whole.less_ram)
    assert words.startswith(f"{least.peak_bytes:,} B with --minimise ram, +") and words.endswith("% instructions")
    options = (model, "--board", "nucleo-f446re", "--no-verify", "-o", folder)
    told = json.loads(run("compile", *options, "--json").stdout)
    assert told["cheaper"]["peak_bytes"] == least.peak_bytes
    assert told["ram_quality"] == whole.quality == "proven least for whole layers"
    assert f"Less RAM: {words}." in (folder / "src" / "model.h").read_text()
    assert f"less: {words}" in (folder / "report.html").read_text()
    assert edgewright.load_plan(folder / "plan.json").cheaper == whole.cheaper
    shown = " ".join(run("plan", model, "--board", "nucleo-f446re").stdout.split())
    assert f"less {words}" in shown


def test_what_does_not_fit_is_refused(resnet):
    with pytest.raises(Infeasible, match="does not fit"):
        edgewright.plan(resnet, ram="1K")
    with pytest.raises(InputError, match='minimise="ram"'):
        edgewright.plan(resnet, minimise="flash")
    with pytest.raises(InputError, match="techniques"):
        edgewright.plan(resnet, minimise="ram", techniques=edgewright.Techniques())


def test_a_flash_that_is_too_small_is_a_warning(resnet):
    board = edgewright.load_board("nucleo-f446re")
    small = [m.model_copy(update={"size": 1024}) if m.read_only else m for m in board.memories]
    with pytest.warns(UserWarning, match="of flash"):
        edgewright.plan(resnet, board.model_copy(update={"memories": tuple(small)}))


def test_models_come_as_paths_bytes_and_protos(tmp_path):
    proto = edgewright.samples.build("stahl_running_example")
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    assert {edgewright.plan(model).peak_bytes for model in (proto, path, str(path), path.read_bytes())} == {16640}


def test_a_bare_array_is_the_only_input():
    network = edgewright.read_model(edgewright.samples.build("stahl_running_example"))
    plan, inputs = edgewright.plan(network), edgewright.random_inputs(network)
    (bare,) = inputs.values()
    named, given = (edgewright.interpret(plan, values) for values in (inputs, bare))
    assert all((named[name] == given[name]).all() for name in network.outputs)
    several = replace(network, inputs=("a", "b"))
    with pytest.raises(InputError, match=r"takes 2 inputs \(a, b\); give a mapping"):
        by_name(several, bare)


def test_long_searches_say_what_they_do(resnet):
    told = []
    edgewright.plan(resnet, "nucleo-f446re", minimise="ram", progress=lambda what, share: told.append((what, share)))
    shares = [share for what, share in told if what == "laying out plans in parts"]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] < 1
    before = len(told)
    edgewright.plan(resnet)
    assert len(told) == before  # the listener is forgotten
