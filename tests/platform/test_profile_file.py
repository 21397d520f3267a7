"""Profiles as data: their JSON, what is asked of them, and files that contradict themselves."""

import json

import pytest

from edgewright.errors import InputError
from edgewright.platform.profile import (
    Fingerprint,
    FrameTime,
    LayerProfile,
    LayerTime,
    Profile,
    ProfiledProcessor,
    TimeOrigin,
    TransferTime,
    load_profile,
    save_profile,
)

PROFILE = Profile(
    board="this",
    machine=Fingerprint(architecture="aarch64", system="Linux", model="Cortex-A72", cores=4),
    model="two",
    model_digest="00",
    processors=(
        ProfiledProcessor(name="cpu", kind="cortex-a72", cores=(0, 1, 2, 3), slowdown=(1.0, 1.1)),
        ProfiledProcessor(name="gpu", kind="gpu", cores=()),
    ),
    layers=(
        LayerProfile(
            name="conv",
            operator="Conv2d",
            macs=10,
            bytes=4,
            times=(
                LayerTime(processor="cpu", seconds=2.0),
                LayerTime(processor="cpu", seconds=1.5, executor="onnxruntime"),
                LayerTime(processor="cpu", seconds=1.25, lanes=2),
                LayerTime(processor="gpu", seconds=0.5, executor="torch", origin=TimeOrigin.ROOFLINE),
            ),
        ),
        LayerProfile(name="relu", operator="Unary", macs=0, bytes=4, times=()),
    ),
    frames=(FrameTime(processor="cpu", seconds=2.0),),
    transfers=(TransferTime(source="cpu", target="gpu", latency=0.5, bytes_per_second=4.0),),
)


def test_a_profile_is_read_back_as_it_was_written(tmp_path):
    save_profile(PROFILE, tmp_path / "times.json")
    assert load_profile(tmp_path / "times.json") == PROFILE


def test_times_are_asked_by_processor_lanes_and_executor():
    assert PROFILE.time("conv", "cpu").seconds == 1.5
    assert PROFILE.time("conv", "cpu", executor="native").seconds == 2.0
    assert PROFILE.time("conv", "cpu", lanes=2).seconds == 1.25
    assert PROFILE.time("conv", "gpu", lanes=2) is None
    assert PROFILE.missing(["conv", "relu", "pool"]) == ("relu", "pool")
    assert PROFILE.transfer("cpu", "gpu").seconds(8) == 2.5
    assert PROFILE.transfer("gpu", "cpu") is None


def change(data, path, value):
    *way, last = path
    for step in way:
        data = data[step]
    data[last] = value


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), 2, "format"),
        (("layers", 0, "times", 0, "seconds"), -1.0, r"layers\[0\].times\[0\].seconds"),
        (("layers", 0, "times", 0, "seconds"), "1", r"layers\[0\].times\[0\].seconds"),
        (("layers", 0, "times", 0, "processor"), "npu", '"npu", which is not described'),
        (("layers", 0, "times", 1, "executor"), "native", "two times for native, cpu, 1 lanes"),
        (("layers", 1, "name"), "conv", 'layer "conv" is described twice'),
        (("processors", 1, "name"), "cpu", 'processor "cpu" is described twice'),
        (("processors", 0, "cores"), [0, 0, 1], 'processor "cpu" has core 0 twice'),
        (("extra",), 1, "extra"),
    ],
)
def test_files_that_contradict_themselves_are_refused(tmp_path, path, value, message):
    data = json.loads(PROFILE.to_json())
    change(data, path, value)
    file = tmp_path / "times.json"
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match=message):
        load_profile(file)


def test_what_is_no_json_is_refused_in_a_sentence(tmp_path):
    file = tmp_path / "times.json"
    file.write_text("seconds: 3")
    with pytest.raises(InputError, match="is no profile of layer times"):
        load_profile(file)
    with pytest.raises(InputError, match=r"there is no file .*none\.json"):
        load_profile(tmp_path / "none.json")
