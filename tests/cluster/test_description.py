"""Cluster files: what they mean, and one clear sentence for whatever is wrong with them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from edgewright.cluster.description import read_cluster
from edgewright.cluster.devices import PI4_MACS, Cluster, ClusterDevice, ClusterLink, equal_devices
from edgewright.errors import InputError
from edgewright.platform import load_board
from tests.helpers.damage import damaged_text

SHELF = """\
name = "shelf"
gateway = "camera"
switches = ["hub", "far"]

[[device]]
name = "pi"
count = 3
board = "raspberry-pi-4"
switch = "hub"
latency = "0.1 ms"

[[device]]
name = "camera"
rate = "1.2 GMAC/s"
ram = "1 GiB"
idle = "2 W"
active = "5 W"
switch = "hub"
bandwidth = "100 Mbit/s"
half_duplex = true

[[device]]
name = "m4"
count = 2
board = "nucleo-f446re"
rate = "90 MMAC/s"

[[link]]
ends = ["hub", "far"]
bandwidth = "10 Mbit/s"
latency = "20 ms"

[[link]]
name = "uart"
ends = ["m4", "far"]
bandwidth = "1 Mbit/s"
"""


def read(tmp_path: Path, text: str) -> Cluster:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return read_cluster(path)


def test_a_file_says_devices_links_and_the_gateway(tmp_path: Path) -> None:
    shelf = read(tmp_path, SHELF)
    assert [one.name for one in shelf.devices] == ["pi1", "pi2", "pi3", "camera", "m41", "m42"]
    assert (shelf.name, shelf.gateway) == ("shelf", "camera")
    pi, camera, m4 = (shelf.device_named[name] for name in ("pi2", "camera", "m42"))
    assert pi == ClusterDevice("pi2", pytest.approx(PI4_MACS), 4 << 30, None, board="raspberry-pi-4")
    assert camera == ClusterDevice("camera", 1.2e9, 1 << 30, None, 2.0, 5.0)
    assert m4 == ClusterDevice("m42", 90e6, 128 << 10, 512 << 10, board="nucleo-f446re")
    assert shelf.links == (
        ClusterLink("pi1-hub", ("pi1", "hub"), 125e6, 1e-4),
        ClusterLink("pi2-hub", ("pi2", "hub"), 125e6, 1e-4),
        ClusterLink("pi3-hub", ("pi3", "hub"), 125e6, 1e-4),
        ClusterLink("camera-hub", ("camera", "hub"), 12.5e6, 0.0, True),
        ClusterLink("link1", ("hub", "far"), 1.25e6, 0.02),
        ClusterLink("uart", ("m41", "m42", "far"), 125e3),
    )
    assert shelf.route("pi1", "m42") == (("pi1-hub", "pi1"), ("link1", "hub"), ("uart", ""))
    assert shelf.latency("pi1", "m42") == pytest.approx(0.0201) and shelf.bandwidth("pi1", "m42") == 125e3


def test_a_link_of_a_board_brings_its_rate(tmp_path: Path) -> None:
    text = '[[device]]\nname = "b"\ncount = 2\nboard = "{}"\nswitch = "switch"\n'
    link = load_board("nrf52840-dk").links[0]
    made = read(tmp_path, text.format("nrf52840-dk") + f'link = "{link.name}"\n')
    assert [one.bytes_per_second for one in made.links] == [link.bandwidth / 8] * 2
    with pytest.raises(InputError, match=r'device\[0\] \("b"\): board nucleo-f446re has no link; give a bandwidth'):
        read(tmp_path, text.format("nucleo-f446re"))


TWO = '[[device]]\nname = "a"\ncount = 2\nrate = "1 GMAC/s"\nswitch = "switch"\nbandwidth = "1 Gbit/s"\n'
THIRD = '[[device]]\nname = "c"\nrate = "1 GMAC/s"\n'
BAD = {
    "no device at all": ("device = []", "device has no device; expected at least two"),
    "one device": (TWO.replace("count = 2", "count = 1"), "device has one device; expected at least two"),
    "unknown board": (TWO + 'board = "raspberry-pi-44"', '"raspberry-pi-44" is no board .*mean "raspberry-pi-4"'),
    "unknown gateway": ('gateway = "b1"\n' + TWO, 'gateway is "b1"; expected one of the devices: a1, a2'),
    "unknown switch": (TWO.replace('"switch"', '"swich"'), r'device\[0\].switch is "swich"; expected one of the sw'),
    "unknown device in a link": (
        TWO + '[[link]]\nends = ["a1", "a3"]\nbandwidth = "1 Gbit/s"',
        r'link\[0\].ends names "a3"; expected one of the devices and switches: a1, a2, switch',
    ),
    "a link that joins nothing": (
        TWO + '[[link]]\nends = ["a1", "a1"]\nbandwidth = "1 Gbit/s"',
        r"link\[0\].ends joins nothing; expected two different devices or switches",
    ),
    "a link without ends": (TWO + '[[link]]\nends = []\nbandwidth = "1 Gbit/s"', r"link\[0\].ends is a list; expected"),
    "a device no link reaches": (TWO + THIRD, 'no link reaches device "c"; give it a switch'),
    "an island": (
        'switches = ["switch", "other"]\n' + TWO + THIRD + 'switch = "other"\nbandwidth = "1 Gbit/s"',
        'no links lead from the gateway "a1" to device "c"; join their switches',
    ),
    "a link of speed zero": (TWO.replace("1 Gbit/s", "0 bit/s"), r"device\[0\].bandwidth: .*must be more than zero"),
    "a device of speed zero": (TWO.replace("1 GMAC/s", "0 GMAC/s"), r"device\[0\].rate: .*must be more than zero"),
    "no speed": (TWO.replace('rate = "1 GMAC/s"', ""), r'device\[0\] \("a"\) has no speed; expected a board, or a'),
    "a rate in another unit": (TWO.replace("GMAC/s", "GHz"), r"device\[0\].rate: .*expected a speed in multiply-acc"),
    "no bandwidth": (TWO.replace("bandwidth", "#"), r'device\[0\] \("a"\): no board is given; give a bandwidth'),
    "no switch": (TWO.replace("switch =", "#"), r"device\[0\].bandwidth is of the cable to a switch"),
    "a link without a board": (TWO + 'link = "usb"', r"device\[0\].link is for a board's own link"),
    "a link the board lacks": (
        TWO + 'board = "raspberry-pi-4"\nlink = "uart"',
        r'device\[0\].link is "uart", which is no link of board raspberry-pi-4; expected one of ethernet',
    ),
    "a name taken twice": (TWO + THIRD.replace('"c"', '"a2"'), 'gives the name "a2", which is taken'),
    "a device named like a switch": (TWO + THIRD.replace('"c"', '"switch"'), 'gives the name "switch", which is taken'),
    "two devices at one address": (
        TWO + THIRD + 'switch = "switch"\nbandwidth = "1 Gbit/s"\naddress = "a2:7447"',
        r'device\[1\].address leads "c" to a2:7447, which is the address of "a2"; give each device its own',
    ),
    "an address that is none": (
        TWO + THIRD + 'switch = "switch"\nbandwidth = "1 Gbit/s"\naddress = "a:b"',
        r'device\[1\].address is "a:b"; expected a host and perhaps a port',
    ),
    "links of one name": (
        TWO + '[[link]]\nname = "a1-switch"\nends = ["a1", "a2"]\nbandwidth = "1 Gbit/s"',
        'two links have the name "a1-switch"',
    ),
    "too many": (TWO.replace("count = 2", "count = 10000") + THIRD, "more than 10,000 devices in all"),
    "a misspelt key": (TWO.replace("bandwidth", "bandwith"), r'bandwith is not a key here; did you mean "bandwidth"'),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_with_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'c.toml'}: ") and "\n" not in str(error.value)


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    outcomes = set()
    for seed in range(400):
        random = Random(seed)
        path = tmp_path / "c.toml"
        path.write_bytes(damaged_text(random, SHELF.encode(), TWO.encode()))
        try:
            made = read_cluster(path)
            assert all(made.route(made.gateway, one.name) or one.name == made.gateway for one in made.devices)
            outcomes.add("read")
        except InputError as error:
            outcomes.add("refused" if str(path) in str(error) else "refused without its name")
    assert outcomes == {"read", "refused"}


def test_routes_take_the_fewest_links_and_pass_no_device_with_one_link() -> None:
    names = ("a", "b", "c", "d")
    links = (
        ClusterLink("ab", ("a", "b"), 1.0, 1.0),
        ClusterLink("bc", ("b", "c"), 2.0, 2.0),
        ClusterLink("cd", ("c", "d"), 3.0, 4.0),
        ClusterLink("da", ("d", "a"), 4.0, 8.0),
    )
    ring = Cluster("ring", tuple(ClusterDevice(name, 1.0) for name in names), links, "a")
    assert ring.route("a", "a") == () and ring.route("a", "d") == (("da", "a"),)
    assert ring.route("a", "c") in ((("ab", "a"), ("bc", "b")), (("da", "a"), ("cd", "d")))
    assert (ring.latency("b", "d"), ring.bandwidth("b", "d")) in ((6.0, 2.0), (9.0, 1.0))
    star = equal_devices(3)
    assert star.route("device1", "device3") == (("link1", "device1"), ("link3", "switch"))
    with pytest.raises(InputError, match="no links lead from 'device1' to 'nobody'"):
        star.route("device1", "nobody")
