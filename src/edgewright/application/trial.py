"""The application's C library on this machine: random runs and interruptions, each result compared with the network's.

Whether a run may start is left to the library: what it refuses is counted, what it allows has to be right.
"""

from __future__ import annotations

import ctypes
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..board.toolchain import FLAGS, toolchain
from ..errors import EdgewrightError
from ..network import Array, random_inputs
from ..platform.target import TARGETS
from ..program import interpret
from .description import ALWAYS
from .library import AppLibrary, c_name, resident_ends
from .members import AppMember

VARIANTS = 3
INTERRUPTED = 0.3  # the share of points at which somebody tries to start
_PULL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class TrialResult:
    """How a trial went."""

    runs: int
    nested: int  # of the runs: inside another one
    refused: int
    wrong: tuple[str, ...]


class AppTrial:
    """The library, built and loaded."""

    def __init__(self, library: AppLibrary) -> None:
        self.library, self.application = library, library.layout.application
        self._folder = tempfile.TemporaryDirectory(prefix="edgewright-")
        self._loaded = ctypes.CDLL(str(self._built(Path(self._folder.name))))
        self._inputs = {
            member.name: [random_inputs(member.network, seed=n) for n in range(VARIANTS)]
            for member in self.application.members
        }
        self._known: dict[tuple[str, bytes], Mapping[str, Array]] = {}
        # What the library remembers from one trial to the next.
        self._values: dict[tuple[str, str], Array] = {}  # inputs that were handed over
        self._frames: dict[tuple[str, int], Mapping[str, Array]] = {}  # what partitions made of each frame
        self._done = dict.fromkeys(self.application.by_name, 0)

    def _built(self, folder: Path) -> Path:
        for name, content in self.library.files.items():
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        flags = [*FLAGS, "-O2", "-shared", "-fPIC", "-I."]
        toolchain(TARGETS["host"]).run([*flags, *self.library.sources, "-o", "application.so", "-lm"], folder)
        return folder / "application.so"

    def run(self, tries: int, seed: int = 0) -> TrialResult:
        """So many attempts to start something, outside of any run; others come from where runs are interrupted."""
        self._random = random.Random(seed)
        self._runs = self._nested = self._refused = self._depth = 0
        self._wrong: list[str] = []
        own = {b.name: self._random.randbytes(b.size) for b in self.application.file.buffers if b.alive == ALWAYS}
        for name, content in own.items():
            ctypes.memmove(self._own(name), content, len(content))
        hook = ctypes.CFUNCTYPE(None)(self._interrupt)
        self._loaded[f"{self.library.name}_on_poll"](hook)
        for _ in range(tries):
            self._start(self._random.choice(self.application.members))
        self._loaded[f"{self.library.name}_on_poll"](None)
        for name, content in own.items():
            if ctypes.string_at(self._own(name), len(content)) != content:
                self._wrong.append(f"buffer '{name}' was overwritten")
        return TrialResult(self._runs, self._nested, self._refused, tuple(self._wrong))

    def _own(self, buffer: str) -> int:
        function = self._loaded[f"{self.library.name}_buffer_{buffer.lower()}"]
        function.restype = ctypes.c_void_p
        return int(function())

    def _interrupt(self) -> None:
        if self._random.random() < INTERRUPTED:
            self._start(self._random.choice(self.application.members))

    def _start(self, member: AppMember) -> None:
        network, owner = member.network, member.owner
        plan = self.library.members[member.name].plan
        inputs = dict(self._random.choice(self._inputs[member.name]))
        resident = resident_ends(self.library.layout, member)
        arguments: list[Any] = []
        keep: list[Any] = []  # alive until the call returns
        for tensor in network.inputs:
            if tensor in resident or tensor in plan.outside:
                inputs[tensor] = self._handed(member, tensor, inputs[tensor])
                continue
            value = np.ascontiguousarray(inputs[tensor])
            keep.append(value)
            if plan.views[tensor].window:
                pull = _PULL(_rows(value))
                keep.append(pull)
                arguments += [pull, None]
            else:
                arguments.append(ctypes.c_void_p(value.ctypes.data))
        outputs: dict[str, Array] = {}
        for tensor in dict.fromkeys(network.outputs):
            if tensor not in resident and tensor not in plan.outside:
                outputs[tensor] = np.empty(network.tensors[tensor].shape, network.tensors[tensor].dtype.numpy)
                arguments.append(ctypes.c_void_p(outputs[tensor].ctypes.data))
        given = [
            end for frame in self.library.layout.meeting.relations.frames if frame[0][0] == owner for end in frame
        ]
        self._depth += 1
        status = self._loaded[f"{self.library.name}_run_{c_name(member)}"](*arguments)
        self._depth -= 1
        if status:
            self._refused += 1
            return
        self._runs += 1
        self._nested += self._depth > 0
        expected = self._expected(member, inputs)
        for tensor, value in outputs.items():
            if not _is_same(value, expected[tensor]):
                self._wrong.append(f"run {self._runs}: network '{member.name}' computes a wrong '{tensor}'")
        for _, tensor in given[:1]:
            self._values |= dict.fromkeys(given[1:], inputs[tensor])
        for (made, output), end in self.library.layout.meeting.relations.cascades:
            if made == owner:
                self._values[end] = expected[output]
        self._frames[member.name, self._done[member.name]] = expected
        self._done[member.name] += 1

    def _handed(self, member: AppMember, tensor: str, default: Array) -> Array:
        """What another member has made; anything where nobody has, since the library will refuse."""
        for crossing in self.application.crossings:
            if (member.name, tensor) in crossing.readers:
                made = self._frames.get((crossing.source[0], self._done[member.name]))
                return default if made is None else made[crossing.source[1]]
        return self._values.get((member.owner, tensor), default)

    def _expected(self, member: AppMember, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        key = (member.name, b"".join(inputs[name].tobytes() for name in sorted(inputs)))
        if key not in self._known:
            self._known[key] = interpret(self.library.layout.meeting.plans[member.name], inputs)
        return self._known[key]


def verify_application(library: AppLibrary, tries: int = 200) -> TrialResult:
    """The trial of a library; an error where anything came out wrong, for it must not leave the house."""
    result = AppTrial(library).run(tries)
    if result.wrong:
        raise EdgewrightError(f"the application's code fails its check, please report this: {result.wrong[0]}")
    return result


def _rows(value: Array) -> Any:
    """The function that hands out rows of an image."""

    def pull(_context: int | None, row: int, target: int) -> None:
        data = np.ascontiguousarray(value[:, row]).tobytes()
        ctypes.memmove(target, data, len(data))

    return pull


def _is_same(found: Array, expected: Array) -> bool:
    """Bit by bit for integers; real numbers may be summed up in another order."""
    if found.dtype.kind != "f":
        return found.tobytes() == expected.tobytes()
    scale = float(np.abs(expected).max(initial=0.0)) or 1.0
    return bool(np.allclose(found, expected, rtol=1e-4, atol=1e-5 * scale))
