"""What users get wrong about a cluster that runs: one sentence each, which says what, where, and what to try."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.cli import main
from edgewright.cluster.node.connections import Listener
from edgewright.cluster.node.credentials import load_credentials
from edgewright.cluster.node.messages import PROTOCOL, Hello, Welcome, send
from edgewright.cluster.node.node_plan import NodeLibrary, plan_bytes
from edgewright.cluster.node.server import ClusterNode
from edgewright.cluster.node.store import FileStore
from edgewright.cluster.running import remote_device
from edgewright.cluster.running.coordinator import Coordinator
from edgewright.cluster.running.keys import make_keys, sign
from edgewright.errors import EdgewrightError
from tests.cluster.trials import Trial

GATEWAY, SECOND, THIRD = "device1", "device2", "device3"


def refusal(trial: Trial, addresses: dict[str, str] | None = None, **library: object) -> str:
    """Why no run begins: with other addresses, or with libraries that are not what they should be."""
    plan = trial.plans[0]
    nodes = dict(plan.nodes)
    if library:
        about = msgspec.structs.replace(nodes[SECOND].library, **library)
        assert isinstance(about, NodeLibrary)
        nodes[SECOND] = msgspec.structs.replace(nodes[SECOND], library=about)
    contents = {name: plan_bytes(node) for name, node in nodes.items()}
    signed = {name: (content, sign(trial.keys, content)) for name, content in contents.items()}
    coordinator = trial.unprepared()
    try:
        with pytest.raises(EdgewrightError) as caught:  # noqa: PT012
            coordinator.connect({**trial.nodes.addresses, **(addresses or {})})
            coordinator.prepare([replace(plan, nodes=nodes, signed=signed)])
        return str(caught.value)
    finally:
        coordinator.close()


def test_an_address_that_leads_to_another_device(trial: Trial):
    wrong = trial.nodes.addresses[THIRD]
    expected = f"device '{SECOND}' at {wrong} says that it is '{THIRD}'; check the addresses in the cluster file"
    assert refusal(trial, {SECOND: wrong}) == expected
    assert "says that it is 'device1'" in refusal(trial, {SECOND: f"127.0.0.1:{trial.port}"})


def test_devices_that_are_not_there_are_all_named(trial: Trial):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = refusal(trial, {SECOND: f"127.0.0.1:{port}", THIRD: "nowhere.invalid"})
    assert f"device '{SECOND}' at 127.0.0.1:{port} cannot be reached: Connection refused" in said
    assert f"device '{THIRD}' at nowhere.invalid cannot be reached: " in said


def test_a_library_for_another_core(trial: Trial):
    assert "was built for sparc, and the device is " in refusal(trial, architecture="sparc")
    assert "uses quantum, which its processor lacks" in refusal(trial, features=("quantum",))


@dataclass
class OtherVersion:
    """A device of another protocol. It knows only the first message of a connection, which all protocols share."""

    device: str

    def serve(self, connection: socket.socket, _peer: object, greeting: Hello) -> None:
        if greeting.purpose == "reports":
            send(connection, Welcome(PROTOCOL + 1, self.device, "9.9", "none", (), 0, 0))


def test_versions_that_differ(trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both ways: the gateway is older, or the device is."""
    keys = load_credentials(trial.keys / SECOND)
    listener = Listener("127.0.0.1:0", keys, OtherVersion(SECOND).serve, lambda _text: None)
    expected = (
        f"device '{SECOND}' (edgewright 9.9) speaks protocol {PROTOCOL + 1}, this side {PROTOCOL}; "
        "install the same edgewright on all devices"
    )
    assert refusal(trial, {SECOND: f"127.0.0.1:{listener.port}"}) == expected
    listener.close()
    monkeypatch.setattr("edgewright.cluster.node.connections.PROTOCOL", PROTOCOL + 1)
    monkeypatch.setattr("edgewright.cluster.node.messages.PROTOCOL", PROTOCOL + 1)
    assert f"speaks protocol {PROTOCOL}, this side {PROTOCOL + 1}; install the same edgewright" in refusal(trial)


@pytest.fixture
def second(trial: Trial, tmp_path: Path) -> Iterator[ClusterNode]:
    """A node in this process, at an address of its own."""
    node = ClusterNode(load_credentials(trial.keys / SECOND), "127.0.0.1:0", tmp_path / "store", lambda _text: None)
    yield node
    node.close()


def test_a_full_disk_on_a_device(trial: Trial, second: ClusterNode, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FileStore, "_free", 10)
    said = refusal(trial, {SECOND: f"127.0.0.1:{second.port}"})
    assert said.startswith(f"device '{SECOND}': the disk is full: '") and "10 are free; free some" in said


def test_files_of_earlier_runs_make_room_on_a_full_disk(
    trial: Trial, second: ClusterNode, monkeypatch: pytest.MonkeyPatch
):
    old = second.store.folder / ("0" * 64)
    old.write_bytes(b"of an earlier run")
    monkeypatch.setattr(FileStore, "_free", property(lambda _store: 10 if old.exists() else 1 << 30))
    coordinator = trial.unprepared()
    coordinator.connect({**trial.nodes.addresses, SECOND: f"127.0.0.1:{second.port}"})
    coordinator.prepare(trial.plans)
    coordinator.close()
    assert not old.exists()


def test_a_device_that_works_for_another_run(trial: Trial, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_device, "BUSY_S", 1.0)
    other = Coordinator(load_credentials(trial.keys / GATEWAY), "127.0.0.1:0", lambda _text: None)
    other.connect(trial.nodes.addresses)
    said = refusal(trial)
    other.close()
    assert f"does not take this run: it works for another run, which '{GATEWAY}' began" in said


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long offset(void) { return atol(getenv("CLOCK_OFFSET")); }
int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += offset();
    return result;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec;
    now->tv_usec = real.tv_nsec / 1000;
    return 0;
}
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc compiles a clock that is wrong")
def test_clocks_that_differ_by_hours(trial: Trial, tmp_path: Path):
    """Certificates are valid since 1970, and nothing else asks for the date."""
    (tmp_path / "clock.c").write_text(CLOCK)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "clock.so", tmp_path / "clock.c", "-ldl"], check=True)
    hours = {SECOND: 7, THIRD: -24 * 365 * 20}
    prefixes = {
        name: ("env", f"LD_PRELOAD={tmp_path / 'clock.so'}", f"CLOCK_OFFSET={3600 * each}")
        for name, each in hours.items()
    }
    with trial.started_by(prefixes):
        coordinator = trial.connected()
        for number, result in enumerate(coordinator(trial.source(10))):
            trial.check(number, result)
        coordinator.close()


@dataclass
class Site:
    """A plan in a folder, and what `cluster run` takes besides."""

    folder: Path
    port: int

    def refusal(self, *arguments: object) -> str:
        result = CliRunner().invoke(main, ["cluster", "run", *map(str, arguments)])
        assert result.exit_code in (1, 2), result.output
        assert isinstance(result.exception, SystemExit), result.exception
        return result.output.strip().splitlines()[-1]

    def run(self, *arguments: object, keys: str = "keys") -> str:
        listen = ("--listen", f"127.0.0.1:{self.port}")
        return self.refusal(self.folder / "plan", "--keys", self.folder / keys, *listen, *arguments)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two devices, of which the second is not there."""
    folder = tmp_path_factory.mktemp("site")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = one.getsockname()[1], other.getsockname()[1]
    device = '[[device]]\nname = "{}"\nboard = "host"\nrate = "1 GMAC/s"\nswitch = "switch"\nbandwidth = "1 Gbit/s"\n'
    device += 'address = "127.0.0.1:{}"\n'
    text = 'name = "site"\ngateway = "a"\n' + device.format("a", ports[0]) + device.format("b", ports[1])
    (folder / "site.toml").write_text(text)
    model = samples.write("lenet5", folder)
    plan = ["cluster", "plan", model, "--cluster", folder / "site.toml", "-o", folder / "plan"]
    result = CliRunner().invoke(main, list(map(str, plan)))
    assert result.exit_code == 0, result.output
    make_keys("site", ["a", "b"], "a", folder / "keys")
    make_keys("site", ["a", "b"], "b", folder / "other")
    return Site(folder, ports[0])


def test_a_folder_that_holds_no_plan(site: Site, tmp_path: Path):
    for folder in (tmp_path, tmp_path / "none", site.folder / "site.toml"):
        assert "give a folder that `edgewright cluster plan -o` wrote" in site.refusal(folder)


def test_keys_of_a_device_that_is_not_the_gateway(site: Site):
    assert "are those of 'a', which is not the gateway; frames are run from the gateway" in site.run(keys="other")
    assert "there is no file '" in site.run(keys="none")


def test_a_port_in_use(site: Site):
    with socket.create_server(("127.0.0.1", site.port)):
        assert f"port {site.port} is in use, perhaps by another node" in site.run()
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot serve figures at port {port}: Address already in use" in site.run("--metrics", port)


def test_a_plan_for_a_device_that_is_not_there(site: Site):
    assert "device 'b' at 127.0.0.1:" in site.run() and "cannot be reached: Connection refused" in site.run()


def wrong_shape(folder: Path) -> None:
    np.save(folder / "frame0.npy", np.zeros((1, 28, 28, 1), np.float32))
    np.save(folder / "frame1.npy", np.zeros((2, 3), np.float32))


def damaged(folder: Path) -> None:
    (folder / "frame0.npy").write_bytes(b"no array")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda _folder: None, "has no frames; expected .npy or .npz files"),
        (wrong_shape, "shape"),
        (damaged, "is no array of numpy"),
    ],
)
def test_frames_that_are_none_leave_no_output(site: Site, tmp_path: Path, spoil: Callable[[Path], None], words: str):
    frames, output = tmp_path / "frames", tmp_path / "out"
    frames.mkdir()
    spoil(frames)
    assert words in site.run("--input", frames, "-o", output)
    assert not output.exists()


def test_a_missing_folder_of_frames(site: Site, tmp_path: Path):
    assert "there is no file or folder '" in site.run("--input", tmp_path / "none")


def test_a_node_says_why_it_does_not_start(site: Site, tmp_path: Path):
    def said(*arguments: object) -> str:
        result = CliRunner().invoke(main, ["cluster", "node", *map(str, arguments)])
        assert result.exit_code == 1 and isinstance(result.exception, SystemExit), result.output
        return result.output.strip().splitlines()[-1]

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listen = ("--listen", f"127.0.0.1:{port}", "--store", tmp_path / "store")
        assert f"port {port} is in use, perhaps by another node" in said(site.folder / "keys/b", *listen)
    assert "cannot use the folder" in said(site.folder / "keys/b", "--store", site.folder / "site.toml")
    assert "there is no file '" in said(tmp_path)
