"""The shared object that a device executes: all parts that it has in a plan, with kernels and weights stored once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ...board.toolchain import Toolchain, end_compilers, shared_toolchain
from ...emit.native import FLAGS as HOST_FLAGS
from ...errors import InputError
from ...interrupts import interruptible
from ...platform import load_board
from ...platform.target import TARGETS, Architecture, Target, target_of
from ...program.deployment import Deployment
from ...program.deployment_file import digest_of
from ...run.machine import architecture, processor_features
from ..devices import Cluster
from ..libraries import device_code
from ..node.node_plan import NodeLibrary

_RUNS = "runs.c"
_FLAGS = ("-std=c99", "-O3", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC", "-pthread")


@dataclass(frozen=True)
class DeviceLibrary:
    path: Path
    about: NodeLibrary
    functions: Mapping[str, str]  # by part


@dataclass
class LibraryBuilder:
    """Compiles the libraries of plans; what several have in common is compiled once."""

    folder: Path  # object files stay there for the next time

    def build(self, deployment: Deployment, cluster: Cluster, name: str) -> dict[str, DeviceLibrary]:
        """The library of each device that has parts, in the folder of the plan's name."""
        sources = device_sources(deployment, cluster)
        home = self.folder / name

        def linked() -> dict[str, Path]:
            objects = self._objects(sources)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                links = {
                    device: pool.submit(each.link, objects[device], home / f"{device}.so")
                    for device, each in sources.items()
                }
                return {device: link.result() for device, link in links.items()}

        paths = interruptible(linked, end_compilers)
        return {device: sources[device].library(path) for device, path in paths.items()}

    def objects(self, sources: Mapping[str, DeviceSources]) -> dict[str, list[Path]]:
        """The object files of each device."""
        return interruptible(lambda: self._objects(sources), end_compilers)

    def _objects(self, sources: Mapping[str, DeviceSources]) -> dict[str, list[Path]]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            wanted = {key: (each, name) for each in sources.values() for name, key in each.keys.items()}
            jobs = {key: pool.submit(self._object, *what) for key, what in wanted.items()}
            made = {key: job.result() for key, job in jobs.items()}
        return {device: [made[key] for key in each.keys.values()] for device, each in sources.items()}

    def _object(self, sources: DeviceSources, name: str) -> Path:
        """The object file of a source, which may have been made before."""
        key = sources.keys[name]
        target = self.folder / "objects" / f"{key}.o"
        if not target.exists():
            home = self.folder / "sources" / key
            home.mkdir(parents=True, exist_ok=True)
            target.parent.mkdir(exist_ok=True)
            for file in sources.needed(name):
                content = sources.files[file]
                (home / file).write_bytes(content.encode() if isinstance(content, str) else content)
            fresh = home / "fresh.o"  # an interrupt leaves no half of a file under the name that counts
            sources.toolchain.run([*sources.flags, "-c", "-I", home, home / name, "-o", fresh], home)
            fresh.rename(target)
        return target


def device_sources(deployment: Deployment, cluster: Cluster) -> dict[str, DeviceSources]:
    """The C of each device that has parts."""
    devices = dict.fromkeys(worker.device for worker in deployment.workers if worker.parts)
    return {device: DeviceSources(deployment, device, _target(cluster, device)) for device in devices}


class DeviceSources:
    """The C of a device's parts, and how it is compiled."""

    def __init__(self, deployment: Deployment, device: str, target: Target) -> None:
        self.target = target
        is_host = target.architecture is Architecture.HOST
        self.toolchain: Toolchain = shared_toolchain(target)
        self.flags = (*HOST_FLAGS, "-fPIC", "-pthread") if is_host else _FLAGS
        self.code = device_code(deployment, device, target)
        runs = "".join(f'#include "{name}"\n' for name in self.code.runs)  # one by one they take far longer
        self.files = {**self.code.files, _RUNS: runs}
        sources = (name for name in self.files if name.endswith((".c", ".S")) and name not in self.code.runs)
        self.keys = {name: self._key(name) for name in sources}  # of each source that is compiled

    def needed(self, name: str) -> list[str]:
        """The files that a source takes to compile, itself among them."""
        found, ahead = dict[str, None](), [name]
        while ahead:
            file = ahead.pop()
            if file in self.files and file not in found:
                found[file] = None
                text = self.files[file]
                if isinstance(text, str):
                    ahead += re.findall(r'(?:#\s*include|\.incbin)\s*"([^"]+)"', text)
        return list(found)

    def link(self, objects: Sequence[Path], target: Path) -> Path:
        """The shared object."""
        target.parent.mkdir(parents=True, exist_ok=True)
        self.toolchain.run([*self.flags, "-shared", "-o", target, *objects, "-lm"], target.parent)
        return target

    def _key(self, name: str) -> str:
        """The digest of all that its object file depends on."""
        made = sha256(repr((self.toolchain.program, self.toolchain.flags, self.flags)).encode())
        for file in self.needed(name):
            content = self.files[file]
            made.update(file.encode() + (content.encode() if isinstance(content, str) else content))
        return made.hexdigest()[:32]

    def library(self, path: Path) -> DeviceLibrary:
        if self.target.architecture is Architecture.HOST:
            core, features = architecture(), processor_features()
        else:
            core, features = "aarch64", ("asimddp",) if self.target.has_dot else ()
        about = NodeLibrary(digest_of(path), path.stat().st_size, self.code.weights_bytes, core, features)
        return DeviceLibrary(path, about, self.code.functions)


def _target(cluster: Cluster, device: str) -> Target:
    board = cluster.device_named[device].board
    target = target_of(load_board(board)) if board else TARGETS["host"]
    if target.architecture not in (Architecture.HOST, Architecture.AARCH64):
        raise InputError(
            f"device '{device}' is a {board}, which runs no Linux; clusters of microcontrollers are planned, and "
            "their C is written by `cluster plan -o`, but they are not run from here"
        )
    return target
