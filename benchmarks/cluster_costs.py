"""What parts and messages cost a device of a measured cluster, in seconds of a core: what a prediction needs.

Parts are timed by the device's share of a core, on all devices at the same time, since their processors share caches:

    python benchmarks/cluster_costs.py PLAN.json LIBRARY
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from edgewright.cluster.node.engine import load_parts
from edgewright.cluster.node.node_plan import NodePlan, plan_bytes, read_plan
from edgewright.cluster.running.prepared_plan import PreparedPlan

ROUNDS, PROFILE_S = 3, 4.0  # at least, both of them


def part_seconds(plan: PreparedPlan, folder: Path, prefixes: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """How long each part takes: the median. `prefixes` start a process with a device's share of a core."""
    processes = []
    for device, node in plan.nodes.items():
        if node.library is not None:
            file = folder / f"{device}.json"
            file.write_bytes(plan_bytes(node))
            library = plan.libraries[node.library.digest]
            command = [*prefixes.get(device, ()), sys.executable, __file__, str(file), str(library)]
            processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()  # it has loaded its library
    found: dict[str, float] = {}
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        said, _ = process.communicate()
        found |= json.loads(said)
    return found


def profiled(node: NodePlan, library: Path) -> dict[str, float]:
    """Seconds of a core for each part, in the order in which the device runs them."""
    _, functions = load_parts(node, library)
    memory = np.zeros(node.memory_bytes + 64, np.uint8)
    base = memory.ctypes.data + -memory.ctypes.data % 64
    slots = {fifo.number: fifo.starts[0] for fifo in node.fifos if fifo.starts}
    calls = []
    for part, function in zip(node.parts, functions, strict=True):
        starts = (*part.arenas, *(slots[number] for number in (*part.reads, *part.writes)))
        calls.append((part.name, function, [ctypes.c_void_p(base + start) for start in starts]))
    print("ready", flush=True)
    sys.stdin.readline()
    times: dict[str, list[float]] = {part.name: [] for part in node.parts}
    began, rounds = time.monotonic(), 0
    while rounds < ROUNDS or time.monotonic() < began + PROFILE_S:
        rounds += 1
        for name, function, places in calls:
            before = time.thread_time()
            function(*places)
            times[name].append(time.thread_time() - before)
    return {name: median(each) for name, each in times.items()}


def events(node: NodePlan) -> Counter[str]:
    """By part: 1 for running it, and the messages of a frame that the device sends for it or receives for it.

    What the gateway passes on from outside, and results that come to it, count for its first part.
    """
    names = [part.name for part in node.parts]
    found = Counter(names)
    for fifo in node.fifos:
        if fifo.origin == node.device:
            parts = [part.name for part in node.parts if fifo.number in part.writes]
            count = len(set(fifo.sent_to) - {node.device})
        else:
            parts, count = [names[number] for number in fifo.readers[:1]], 1
        found.update(dict.fromkeys(parts or names[:1], count))
    return found


def processor_seconds(pid: int) -> float:
    """What a process has taken of a core so far."""
    return time.clock_gettime(~pid << 3 | 2)  # the clock of a process: clock_getcpuclockid(3), which Python lacks


if __name__ == "__main__":
    print(json.dumps(profiled(read_plan(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2]))))
