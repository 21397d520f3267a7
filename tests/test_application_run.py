"""Applications on this machine in one arena, and in fewer bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.application.draft import load_application
from edgewright.application.host_run import run_application
from edgewright.application.search import JointSearch
from edgewright.cli import main
from edgewright.errors import InputError
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
