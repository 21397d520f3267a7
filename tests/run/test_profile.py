"""Profiles: layer times measured in an instrumented build, rooflines by hand, kinds of cores as Linux tells them."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from edgewright import read_model, samples
from edgewright.cli import main
from edgewright.fusion.whole import find_whole_layers
from edgewright.kernels.cost.estimate import estimate
from edgewright.network import Builder
from edgewright.network.operators import Clamp, Conv2d
from edgewright.platform import load_board, parse_board
from edgewright.platform.profile import TimeOrigin, load_profile
from edgewright.program import structure_digest
from edgewright.run import machine
from edgewright.run.build import plan_for_host
from edgewright.run.estimated_times import estimate_profile
from edgewright.run.machine import CoreKind, core_kinds, usable_cores
from edgewright.run.profiling import hand_over, measure_profile

BOARD = """
name = "two-kinds"
[[processor]]
name = "big"
kind = "cortex-a76"
clock = "2 GHz"
count = 2
[[processor]]
name = "gpu"
kind = "gpu"
clock = "1 GHz"
lanes = 100
[[memory]]
name = "dram"
size = "1 GiB"
bandwidth = "1 GB/s"
"""


def network():
    b = Builder("two")
    x = b.input("x", (1, 10, 10, 8))
    weight = b.constant("w", np.ones((8, 3, 3, 8), np.float32))
    conv = b.layer(Conv2d(pads=(1, 1, 1, 1)), [x, weight], "conv")
    return b.build([b.layer(Clamp(0.0), [conv], "relu")])


def test_measured_profiles_have_a_time_for_every_layer():
    net = read_model(samples.build("lenet5"))
    found = measure_profile(net, {1: plan_for_host(net)}, 2)
    assert [layer.name for layer in found.layers] == [layer.name for layer in net.layers]
    assert found.missing(layer.name for layer in net.layers) == ()
    assert found.model_digest == structure_digest(net)
    assert sum(layer.macs for layer in found.layers) == net.total_macs
    assert {time.origin for layer in found.layers for time in layer.times} == {TimeOrigin.MEASURED}
    heavy = max(found.layers, key=lambda layer: layer.macs)
    for processor in found.processors:
        assert found.time(heavy.name, processor.name).seconds > 0
        assert len(processor.slowdown) == len(processor.cores)
        assert found.transfer(processor.name, processor.name).latency > 0
    assert found.frames[0].seconds > 0
    assert found.machine.cores == len(usable_cores())
    assert type(found).model_validate_json(found.to_json()) == found


@pytest.mark.slow
def test_equal_kinds_of_cores_have_names_of_their_own():
    net = network()
    first = usable_cores()[0]
    kinds = [CoreKind("cortex-a72", (first,)), CoreKind("cortex-a53", (first,)), CoreKind("cortex-a53", (first,))]
    found = measure_profile(net, {1: plan_for_host(net)}, 1, kinds)
    assert [each.name for each in found.processors] == ["cortex-a72", "cortex-a53", "cortex-a53-2"]
    assert all(len(layer.times) == 3 for layer in found.layers)


def test_handing_over_takes_some_time():
    latency, rate = hand_over(*(usable_cores() * 2)[:2])
    assert 0 < latency < 1 and rate > 1e6


def test_rooflines_are_arithmetic_or_traffic():
    board, net = parse_board(BOARD, "board"), network()
    found = estimate_profile(net, board)
    macs = 100 * 9 * 64
    size = 100 * 8 * 4
    weights = 9 * 64 * 4
    # Two units of four words at 2 GHz; 1 GB/s.
    assert found.time("conv", "big").seconds == max(macs / 16e9, (2 * size + weights) / 1e9)
    assert found.time("relu", "big").seconds == 2 * size / 1e9
    assert found.time("relu", "big", lanes=2).seconds == 2 * size / 1e9
    assert found.time("conv", "gpu").executor == "torch"
    assert found.time("conv", "big", lanes=3) is None
    assert {time.origin for layer in found.layers for time in layer.times} == {TimeOrigin.ROOFLINE}
    assert found.machine is None
    assert [processor.cores for processor in found.processors] == [(0, 1), ()]
    wide = parse_board(BOARD.replace('bandwidth = "1 GB/s"', ""), "board")
    assert estimate_profile(net, wide).time("conv", "big", lanes=2).seconds == macs / 32e9
    assert "no memory bandwidth" in estimate_profile(net, wide).notes[1]


def test_every_linux_board_has_a_roofline():
    for name in ("raspberry-pi-4", "raspberry-pi-5", "jetson-tx2", "jetson-nano", "host", "nucleo-f446re"):
        found = estimate_profile(network(), load_board(name))
        assert all(time.seconds > 0 for layer in found.layers for time in layer.times)


CPUINFO = """processor\t: 0
Features\t: fp asimd crc32
CPU implementer\t: 0x41
CPU part\t: 0xd03

processor\t: 1
Features\t: fp asimd crc32 asimddp
CPU implementer\t: 0x41
CPU part\t: 0xd08

processor\t: 2
Features\t: fp asimd crc32 asimddp
CPU implementer\t: 0x43
CPU part\t: 0x001
"""


@pytest.fixture
def three_cores(tmp_path, monkeypatch):
    """A machine with three cores of three kinds, the second of them the fastest."""
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    for core, clock in ((0, 1_400_000), (1, 1_800_000)):
        folder = tmp_path / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "cpuinfo_max_freq").write_text(f"{clock}\n")
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(machine, "_CORES", tmp_path)
    monkeypatch.setattr(machine, "usable_cores", lambda: (0, 1, 2))
    machine._cpuinfo.cache_clear()
    machine.processor_features.cache_clear()
    yield
    machine._cpuinfo.cache_clear()
    machine.processor_features.cache_clear()


@pytest.mark.usefixtures("three_cores")
def test_kinds_of_cores_are_read_from_the_system():
    assert core_kinds() == (
        CoreKind("cortex-a72", (1,), 1_800_000_000),
        CoreKind("cortex-a53", (0,), 1_400_000_000),
        CoreKind("arm-43-001", (2,), None),
    )
    assert machine.processor_features() == ("asimd", "crc32", "fp")
    assert machine.processor_model() == "cortex-a72 + cortex-a53 + arm-43-001"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return samples.write("lenet5", tmp_path_factory.mktemp("models"))


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_command_writes_what_it_measures(model, tmp_path):
    result = run("profile", model, "--repeats", 1, "-o", tmp_path / "times.json")
    assert result.exit_code == 0, result.output
    assert "whole frame" in result.output and "moving a tensor" in result.output and "measured" in result.output
    assert load_profile(tmp_path / "times.json").board == "this"


@pytest.mark.slow
def test_onnxruntime_is_measured_beside_ours(model):
    arguments = ("--repeats", 1, "--most-lanes", 1, "--executor", "native", "--executor", "onnxruntime")
    data = json.loads(run("profile", model, *arguments, "--json").output)
    assert {frame["executor"] for frame in data["frames"]} == {"native", "onnxruntime"}
    conv = next(layer for layer in data["layers"] if layer["operator"] == "Conv2d")
    assert {time["executor"] for time in conv["times"]} == {"native", "onnxruntime"}
    result = run("profile", model, "--board", "host", "--executor", "onnxruntime")
    assert result.exit_code == 1 and "measured on this machine" in result.output


def test_the_command_estimates_boards(model):
    data = json.loads(run("profile", model, "--board", "jetson-tx2", "--json").output)
    assert data["machine"] is None
    assert {time["origin"] for layer in data["layers"] for time in layer["times"]} == {"estimated by roofline"}
    result = run("profile", model, "--board", "raspbery-pi-4")
    assert result.exit_code == 1 and "raspberry-pi-4" in result.output


def test_many_frames_by_the_command(model):
    data = json.loads(run("run", model, "--frames", 7, "--compare", "--json").output)
    assert data["frames"] == 7 and data["lanes"] == 1
    for key in (
        "frames_per_s",
        "latency_s",
        "arena_bytes",
        "weights_bytes",
        "onnxruntime_frames_per_s",
        "onnxruntime_latency_s",
    ):
        assert data[key] > 0
    result = run("run", model, "--frames", 2)
    assert result.exit_code == 0 and "frames/s" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--compare",), "give their number with --frames"),
        (("--frames", 2, "--board", "nucleo-f446re"), "leave --board and --target out"),
        (("--frames", 2, "--target", "cortex-m4"), "leave --board and --target out"),
        (("--frames", 2, "-o", "out.npz"), "leave it out, or --frames"),
        (("--frames", 2, "--pull-input"), "leave it out, or --frames"),
        (("--frames", 2, "--rounding", "tflm"), "leave them out, or --frames"),
        (("--frames", 2, "--float-scales"), "leave them out, or --frames"),
    ],
)
def test_what_many_frames_cannot_do_is_said(model, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("run", model, *arguments)
    assert result.exit_code == 1 and message in result.output


def test_a_folder_is_no_model(tmp_path):
    result = run("run", tmp_path, "--frames", 2)
    assert result.exit_code == 1 and "there is no file" in result.output
    for option in (("--compare",), ("--lanes", 2), ("--ram", "4K")):
        result = run("run", tmp_path, *option, "--frames", 2)
        assert result.exit_code == 1 and "only --frames and --json apply" in result.output


def test_microcontrollers_are_timed_by_instructions():
    network = read_model(samples.build("resnet8_int8"))
    board = load_board("nucleo-f446re")
    profile = estimate_profile(network, board)
    times = [time for layer in profile.layers for time in layer.times]
    assert {time.origin for time in times} == {TimeOrigin.INSTRUCTIONS}
    instructions = estimate(find_whole_layers(network, board, target="cortex-m4").plan, "cortex-m4").instructions
    assert instructions / 180e6 < sum(time.seconds for time in times) < 2 * instructions / 180e6
    two = estimate_profile(network, load_board("raspberry-pi-pico")).layers[0].times
    assert two[0].seconds == 2 * two[1].seconds


@pytest.mark.parametrize("board", ["nucleo-f446re", "raspberry-pi-4"])
def test_a_model_without_layers_takes_no_time(board):
    b = Builder("empty")
    profile = estimate_profile(b.build([b.input("x", (1, 4))]), load_board(board))
    assert profile.layers == () and len(profile.notes) == 1
