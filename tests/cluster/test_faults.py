"""What may befall a running cluster: devices, links and the gateway fail at the worst moments, and no frame is lost.

Several tests are named after failures of other systems.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from edgewright.cluster.node.connections import dial, hello
from edgewright.cluster.node.credentials import load_credentials
from edgewright.cluster.node.messages import Begin, send_credit
from edgewright.cluster.node.node_plan import plan_bytes
from edgewright.cluster.running.coordinator import Coordinator
from edgewright.cluster.running.keys import sign
from edgewright.cluster.running.lost_devices import RETRY_S
from edgewright.cluster.running.prepared_plan import PreparedPlan
from edgewright.cluster.running.remote_device import RemoteDevice
from edgewright.errors import EdgewrightError, Infeasible
from tests.cluster.trials import Trial

GATEWAY, SECOND, THIRD = "device1", "device2", "device3"


def run(trial: Trial, coordinator: Coordinator, frames: object, replan: object = None) -> int:
    """Frames through a coordinator, each checked; their number."""
    count = 0
    try:
        for number, result in enumerate(coordinator(frames, replan)):  # type: ignore[arg-type]
            trial.check(number, result)
            count += 1
    finally:
        coordinator.close()
    return count


def kill(trial: Trial, device: str) -> None:
    trial.nodes.processes[device].kill()
    trial.nodes.processes[device].wait()


def plan_for(trial: Trial, *devices: str) -> PreparedPlan:
    return next(plan for plan in trial.plans if plan.devices == {*devices})


def until(condition: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.01)


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Attempts:
    """Counts connections to the address of a device that is gone."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.count = 0
        self._listener = socket.create_server((host, int(port)))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._listener.accept()[0].close()
                self.count += 1

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_nobody_spins_or_retries_without_back_off_after_a_kill(trial: Trial):
    """After a SIGKILL both sides of exo take a whole core (exo #1823), or try again without a pause (exo #2112)."""
    coordinator, survivor = trial.connected(), trial.nodes.processes[THIRD]
    spent, attempts = [], []

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        kill(trial, SECOND)
        gone = Attempts(trial.nodes.addresses[SECOND])
        yield from trial.source(30, first=20)
        until(lambda: coordinator.recoveries and coordinator.keeper.finished == 30)
        before = time.process_time(), processor_seconds(survivor.pid)
        time.sleep(3.0)
        spent.extend([time.process_time() - before[0], processor_seconds(survivor.pid) - before[1]])
        gone.close()
        attempts.append(gone.count)

    assert run(trial, coordinator, frames()) == 30
    assert max(spent) < 1.0, f"of 3 s: gateway {spent[0]:.2f} s, node {spent[1]:.2f} s"
    assert 1 <= attempts[0] <= 4


GHOST = """
import pickle, sys
from pathlib import Path
from edgewright.cluster.node.credentials import load_credentials
from edgewright.cluster.running.coordinator import Coordinator

def frames(sample):
    while True:
        yield sample

keys, address, file = sys.argv[1:]
plans, addresses, sample = pickle.loads(Path(file).read_bytes())
coordinator = Coordinator(load_credentials(Path(keys)), address)
coordinator.connect(addresses)
coordinator.prepare(plans)
for number, _ in enumerate(coordinator(frames(sample))):
    if number == 10:
        print("runs", flush=True)
"""


def test_nodes_free_the_plan_of_a_gateway_that_is_gone_and_take_the_next(trial: Trial, tmp_path: Path):
    """Nodes of a session that is gone block the next one for ten minutes (exo #2194)."""
    file = tmp_path / "plans"
    file.write_bytes(pickle.dumps((trial.plans, trial.nodes.addresses, trial.samples[0])))
    gateway = trial.preparation.cluster.device_named[GATEWAY].address
    arguments = [str(trial.keys / GATEWAY), gateway, str(file)]
    nodes = [trial.nodes.processes[name].pid for name in (SECOND, THIRD)]
    with subprocess.Popen([sys.executable, "-c", GHOST, *arguments], stdout=subprocess.PIPE, text=True) as ghost:
        assert ghost.stdout.readline() == "runs\n"
        for how in (signal.SIGSTOP, signal.SIGKILL):
            until(lambda: all(loaded_libraries(trial, pid) for pid in nodes))
            ghost.send_signal(how)
            until(lambda: not any(loaded_libraries(trial, pid) for pid in nodes))
            ghost.send_signal(signal.SIGCONT)  # the first time it comes back as a zombie, and goes on
    assert run(trial, trial.connected(), trial.source(20)) == 20


def loaded_libraries(trial: Trial, pid: int) -> set[str]:
    """Those of a plan that are in a process's memory."""
    return {line.split()[-1] for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "/nodes/" in line}


def test_a_worker_that_is_lost_while_the_next_plan_is_made_does_not_end_the_run(trial: Trial):
    """A worker that is lost aborts the process that coordinates (llama.cpp #25938)."""
    coordinator, asked = trial.connected(trial.plans[:1]), []

    def replan(there: frozenset[str]) -> PreparedPlan:
        asked.append(there)
        if len(there) == 2:
            kill(trial, THIRD)
        return plan_for(trial, *there)

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        kill(trial, SECOND)
        yield from trial.source(100, first=20)

    assert run(trial, coordinator, frames(), replan) == 100
    assert asked == [{GATEWAY, THIRD}, {GATEWAY}]
    assert [loss.device for loss in coordinator.recoveries] == [SECOND, THIRD]
    assert all(loss.resumed for loss in coordinator.recoveries) and coordinator.plan.devices == {GATEWAY}


def test_a_device_is_noticed_in_seconds_when_it_falls_silent_with_its_connections_open(trial: Trial):
    """A peer that is gone without a word is noticed after minutes, when TCP gives up (nnstreamer #2703)."""
    coordinator, stopped = trial.connected(), []

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        trial.nodes.processes[SECOND].send_signal(signal.SIGSTOP)
        stopped.append(time.monotonic())
        yield from trial.source(60, first=20)

    assert run(trial, coordinator, frames()) == 60
    (loss,) = coordinator.recoveries
    assert loss.device == SECOND and loss.noticed - stopped[0] < 10.0


def test_connections_end_when_nobody_acknowledges_for_seconds(trial: Trial):
    credentials = load_credentials(trial.keys / GATEWAY)
    with dial(trial.nodes.addresses[SECOND], SECOND, credentials, hello("tensors", "none")) as connection:
        options = [socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT]
        patience, *keep_alive = (connection.getsockopt(socket.IPPROTO_TCP, option) for option in options)
    assert patience <= 3000 and keep_alive[0] + keep_alive[1] * keep_alive[2] <= 4


def test_a_zombie_of_an_old_epoch_is_sent_away(trial: Trial):
    """Tensors and credits of an epoch that is over, with good certificates, reach nobody's memory."""
    coordinator, ends = trial.connected(), []

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        kill(trial, SECOND)
        until(lambda: coordinator.epoch == 2)
        for purpose in ("tensors", "credits"):
            greeting = hello(purpose, coordinator.run, 1)
            for name, address in ((THIRD, trial.nodes.addresses[THIRD]), (GATEWAY, f"127.0.0.1:{trial.port}")):
                with dial(address, name, load_credentials(trial.keys / SECOND), greeting) as zombie:
                    for fifo in range(5):
                        with suppress(Exception):
                            send_credit(zombie, fifo, coordinator.keeper.finished)
                    zombie.settimeout(5.0)
                    ends.append(silence(zombie))
        yield from trial.source(80, first=20)

    assert run(trial, coordinator, frames()) == 80
    assert ends == [b""] * 4 and len(coordinator.recoveries) == 1


def silence(connection: socket.socket) -> bytes:
    """What the other side says until it closes the connection."""
    try:
        return connection.recv(100)
    except ConnectionError:
        return b""


@pytest.mark.parametrize("moment", ["files", "begin"])
def test_a_device_that_is_lost_while_files_are_handed_out_or_an_epoch_begins(
    trial: Trial, moment: str, monkeypatch: pytest.MonkeyPatch
):
    if moment == "files":
        for file in (trial.nodes.folder / SECOND).iterdir():
            file.unlink()
        coordinator = trial.unprepared()
        coordinator.connect(trial.nodes.addresses)
        coordinator.prepare(trial.plans, lambda size: kill(trial, SECOND) if size > 1000 else None)
    else:
        coordinator, order = trial.connected(), RemoteDevice.order

        def ordered(self: RemoteDevice, message: object) -> None:
            order(self, message)  # type: ignore[arg-type]
            if isinstance(message, Begin) and self.name == SECOND:
                kill(trial, SECOND)

        monkeypatch.setattr(RemoteDevice, "order", ordered)
    assert run(trial, coordinator, trial.source(50)) == 50
    assert {loss.device for loss in coordinator.recoveries} == {SECOND}
    assert coordinator.plan.devices == {GATEWAY, THIRD}


def test_a_device_that_stops_while_another_one_s_loss_is_handled(trial: Trial):
    """Two losses in the same instant; one falls silent, so that devices wait for it in the new epoch."""
    coordinator = trial.connected()

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        kill(trial, SECOND)
        trial.nodes.processes[THIRD].send_signal(signal.SIGSTOP)
        yield from trial.source(100, first=20)

    assert run(trial, coordinator, frames()) == 100
    assert {loss.device for loss in coordinator.recoveries} == {SECOND, THIRD}
    assert coordinator.plan.devices == {GATEWAY}


def test_a_run_ends_with_a_sentence_when_the_devices_left_cannot_hold_the_network(trial: Trial):
    whole = trial.preparation.cluster
    limited = replace(whole, devices=tuple(replace(device, ram_bytes=5000) for device in whole.devices))
    planner = trial.preparation.__class__(
        trial.network, limited, trial.preparation.planner.goal, trial.keys, trial.nodes.folder.parent / "limited"
    )
    coordinator = trial.connected(trial.plans[:1])

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        kill(trial, SECOND)
        yield from trial.source(1000)

    with pytest.raises(Infeasible, match="without device2: the other devices cannot run the network"):
        run(trial, coordinator, frames(), planner.of_devices)
    assert coordinator.keeper.taken >= 10


class Link:
    """Forwards connections to a device until it is cut."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                ends = self._listener.accept()[0], socket.create_connection(self._target)
                self._open += ends
                for one, other in (ends, ends[::-1]):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        for connection in (self._listener, *self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def redirected(trial: Trial, plan: PreparedPlan, links: Mapping[tuple[str, str], Link]) -> PreparedPlan:
    """The plan where devices reach each other over these links (from, to)."""
    nodes = dict(plan.nodes)
    for (device, other), link in links.items():
        addresses = {**nodes[device].addresses, other: link.address}
        nodes[device] = msgspec.structs.replace(nodes[device], addresses=addresses)
    contents = {name: plan_bytes(node) for name, node in nodes.items()}
    return replace(plan, nodes=nodes, signed={name: (text, sign(trial.keys, text)) for name, text in contents.items()})


def test_a_cut_link_between_two_devices_that_both_reach_the_gateway(trial: Trial):
    """One of them is given up, again and again since it seems to be well, but less and less often."""
    assert THIRD in trial.plans[0].nodes[SECOND].addresses, "the plan must use the link"
    pairs = (SECOND, THIRD), (THIRD, SECOND)
    links = {pair: Link(trial.nodes.addresses[pair[1]]) for pair in pairs}
    coordinator = trial.connected([redirected(trial, trial.plans[0], links), *trial.plans[1:]])

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        for link in links.values():
            link.cut()
        yield from trial.source(50, first=20)
        until(lambda: coordinator.keeper.finished == 50)
        yield from trial.source(500, 0.008, first=50)

    assert run(trial, coordinator, frames()) == 500
    assert {loss.device for loss in coordinator.recoveries} in ({SECOND}, {THIRD})
    noticed = [loss.noticed for loss in coordinator.recoveries]
    for number, (one, other) in enumerate(pairwise(noticed)):
        assert other - one >= RETRY_S * 4**number, "it is let in again without a pause"


def test_a_device_that_can_be_reached_and_takes_no_plan_is_let_go(trial: Trial, monkeypatch: pytest.MonkeyPatch):
    """It comes back, refuses its files, and must neither join nor be kept busy for nothing."""
    coordinator, said = trial.connected(), []
    coordinator.say = said.append
    prepare, is_refusing = RemoteDevice.prepare, [True]

    def prepared(self: RemoteDevice, *given: object) -> None:
        if is_refusing[0]:
            raise EdgewrightError("the disk is full")
        prepare(self, *given)  # type: ignore[arg-type]

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        monkeypatch.setattr(RemoteDevice, "prepare", prepared)
        kill(trial, SECOND)
        trial.nodes.restart(SECOND)
        until(lambda: any("cannot take part: the disk is full" in text for text in said))
        is_refusing[0] = False
        until(lambda: coordinator.plan is trial.plans[0])
        yield from trial.source(40, first=20)

    assert run(trial, coordinator, frames()) == 40


def test_a_device_that_comes_back_when_the_run_is_over_is_free_for_the_next(trial: Trial):
    coordinator = trial.connected()

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        kill(trial, SECOND)
        trial.nodes.restart(SECOND)
        until(lambda: coordinator.recoveries)
        time.sleep(0.4)  # it is about to be reached

    assert run(trial, coordinator, frames()) == 20
    time.sleep(0.5)
    assert run(trial, trial.connected(), trial.source(20)) == 20
    until(lambda: not [each.name for each in threading.enumerate() if each.name.startswith("edgewright")])


def test_two_devices_that_are_suspected_at_once(trial: Trial):
    """The first is given up, which begins an epoch; the other one gets its chance in that."""
    coordinator = trial.connected()

    def frames() -> Iterator[object]:
        yield from trial.source(20)
        coordinator._suspects = dict.fromkeys((SECOND, THIRD), (coordinator.epoch, 0.0, "it is blamed"))
        until(lambda: coordinator.recoveries)
        yield from trial.source(40, first=20)

    assert run(trial, coordinator, frames()) == 40
    (loss,) = coordinator.recoveries
    assert loss.device == SECOND and loss.why == "it is blamed"
