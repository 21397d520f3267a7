"""Places for devices on this machine: network namespaces with cables of a given rate, and cgroups with CPU quotas."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FAST_MBIT = 500
PACKET_BYTES, SEGMENT_BYTES = 1514, 70_000  # with headers
BURST_S = 0.0005  # of a cable's rate
BRIDGE, NET = "ewbridge", "10.77.0."
CGROUP_1, CGROUP_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
PERIOD_US = 10_000  # of CPU quotas
PERIOD_S = PERIOD_US / 1e6
SLICE_NS = 100_000  # the shortest that Linux accepts
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # numbers of the system call, which the C library has no name for


def run(*command: object) -> str:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def namespaces(count: int, mbit: float | None = None) -> Iterator[list[str]]:
    """Network namespaces on a bridge, each with a cable, of this rate if one is given; see `address`."""
    names = [f"ew{n}" for n in range(count)]
    try:
        clear(names)
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "link", "set", BRIDGE, "up")
        for n, name in enumerate(names):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"{name}h", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"{name}h", "master", BRIDGE, "up")
            run("ip", "-n", name, "addr", "add", f"{address(n)}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            if mbit is not None:
                shape(name, mbit)
        yield names
    finally:
        clear(names)


def address(number: int) -> str:
    """Of the namespace of this number."""
    return f"{NET}{number + 1}"


def shape(name: str, mbit: float) -> None:
    """Gives both ends of a namespace's cable this rate.

    What a cable lets through at once after a pause is as little as it can be, since it makes short messages faster than
    their bytes allow. From 500 Mbit/s on, segments of 64 KiB take less time of the processor than the packets that they
    stand for, which this machine could not send as fast.
    """
    is_fast = mbit >= FAST_MBIT
    burst = int(max(SEGMENT_BYTES if is_fast else 2 * PACKET_BYTES, mbit * 1e6 / 8 * BURST_S))
    rule = ["root", "tbf", "rate", f"{mbit}mbit", "burst", burst, "latency", "50ms"]
    for tool, end in ((["-n", name], "eth0"), ([], f"{name}h")):
        run("tc", *tool, "qdisc", "add", "dev", end, *rule)
        if not is_fast:
            run("ip", *tool, "link", "set", "dev", end, "gso_max_segs", 1)


def clear(names: list[str]) -> None:
    for name in names:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "link", "del", f"{name}h"], capture_output=True)
    subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)


@contextmanager
def quotas(names: list[str], share: float) -> Iterator[dict[str, Path]]:
    """A cgroup for each device, with a share of a core."""
    is_second = (CGROUP_2 / "cgroup.controllers").exists()
    groups = {name: (CGROUP_2 if is_second else CGROUP_1) / f"edgewright-{name}" for name in names}
    try:
        for group in groups.values():
            group.mkdir(exist_ok=True)
            if is_second:
                (group / "cpu.max").write_text(f"{int(share * PERIOD_US)} {PERIOD_US}")
                (group / "cpu.weight").write_text("10000")  # before whatever else this machine does
            else:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(int(share * PERIOD_US)))
                (group / "cpu.shares").write_text("262144")
        yield groups
    finally:
        for group in groups.values():
            for _ in range(50):
                with suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.1)


def core_of(number: int) -> int:
    """The core of the device of this number: its threads use no other one, and it shares it with few."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[number % len(cores)]


def inside(namespace: str | None, group: Path | None, core: int) -> tuple[str, ...]:
    """What starts a process there."""
    enter = f"echo $$ > {group}/cgroup.procs && taskset -cp {core} $$ > /dev/null && " if group else ""
    prefix = ("sh", "-c", f'{enter}exec "$@"', "sh")
    return (*prefix, *entered(namespace)) if namespace else prefix


def entered(namespace: str) -> tuple[str, str]:
    """What starts a process in a network namespace; `ip netns exec` would hide the cgroups from it."""
    return "nsenter", f"--net=/run/netns/{namespace}"


def run_when_woken() -> None:
    """Makes this process, and those that it starts, run as soon as they wake, beside whatever else this machine does.

    Linux grants who runs a slice of some milliseconds, which a message would wait for. Threads with short slices do not
    wait (sched_setattr(2), since Linux 6.12; older ones ignore it).
    """
    attributes = struct.pack("IIQiIQQQ", 48, 0, 0, os.nice(0), 0, SLICE_NS, 0, 0)  # struct sched_attr of SCHED_OTHER
    if number := SCHED_SETATTR.get(platform.machine()):
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)


@contextmanager
def a_share(group: Path | None, core: int) -> Iterator[None]:
    """Meanwhile this process, the gateway's, has its share of this core."""
    if group is None:
        yield
        return
    before = os.sched_getaffinity(0)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    _use_cores({core})
    yield
    _use_cores(before)
    (group.parent / "cgroup.procs").write_text(str(os.getpid()))


def _use_cores(cores: set[int]) -> None:
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):  # it has ended
            os.sched_setaffinity(int(thread), cores)
