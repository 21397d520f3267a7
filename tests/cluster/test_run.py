"""A cluster of processes on loopback: results, memory, and devices that die, stop, come back."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgewright.cluster.running.monitor import Monitor
from tests.cluster.trials import Trial

VICTIM = "device2"


def test_results_come_in_order_in_the_memory_that_was_planned(trial: Trial):
    coordinator = trial.connected()
    try:
        count = 0
        for number, result in enumerate(coordinator(trial.source(50))):
            trial.check(number, result)
            count += 1
        assert count == 50
        for device in Monitor(coordinator).status().devices:
            assert device.allocated_bytes == device.planned_bytes > 0, device.name
    finally:
        coordinator.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_device_that_dies_or_stops_costs_no_frame_and_may_come_back(trial: Trial, how: signal.Signals):
    coordinator, victim = trial.connected(), trial.nodes.processes[VICTIM]
    try:
        count, came_back = 0, 0
        for number, result in enumerate(coordinator(trial.source(1000, 0.005))):
            trial.check(number, result)
            count += 1
            if number == 100:
                victim.send_signal(how)
            elif number == 300 and how is signal.SIGKILL:
                trial.nodes.restart(VICTIM)
            elif number == 500 and how is signal.SIGSTOP:
                victim.send_signal(signal.SIGCONT)
            came_back = came_back or (number if number > 300 and coordinator.plan is trial.plans[0] else 0)
        assert count == 1000
        loss = coordinator.recoveries[0]  # on a busy machine a device that is well may be taken for lost, too
        assert loss.device == VICTIM and loss.resumed is not None
        assert came_back, "the device did not join again"
    finally:
        victim.send_signal(signal.SIGCONT) if victim.poll() is None else None
        coordinator.close()


STARTER = """
import sys
from pathlib import Path
from edgewright.cluster.running.local_nodes import LocalNodes

with LocalNodes(Path(sys.argv[1]), ["device2"], Path(sys.argv[2])) as nodes:
    print(nodes.processes["device2"].pid, flush=True)
    sys.stdin.read()
"""


def test_local_nodes_end_with_the_process_that_started_them(trial: Trial, tmp_path: Path):
    pipe, arguments = subprocess.PIPE, (trial.keys, tmp_path)
    with subprocess.Popen([sys.executable, "-c", STARTER, *arguments], stdin=pipe, stdout=pipe, text=True) as starter:
        command_line = Path(f"/proc/{int(starter.stdout.readline())}/cmdline")
        assert b"edgewright.cluster.node" in command_line.read_bytes()
        starter.kill()
    end = time.monotonic() + 20.0
    while command_line.exists() and command_line.read_bytes():  # a process that has ended has none
        assert time.monotonic() < end, "the node has not ended"
        time.sleep(0.05)


LEAN = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("edgewright", "msgspec", "cryptography", "_cffi_backend"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
"""


def test_a_node_runs_with_msgspec_and_cryptography_alone(trial: Trial, tmp_path: Path):
    """A whole run, where neither numpy nor anything that plans can be imported."""
    (tmp_path / "sitecustomize.py").write_text(LEAN)
    with trial.started_by({VICTIM: ("env", f"PYTHONPATH={tmp_path}")}):
        coordinator = trial.connected()
        for number, result in enumerate(coordinator(trial.source(20))):
            trial.check(number, result)
        coordinator.close()
    assert not coordinator.recoveries
