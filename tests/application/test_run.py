"""Applications on this machine in one arena, and in fewer bits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.application import host_run
from edgewright.application.draft import Application, load_application
from edgewright.application.host_run import run_application
from edgewright.application.library import AppLibrary, emit_application
from edgewright.application.search import JointSearch
from edgewright.cli import main
from edgewright.errors import EdgewrightError, InputError
from edgewright.memory.joint.layout import JointLayout
from edgewright.samples.builder import ModelBuilder


def app(*args: object) -> str:
    done = CliRunner().invoke(main, ["app", *map(str, args)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
def test_every_network_runs_beside_those_that_it_may_run_with(tmp_path: Path) -> None:
    app = load_application(samples.write_application("tiny_application", tmp_path))
    found = {one.name: one for one in run_application(app, JointSearch(app).least.layout, 6)}
    assert set(found) == set(app.networks)
    assert found["wake"].beside == ("monitor",) and found["monitor"].beside == ("wake",)
    assert found["detect"].beside == found["gesture"].beside == ()
    assert all(one.statistics.frames_per_s > 0 and one.statistics.frames == 6 for one in found.values())


@pytest.mark.slow
def test_the_verb_runs_a_pipeline_and_a_network_in_one_arena(tmp_path: Path) -> None:
    path = samples.write_application("paper_application", tmp_path)
    path.write_text(path.read_text().replace('file = "cnn1.onnx"', 'file = "cnn1.onnx"\nthroughput = 1'))
    found = json.loads(app(path, "--run", "--frames", "6", "--json"))
    assert found["peak_bytes"] == 9792
    assert found["measured"]["cnn1"]["wanted"] == 1 and found["measured"]["cnn2"]["wanted"] is None
    path.write_text(path.read_text().replace("throughput = 1", "throughput = 1e8"))
    done = CliRunner().invoke(main, ["app", str(path), "--run", "--frames", "3"])
    assert done.exit_code == 1 and "'cnn1' is to run 1e+08 times a second, and" in done.output


def chained(folder: Path, relations: str, names: str = "abc", own: str = "") -> tuple[Application, JointLayout]:
    """Networks whose inputs and outputs are alike, with relations between them."""
    net = ModelBuilder("net")
    y = net.relu(net.conv(net.input(1, 3, 10, 10), 3, 3, 1, 1, name="first"))
    model = net.model(net.relu(net.conv(y, 3, 3, 1, 1, name="second")))
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    entries = (f'[[network]]\nname = "{name}"\nfile = "net.onnx"\n{own}' for name in names)
    (folder / "app.toml").write_text("".join(entries) + relations)
    application = load_application(folder / "app.toml")
    return application, JointSearch(application).least.layout


def relation(kind: str, *networks: str) -> str:
    return f'[[relation]]\nkind = "{kind}"\nnetworks = {json.dumps(networks)}\n'


def test_networks_read_what_others_hand_over(tmp_path: Path) -> None:
    """A cascade and a common frame: one thread calls all of them in an order that the library allows."""
    found = run_application(*chained(tmp_path, relation("after", "a", "b") + relation("same input", "c", "a")), 6)
    assert [(one.name, one.statistics.frames, one.beside) for one in found] == [
        ("a", 6, ()),
        ("b", 6, ()),
        ("c", 6, ()),
    ]


def test_two_networks_read_one_frame_at_the_same_time(tmp_path: Path) -> None:
    """Each keeps step with the other: the next frame overwrites the last one."""
    relations = relation("same input", "a", "b") + relation("parallel", "a", "b") + relation("after", "b", "c")
    found = {one.name: one for one in run_application(*chained(tmp_path, relations), 60)}
    assert found["a"].beside == ("b",) and found["b"].beside == ("a",) and found["c"].beside == ()
    assert {one.statistics.frames for one in found.values()} == {60}


def test_rows_of_an_image_are_handed_out(tmp_path: Path) -> None:
    application, layout = chained(tmp_path, relation("parallel", "a", "b"), "ab", "pull_input = true\n")
    assert all(plan.pulled for plan in layout.plans.values())
    assert {one.name: one.beside for one in run_application(application, layout, 6)} == {"a": ("b",), "b": ("a",)}


def change(monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str) -> None:
    """Lets `run_application` compile a library in which C was changed."""

    def changed(application: Application, layout: JointLayout) -> AppLibrary:
        library = emit_application(application, layout)
        text = str(library.files[file]).replace(old, new)
        assert text != library.files[file]
        return replace(library, files={**library.files, file: text})

    monkeypatch.setattr(host_run, "emit_application", changed)


def test_results_are_copied_before_the_producer_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next image may lie where the result of a partition is that reads its frame in its last stage."""
    application = load_application(samples.write_application("paper_application", tmp_path))
    layout = JointSearch(application).least.layout
    (queue,) = (fifo for fifo in layout.deployment.queues if "cnn2.2" in fifo.reading)
    assert layout.deployment.release_stage(queue, "cnn2.2") + 1 == len(layout.plans["cnn2.2"].program.stages)
    wait = "for (volatile int32_t n = 0; n < 200000; n++) {}\n"
    change(monkeypatch, "cnn2_2.c", "        memcpy(out_", f"        {wait}        memcpy(out_")
    assert {one.statistics.frames for one in run_application(application, layout, 30)} == {30}


def test_a_wrong_result_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = chained(tmp_path, "", "ab")
    change(monkeypatch, "b.c", "memcpy(out_", "memset(out_")
    with pytest.raises(EdgewrightError, match="network 'b' computes something wrong here"):
        run_application(*networks, 3)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """One network in float32, with a hundred samples."""
    net = ModelBuilder("small")
    x = net.relu(net.conv(net.input(1, 3, 12, 12), 8, 3, 1, 1, name="first"))
    x = net.relu(net.conv(x, 16, 3, 2, 1, name="second"))
    (tmp_path / "small.onnx").write_bytes(net.model(net.classifier(x, 5, name="classes")).SerializeToString())
    np.save(tmp_path / "samples.npy", np.random.default_rng(1).standard_normal((100, 3, 12, 12)).astype("f4"))
    (tmp_path / "app.toml").write_text('[[network]]\nname = "small"\nfile = "small.onnx"\n')
    return tmp_path / "app.toml"


def in_precision(path: Path, precision: str, more: str = 'calibration = "samples.npy"') -> Path:
    other = path.with_name(f"{precision}.toml")
    other.write_text(f'{path.read_text()}quantise = "{precision}"\n{more}\n')
    return other


def test_networks_shrink_with_their_numbers(small: Path) -> None:
    found = {name: json.loads(app(in_precision(small, name), "--json")) for name in ("none", "fp16", "int8")}
    assert found["fp16"]["peak_bytes"] == found["none"]["peak_bytes"]
    assert found["fp16"]["flash_bytes"] * 2 == found["none"]["flash_bytes"]
    assert "stores them as float32" in found["fp16"]["notes"][0]
    assert found["int8"]["peak_bytes"] < 0.75 * found["none"]["peak_bytes"]
    assert found["int8"]["flash_bytes"] < 0.45 * found["none"]["flash_bytes"]


def test_a_network_is_run_and_its_limit_is_looked_at(small: Path) -> None:
    small.write_text(small.read_text() + "throughput = 1e8\n")
    done = CliRunner().invoke(main, ["app", str(small), "--run", "--frames", "3", "--json"])
    assert done.exit_code == 1 and "'small' is to run 1e+08 times a second, and" in done.stderr
    assert json.loads(done.stdout)["measured"]["small"]["frames_per_s"] > 0


@pytest.mark.slow
def test_precisions_side_by_side(small: Path) -> None:
    rows = json.loads(app(in_precision(small, "none"), "--quantise", "--frames", "3", "--json"))["precisions"]
    assert [row["precision"] for row in rows] == ["none", "fp16", "int8"]
    none, fp16, int8 = (row["differences"]["small"] for row in rows)
    assert none["largest"] == 0 and none["same_class"] == 1
    assert 0 < fp16["largest"] < 0.01 < int8["largest"] * 10 and int8["mean"] < 0.1
    assert all(row["frames_per_s"]["small"] > 0 for row in rows)


def test_there_is_no_int8_without_calibration_data(small: Path) -> None:
    with pytest.raises(InputError, match=r"network\[0\].calibration is missing, and int8 takes its ranges from sam"):
        load_application(in_precision(small, "int8", more=""))
    done = CliRunner().invoke(main, ["app", str(small), "--quantise"])
    assert done.exit_code == 1 and "calibration is missing" in done.output
    np.save(small.parent / "few.npy", np.zeros((3, 3, 8, 8), "f4"))
    with pytest.raises(InputError, match="calibration does not suit 'small': input 'input' must have the shape"):
        load_application(in_precision(small, "int8", more='calibration = "few.npy"'))
    with pytest.raises(InputError, match="cannot read the input"):
        load_application(in_precision(small, "int8", more='calibration = "none.npy"'))
    again = small.with_name("again.toml")
    quantised = samples.write("mobilenet_v1_int8", small.parent)
    again.write_text(f'[[network]]\nname = "a"\nfile = "{quantised.name}"\nquantised_input = true\nquantise = "int8"\n')
    with pytest.raises(InputError):
        load_application(again)
