"""`edgewright cluster plan` as a user meets it: what it prints, and one sentence for whatever cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from edgewright import samples
from edgewright.cli import main
from edgewright.memory.planner import plan as plan_one
from edgewright.network.read import read

KEYS = {
    *("strategy", "devices", "memory_bytes", "memory_single_bytes", "throughput", "speedup", "latency_s"),
    *("traffic_bytes", "busiest_link_bytes", "optimal", "gap"),
}
DEVICE = '[[device]]\nname = "pi"\ncount = 2\nrate = "2.4 GMAC/s"\nswitch = "switch"\nbandwidth = "100 Mbit/s"\n'
FOUR_BOARDS = """
[[device]]
name = "m4"
count = 4
board = "nucleo-f446re"
flash = "32 KiB"
ram = "40 KiB"

[[link]]
name = "spi"
ends = ["m4"]
bandwidth = "20 Mbit/s"
"""


def answer(*arguments: object) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, ["cluster", "plan", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    plans: list[dict[str, Any]] = json.loads(result.stdout)["plans"]
    return plans


def refusal(*arguments: object) -> str:
    """The sentence on the last line."""
    result = CliRunner().invoke(main, ["cluster", "plan", *map(str, arguments)])
    assert result.exit_code in (1, 2), result.output
    assert "Traceback" not in result.output and isinstance(result.exception, SystemExit)
    return result.output.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.write("lenet5", tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def int8_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.write("resnet8_int8", tmp_path_factory.mktemp("models"))


def test_a_plan_has_all_figures_and_more_devices_need_less_memory_each(model: Path):
    plans = answer(model, "--devices", "2..3", "--minimise", "memory")
    assert [each["devices"] for each in plans] == [2, 3]
    for each in plans:
        assert each.keys() >= KEYS and each["strategy"] == "hybrid"
        assert 0 <= each["gap"] < 1 and each["busiest_link_bytes"] <= each["traffic_bytes"]
    assert plans[1]["memory_bytes"] < plans[0]["memory_bytes"] < plans[0]["memory_single_bytes"]


def test_one_plan_is_exact_and_all_strategies_are_in_one_table(model: Path):
    (plan,) = answer(model, "--devices", "2", "--strategy", "data")
    assert plan["memory_is_exact"] and plan["devices"] == 2
    assert plan["memory_bytes"] == max(each["bytes"] for each in plan["memory"].values())
    result = CliRunner().invoke(main, ["cluster", "plan", str(model), "--devices", "2", "--strategy", "all"])
    assert result.exit_code == 0
    for name in ("hybrid", "data", "ffmt", "sequential", "horizontal", "vertical", "deepthings", "switch"):
        assert name in result.output


def test_limits_are_kept_by_the_exact_figures(model: Path):
    least = answer(model, "--devices", "2", "--minimise", "memory")[0]["memory_bytes"]
    for more in (1.0, 1.02, 1.1):
        (plan,) = answer(model, "--devices", "2", "--ram", round(least * more))
        assert plan["memory_is_exact"] and plan["memory_bytes"] <= least * more


def test_four_microcontrollers_hold_what_none_holds_alone(int8_model: Path, tmp_path: Path):
    file = tmp_path / "four.toml"
    file.write_text(FOUR_BOARDS)
    (plan,) = answer(int8_model, "--cluster", file)
    network, flash, ram = read(int8_model), 32 * 1024, 40 * 1024
    stored = sum(network.tensors[name].bytes for name in network.constants)
    frame = sum(network.tensors[name].bytes for name in network.inputs)
    assert stored > 2 * flash  # three boards at least
    assert plan_one(network, explain=False).peak_bytes + frame > ram
    assert plan["memory_is_exact"] and len(plan["memory"]) == 4
    for each in plan["memory"].values():
        assert each["weights_bytes"] <= flash and each["ram_bytes"] <= ram
        assert each["bytes"] == each["weights_bytes"] + each["ram_bytes"]
    assert sum(each["weights_bytes"] for each in plan["memory"].values()) >= 0.99 * stored
    assert plan["traffic_bytes"] == plan["busiest_link_bytes"] > 0  # one bus
    bus_s = plan["traffic_bytes"] * 8 / 20e6
    assert 1 / plan["throughput"] >= bus_s * (1 - 1e-6)


def test_flash_and_ram_of_boards_are_limits_of_their_own(int8_model: Path, tmp_path: Path):
    file = tmp_path / "four.toml"
    file.write_text(FOUR_BOARDS.replace('flash = "32 KiB"', 'flash = "18 KiB"'))
    assert "78,744 B of weights; the 4 devices of cluster 'cluster' hold 73,728 B in all (5,016 B short)" in refusal(
        int8_model, "--cluster", file
    )
    file.write_text(FOUR_BOARDS.replace('ram = "40 KiB"', 'ram = "14 KiB"'))
    assert "of RAM; it has 14,336 B (" in refusal(int8_model, "--cluster", file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--devices", "1"], "'1': expected 2 to 1000 devices; `edgewright plan` is for one"),
        (["--devices", "0..3"], "'0..3': expected 2 to 1000 devices"),
        (["--devices", "5..2"], "'5..2' begins with the larger size; expected 2..5"),
        (["--devices", "many"], "'many' is no number of devices; expected 6, or 2..10"),
        (["--devices", "2", "--cluster", "c.toml"], "--cluster says all about devices and links; leave --devices"),
        (["--rate", "0"], "Invalid value for '--rate': 0.0 is not in the range"),
        (["--rate", "inf"], "Invalid value for '--rate': inf is not a finite number"),
        (["--bandwidth", "nan"], "Invalid value for '--bandwidth': nan is not a finite number"),
        (["--devices", "2", "--ram", "1KiB"], "hold 2,048 B in all ("),
        (["--devices", "2", "--ram", "125KiB"], "it may use 128,000 B ("),
        (["--devices", "2", "--max-latency", "1ns"], "1 ns are allowed ("),
        (["--devices", "2", "--min-throughput", "1e12"], "1e+12 are asked for ("),
        (["--devices", "2", "--max-energy", "1e-9"], "1e-09 are allowed ("),
        (["--devices", "2..3", "--ram", "150KiB", "--strategy", "data"], "no strategy can do it: 2 devices, data: "),
        (["--devices", "2..3", "-o", "out"], "-o writes one plan; give one size and one --strategy"),
        (["--cluster", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_what_cannot_be_is_one_sentence(model: Path, arguments: list[str], message: str):
    assert message in refusal(model, *arguments)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (DEVICE.replace("count = 2\n", ""), "has one device; expected at least two"),
        (DEVICE.replace('"2.4 GMAC/s"', '"0 GMAC/s"'), 'device[0].rate: "0 GMAC/s" is not'),
        (DEVICE.replace('"100 Mbit/s"', '"0 Mbit/s"'), 'device[0].bandwidth: "0 Mbit/s" is not'),
        (DEVICE.replace('rate = "2.4 GMAC/s"', 'board = "nucleo-x"'), "nucleo-x"),
        (DEVICE + '[[link]]\nends = ["pi1", "moon"]\nbandwidth = "1 Mbit/s"\n', 'names "moon"'),
        (
            DEVICE + '[[link]]\nends = ["pi1"]\nbandwidth = "1 Mbit/s"\n',
            "joins nothing; expected two different devices",
        ),
        (DEVICE.replace('switch = "switch"\nbandwidth = "100 Mbit/s"\n', ""), "no link reaches device"),
        (DEVICE + 'gateway = "pi9"\n', "gateway"),
        ("not toml [", "TOML"),
    ],
)
def test_bad_cluster_files_are_one_sentence(model: Path, tmp_path: Path, file: str, message: str):
    path = tmp_path / "cluster.toml"
    path.write_text(file)
    found = refusal(model, "--cluster", path)
    assert message in found and "cluster.toml" in found


def test_energy_of_devices_without_a_power_is_unknown(model: Path, tmp_path: Path):
    path = tmp_path / "cluster.toml"
    path.write_text(DEVICE)
    assert "device 'pi1' has no power" in refusal(model, "--cluster", path, "--minimise", "energy")


def test_a_file_that_is_no_model(tmp_path: Path):
    path = tmp_path / "notes.onnx"
    path.write_text("garbage")
    assert "is a text file, not an ONNX model" in refusal(path, "--devices", "2")
    assert "there is no file" in refusal(tmp_path / "nowhere.onnx", "--devices", "2")


def test_a_model_without_layers_to_divide(tmp_path: Path):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    path = tmp_path / "empty.onnx"
    onnx.save(helper.make_model(helper.make_graph([], "empty", [x], [x])), path)
    for arguments in (["--devices", "2"], ["--devices", "2..3", "--strategy", "all"]):
        assert "'empty' has no layers to divide: its outputs are its inputs" in refusal(path, *arguments)


def test_a_frame_of_less_than_a_nanosecond(tmp_path: Path):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in "xy")
    path, page = tmp_path / "scalar.onnx", tmp_path / "page.html"
    onnx.save(helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "scalar", [x], [y])), path)
    (plan,) = answer(path, "--devices", "2", "--page", page)
    assert plan["throughput"] == pytest.approx(2.4e9) and page.stat().st_size > 1000
