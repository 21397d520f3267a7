"""A cluster's parts for another processor, run under QEMU's user mode: one frame through all devices.

The object files are those that the libraries are linked from. Devices are taken in turns, by the rules that nodes keep
(`FrameBook`); what a device sends is copied from its memory to that of another one.
"""

from __future__ import annotations

import mmap
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from shutil import which

from ...board.toolchain import toolchain
from ...errors import EdgewrightError, RunError
from ...network.tensor import Array
from ...platform.target import Architecture
from ...program.deployment import Deployment
from ..devices import Cluster
from ..node.frame_book import FrameBook
from ..node.node_plan import NodeFifo, NodePart, NodePlan
from .device_library import DeviceSources, LibraryBuilder, device_sources
from .frame_keeper import FrameKeeper
from .prepared_plan import PreparedPlan

EMULATORS = ("qemu-aarch64", "qemu-aarch64-static")


def why_not_emulated() -> str:
    """Why nothing can be emulated here, and what to do; "" where it can."""
    if any(map(which, EMULATORS)):
        return ""
    return "qemu-aarch64 is not installed (Debian: apt install qemu-user)"


def emulated_outputs(
    plan: PreparedPlan, deployment: Deployment, cluster: Cluster, builder: LibraryBuilder, frame: Mapping[str, Array]
) -> dict[str, Array]:
    """The results of one frame."""
    keeper = FrameKeeper(plan.inputs, plan.outputs)
    keeper.begin(plan)
    keeper.admit(frame)
    sources = device_sources(deployment, cluster)
    objects = builder.objects(sources)
    with ExitStack() as held:
        devices = {}
        for name, node in plan.nodes.items():
            home = builder.folder / "emulated" / plan.name.replace(" ", "-") / name
            home.mkdir(parents=True, exist_ok=True)
            program = _program(sources[name], objects[name], node, home) if name in sources else None
            devices[name] = held.enter_context(_EmulatedDevice(node, keeper, home, program))
        while keeper.finished == 0:
            if not any(device.step(devices) for device in devices.values()):
                raise RunError("the devices wait for each other for ever")
    return keeper.take()


class _EmulatedDevice:
    """A device's memory, and the process that runs its parts."""

    def __init__(self, plan: NodePlan, keeper: FrameKeeper, folder: Path, program: list[str] | None) -> None:
        self.plan, self.keeper, self.book = plan, keeper, FrameBook(plan, 0)
        self.book.admit(1)
        path, size = folder / "memory.bin", max(1, plan.memory_bytes)
        with path.open("wb") as file:
            file.truncate(size)
        with path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), size)
        self.process = None
        if program:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen([*program, str(path), str(size)], stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> _EmulatedDevice:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process:
            self.process.kill()
            self.process.communicate()

    def step(self, devices: Mapping[str, _EmulatedDevice]) -> bool:
        """Does what the device can do now, and says whether that was anything."""
        is_busy = False
        for fifo, frame in self.book.new_credits():
            devices[fifo.origin].book.credited(fifo.number, frame, self.plan.device)
            is_busy = True
        while (what := self.book.sendable()) and what[1] == 0:
            self._send(*what, devices)
            is_busy = True
        for worker, number, frame in list(self.book.runnable()):
            if frame == 0:
                self._run(self.plan.parts[number], number)
                self.book.ran(worker)
                is_busy = True
        return is_busy

    def _run(self, part: NodePart, number: int) -> None:
        assert self.process is not None and self.process.stdin is not None and self.process.stdout is not None
        places = (*part.arenas, *(self.book.slot(each, 0) for each in (*part.reads, *part.writes)))
        try:
            self.process.stdin.write(" ".join(map(str, (number, *places))) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except OSError:
            answer = ""
        if answer.strip() != "done":
            raise RunError(f"part '{part.name}' ends the emulator with status {self.process.wait()}")
        for each in part.writes:
            fifo = self.book.progress[each].fifo
            if fifo.is_result:
                self._result(fifo, self._slot(fifo))

    def _send(self, fifo: NodeFifo, frame: int, device: str, devices: Mapping[str, _EmulatedDevice]) -> None:
        content = self.keeper.frame(fifo.number, frame) if fifo.is_given else self._slot(fifo)
        other = devices[device]
        theirs = other.book.progress[fifo.number].fifo
        if theirs.starts:
            other._slot(theirs)[:] = content
        if theirs.is_result:
            self._result(theirs, content)
        other.book.came(fifo.number, frame)
        self.book.sent(fifo.number, frame, device)

    def _slot(self, fifo: NodeFifo) -> memoryview:
        start = self.book.slot(fifo.number, 0)
        return memoryview(self.memory)[start : start + fifo.bytes]

    def _result(self, fifo: NodeFifo, content: memoryview) -> None:
        self.keeper.place(fifo.number, 0)[:] = content
        self.keeper.done(fifo.number, 0)


def _program(sources: DeviceSources, objects: list[Path], node: NodePlan, home: Path) -> list[str]:
    """What runs the parts of a device: a static program, under QEMU where this machine is another one."""
    calls = [f'#include "{name}"' for name in sources.files if name.startswith("part") and name.endswith(".h")]
    counts = [len(part.arenas) + len(part.reads) + len(part.writes) for part in node.parts]
    for number, (part, count) in enumerate(zip(node.parts, counts, strict=True)):
        places = ", ".join(f"places[{n}]" for n in range(count))
        calls.append(f"static void call{number}(void **places) {{ {part.function}({places}); }}")
    table = ", ".join(f"call{number}" for number in range(len(counts)))
    calls.append(f"static void (*const calls[])(void **) = {{{table}}};")
    calls.append(f"#define PARTS {len(counts)}\n#define MOST_PLACES {max(counts)}\n")
    for name, content in sources.files.items():
        if name.endswith(".h") and isinstance(content, str):
            (home / name).write_text(content)
    (home / "part_calls.h").write_text("\n".join(calls))
    (home / "part_runner.c").write_text((resources.files(__package__) / "c" / "part_runner.c").read_text())
    tools = toolchain(sources.target)
    is_foreign = sources.target.architecture is Architecture.AARCH64
    static = ["-static"] if is_foreign else []
    tools.run(["-O1", *static, "-I", home, "part_runner.c", *objects, "-o", "parts", "-lm", "-pthread"], home)
    return [*_emulator(sources), str(home / "parts")]


def _emulator(sources: DeviceSources) -> list[str]:
    if sources.target.architecture is Architecture.HOST:
        return []
    if why := why_not_emulated():
        raise EdgewrightError(why)
    name = next(name for name in EMULATORS if which(name))
    return [name, *(("-cpu", sources.target.cpu) if sources.target.cpu in EMULATED_CORES else ())]


EMULATED_CORES = ("cortex-a53", "cortex-a57", "cortex-a72", "cortex-a76")  # that QEMU knows by name
