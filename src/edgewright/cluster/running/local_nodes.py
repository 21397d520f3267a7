"""Nodes as processes of this machine, on loopback: for trials, tests and measurements."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from ...errors import RunError


class LocalNodes:
    """One process for each device but the gateway, which is in the caller's own.

    All end with the `with` block, and with the caller's process, however that ends.
    """

    def __init__(
        self,
        keys: Path,
        names: Iterable[str],
        folder: Path,
        prefixes: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
        hosts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`prefixes` are commands that start a device's process, such as one that enters a network namespace.

        `hosts` are addresses to listen at, where it is not loopback.
        """
        self.hosts = hosts
        self.keys, self.folder, self.prefixes = keys, folder, prefixes
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.addresses: dict[str, str] = {}
        self.names = tuple(names)

    def __enter__(self) -> Self:
        try:
            for name in self.names:
                self.start(name)
            for name in self.names:
                self._await(name)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def start(self, name: str, address: str = "") -> None:
        """Starts a node, or starts it again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [*self.prefixes.get(name, ()), sys.executable, "-m", "edgewright.cluster.node", str(self.keys / name)]
        command += ["--listen", address or f"{self._host(name)}:0", "--store", str(self.folder / name)]
        pipe = subprocess.PIPE
        with (self.folder / f"{name}.log").open("a") as log:
            self.processes[name] = subprocess.Popen(
                [*command, "--until-input-ends"], stdin=pipe, stdout=pipe, stderr=log, text=True
            )

    def restart(self, name: str) -> None:
        """Starts a node that has ended, at its old address."""
        self.start(name, self.addresses[name])
        self._await(name)

    def _await(self, name: str) -> None:
        process = self.processes[name]
        assert process.stdout is not None
        line = process.stdout.readline()
        port = line.strip().rpartition(" ")[2]
        if not port.isdecimal():
            said = (self.folder / f"{name}.log").read_text()[-500:].strip()
            raise RunError(f"the node of '{name}' does not start: {said or line.strip() or 'it said nothing'}")
        self.addresses[name] = f"{self._host(name)}:{port}"

    def _host(self, name: str) -> str:
        return self.hosts.get(name, "127.0.0.1")

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
