"""Strangers, and devices that lie: they get nothing from a running cluster, and stop nothing."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from cryptography import x509

from edgewright.cluster.node.connections import Listener
from edgewright.cluster.node.credentials import COORDINATOR, load_credentials
from edgewright.cluster.running.keys import make_keys
from edgewright.errors import RunError
from tests.cluster.fuzz import FalseDevice, Fuzzer, fuzz, half_open, resident, trouble_of
from tests.cluster.test_keys import Authority, anybody
from tests.cluster.trials import Trial

GATEWAY, SECOND, THIRD = "device1", "device2", "device3"
HEAP = 64 << 20  # that glibc reserves for a heap of a thread


@pytest.fixture(autouse=True)
def _sound(trial: Trial) -> Iterator[None]:
    yield
    assert not (trouble := trouble_of(trial)), trouble


def addresses(trial: Trial) -> list[str]:
    return [*trial.nodes.addresses.values(), f"127.0.0.1:{trial.port}"]


def contexts(trial: Trial, folder: Path) -> dict[str, ssl.SSLContext]:
    """TLS as strangers would use it."""
    other, expired = folder / "other", folder / "expired"
    expired.mkdir()
    make_keys("trial", [GATEWAY], GATEWAY, other)
    names = [x509.DNSName(GATEWAY), x509.UniformResourceIdentifier(COORDINATOR)]
    Authority(trial.keys / "ca/ca.crt", trial.keys / "ca/ca.key").issue(expired, GATEWAY, names, days=-1)
    made = {"no certificate": anybody(), "another CA": anybody(), "expired": anybody()}
    made["another CA"].load_cert_chain(other / GATEWAY / "node.crt", other / GATEWAY / "node.key")
    made["expired"].load_cert_chain(expired / "node.crt", expired / "node.key")
    return made


def answer(address: str, context: ssl.SSLContext | None) -> bytes:
    """What a device says to someone who asks for its reports."""
    host, _, port = address.rpartition(":")
    said = b""
    with socket.create_connection((host, int(port)), timeout=10.0) as plain, suppress(OSError):
        connection = context.wrap_socket(plain) if context else plain
        with connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while data := connection.recv(1000):
                said += data
    return said


def test_strangers_get_nothing_and_stop_nothing(trial: Trial, tmp_path: Path):
    """Frames flow and a device's loss is survived while a hundred half-open connections wait at each device."""
    ways, coordinator, answers = contexts(trial, tmp_path), trial.connected(), {}
    opened: list[socket.socket] = []

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        for address in addresses(trial):
            opened.extend(half_open(address, 100))
        yield from trial.source(50, first=20)
        for name, context in ways.items():
            answers[name] = [answer(address, context) for address in addresses(trial)]
        answers["plain text"] = [answer(address, None) for address in addresses(trial)]
        yield from trial.source(100, first=50)
        assert not coordinator.recoveries, "they have stopped a device"
        for address in addresses(trial):
            opened.extend(half_open(address, 40))
        trial.nodes.processes[SECOND].kill()
        trial.nodes.processes[SECOND].wait()
        yield from trial.source(150, first=100)

    count = 0
    for number, result in enumerate(coordinator(frames())):
        trial.check(number, result)
        count += 1
    coordinator.close()
    for connection in opened:
        connection.close()
    assert count == 150 and [loss.device for loss in coordinator.recoveries] == [SECOND]
    alerts = answers.pop("plain text")
    assert all(len(each) <= 7 for each in alerts), "an alert of TLS has 7 bytes"
    assert answers == dict.fromkeys(ways, [b""] * 3)


def test_connections_leave_nothing_behind_in_a_node(trial: Trial):
    """Growth for each hostile connection, of a hundred at the same time: threads must not keep heaps of their own."""
    node = trial.nodes.processes[SECOND]
    context = load_credentials(trial.keys / THIRD).client_context()

    def intrude(_number: int) -> None:
        with suppress(OSError):
            answer(trial.nodes.addresses[SECOND], context)

    sizes = []
    with ThreadPoolExecutor(24) as pool:
        for count in (200, 200):
            list(pool.map(intrude, range(count)))
            sizes.append(resident(node.pid))
    assert heaps_of_threads(node.pid) == 0
    assert sizes[1] - sizes[0] < 5000 * 200


def heaps_of_threads(pid: int) -> int:
    """Heaps that glibc has made for threads: it reserves 64 MiB of addresses for each, and uses the first of them."""
    ranges = [line.split(maxsplit=2) for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    ends = [(*(int(end, 16) for end in place.split("-")), rights) for place, rights, _ in ranges]
    return sum(
        (one[2], other[2]) == ("rw-p", "---p") and one[1] == other[0] and one[0] % HEAP == 0 == other[1] % HEAP
        for one, other in pairwise(ends)
    )


def test_a_node_survives_whatever_a_coordinator_and_devices_send(trial: Trial):
    """Messages damaged, too long, too short, of wrong kinds and in wrong order; then an honest run."""
    sizes: list[list[int]] = []
    processes = [trial.nodes.processes[name] for name in (SECOND, THIRD)]
    sent = fuzz(trial, 4.0, 1, lambda: sizes.append([resident(process.pid) for process in processes]))
    assert sent > 100 and not trouble_of(trial)
    for before, after in zip(sizes[len(sizes) // 2], sizes[-1], strict=True):
        assert after < 1.1 * before, f"memory grows from {before:,} to {after:,} bytes"
    coordinator = trial.connected()
    for number, result in enumerate(coordinator(trial.source(20))):
        trial.check(number, result)
    coordinator.close()


def test_a_device_that_lies_to_devices_at_work_spoils_no_frame(trial: Trial):
    """Tensors without a credit, of wrong sizes, from the wrong device; it may cost devices, but no result."""
    coordinator = trial.connected()
    liars = [Fuzzer(trial, name, seed) for seed, name in enumerate((SECOND, THIRD))]

    def frames() -> Iterator[object]:
        for number in range(60):
            yield trial.samples[number % len(trial.samples)]
            if number % 20 == 5:
                for liar in liars:
                    liar.intrude(coordinator.run, coordinator.epoch)

    count = 0
    for number, result in enumerate(coordinator(frames())):
        trial.check(number, result)
        count += 1
    coordinator.close()
    assert count == 60


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_gateway_survives_whatever_a_device_reports(trial: Trial, seed: int):
    trial.nodes.processes[SECOND].kill()
    trial.nodes.processes[SECOND].wait()
    false = FalseDevice(trial, SECOND, seed)
    listener = Listener(
        trial.nodes.addresses[SECOND], load_credentials(trial.keys / SECOND), false.serve, lambda _text: None
    )
    try:
        refusal = ""
        try:
            coordinator = trial.connected()
        except RunError as error:
            refusal = str(error)
        if refusal:  # before the run begins
            assert f"'{SECOND}'" in refusal
            return
        for number, result in enumerate(coordinator(trial.source(30))):
            trial.check(number, result)
        coordinator.close()
        assert SECOND in {loss.device for loss in coordinator.recoveries}
    finally:
        listener.close()
