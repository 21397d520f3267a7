"""The emitted library on this machine: built with the host's compiler, called through ctypes."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..board.toolchain import NATIVE, Toolchain, toolchain
from ..errors import InputError
from ..network import Array, Network, Tensor
from ..network.kernels import checked_input
from ..network.kernels.compute import by_name
from ..platform.target import TARGETS
from ..program.plan import slot_name
from .files import own_source
from .firmware.image import Linkable
from .lanes import has_threads, lanes_file
from .library import Library
from .stagewise import Tracer

ALIGNMENT = 16  # of arenas, and of inputs and outputs in the caller's memory
FLAGS = ("-std=c99", "-O3", NATIVE, "-ffp-contract=off", "-fno-strict-aliasing")


def compiler() -> Toolchain:
    """The host's C compiler, or an error that says what to install."""
    return toolchain(TARGETS["host"])


class _Arena:
    """Aligned memory between two guards, which show when something was written outside."""

    GUARD, PATTERN = 64, 0xC3

    def __init__(self, size: int) -> None:
        memory = np.full(size + 4 * self.GUARD, self.PATTERN, np.uint8)
        start = self.GUARD - memory.ctypes.data % self.GUARD + self.GUARD
        self.inside = memory[start : start + size]
        self._guards = memory[:start], memory[start + size :]

    @property
    def is_sound(self) -> bool:
        return all((guard == self.PATTERN).all() for guard in self._guards)


@dataclass
class Native:
    """A loaded library. `run` takes and gives arrays in our layout, by tensor name."""

    library: Library
    path: Path
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def __post_init__(self) -> None:
        self._loaded = ctypes.CDLL(str(self.path))
        self._call = self._loaded[f"{self.library.name}_run_in"]
        self._call.restype = None
        self._arenas = [_Arena(size) for size in self.library.arenas.values()]
        self._slots: dict[str, Array] = {}  # the caller's memory during a run, as bytes

    def __repr__(self) -> str:
        return f"Native('{self.library.name}', {self.library.plan.peak_bytes:,} B of RAM)"

    @property
    def network(self) -> Network:
        return self.library.network

    def close(self) -> None:
        """Ends the threads of a library for several lanes; the next run starts them again."""
        if self.library.plan.lanes > 1 and has_threads(self.library.target):
            self._loaded[f"{self.library.name}_lanes_stop"]()

    def run(
        self,
        inputs: Mapping[str, Array] | Array,
        poison: int | None = None,
        into: Mapping[str, Array] | None = None,
        alone: bool = False,
    ) -> dict[str, Array]:
        """The network's outputs; a bare array is the only input.

        Outputs in `into` are written there. With `poison`, arenas are filled with it first. What the plan has in the
        caller's memory is read and written where these arrays lie: nothing is copied.
        With `alone`, a library for several lanes runs all of it on the caller's core.
        """
        given_inputs = by_name(self.network, inputs)
        tensors = [self.network.tensors[name] for name in self.network.inputs]
        arguments = [aligned_array(np.asarray(checked_input(tensor, given_inputs), order="C")) for tensor in tensors]
        outputs = {
            name: self._target(self.network.tensors[name], into or {}) for name in dict.fromkeys(self.network.outputs)
        }
        self._slots = {
            slot_name(name): value.reshape(-1).view(np.uint8)
            for name, value in (*zip(self.network.inputs, arguments, strict=True), *outputs.items())
            if name in self.library.plan.outside
        }
        if poison is not None:
            for arena in self._arenas:
                arena.inside.fill(poison)
        given: list[Any] = [_pointer(arena.inside) for arena in self._arenas]
        for name, value in zip(self.network.inputs, arguments, strict=True):
            given += self._pulled(value) if name in self.library.plan.pulled else [_pointer(value)]
        if alone and self.library.plan.lanes > 1:
            self._loaded[f"{self.library.name}_run_lane"](0, 1, *given, *map(_pointer, outputs.values()))
        else:
            self._call(*given, *map(_pointer, outputs.values()))
        assert all(arena.is_sound for arena in self._arenas), "the emitted code wrote outside its arena"
        return outputs

    @staticmethod
    def _target(tensor: Tensor, into: Mapping[str, Array]) -> Array:
        """Where an output goes: the array given for it, if it is one, or a new one."""
        found = into.get(tensor.name)
        if found is None:
            return np.empty(tensor.shape, tensor.dtype.numpy)
        is_fit = found.shape == tensor.shape and found.dtype == tensor.dtype.numpy and found.flags.c_contiguous
        if not is_fit or found.ctypes.data % ALIGNMENT:
            raise InputError(
                f"output '{tensor.name}' cannot be written into {found.dtype}{list(found.shape)} at "
                f"{found.ctypes.data:#x}: give {tensor}, contiguous and {ALIGNMENT}-byte aligned"
            )
        return found

    def trace(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The tensors between stages, of a library that was built with probes."""
        tracer = Tracer(self.library.plan)
        arenas = {name: arena.inside for name, arena in zip(self.library.arenas, self._arenas, strict=True)}

        def watch(stage: int) -> None:
            if stage:
                tracer.take(stage - 1, {**arenas, **self._slots})

        watcher = ctypes.c_void_p.in_dll(self._loaded, f"{self.library.name}_watcher")
        called = _WATCH(watch)
        watcher.value = ctypes.cast(called, ctypes.c_void_p).value
        try:
            self.run(inputs, alone=True)
        finally:
            watcher.value = None
        return tracer.tensors

    def _pulled(self, value: Array) -> list[Any]:
        """A function that hands out the rows of an input, and a context for it."""
        size = value[:, :1].nbytes

        def pull(_context: int | None, row: int, target: int) -> None:
            ctypes.memmove(target, value.ctypes.data + row * size, size)

        return [_PULL(pull), ctypes.c_void_p()]


_PULL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)
_WATCH = ctypes.CFUNCTYPE(None, ctypes.c_int32)


def aligned_array(value: Array) -> Array:
    """The array, or a copy of it that begins where kernels may expect it."""
    if value.ctypes.data % ALIGNMENT == 0:
        return value
    room = np.empty(value.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy


def _pointer(value: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(value.ctypes.data)


def build(
    library: Library,
    folder: str | Path | None = None,
    flags: Sequence[str] = FLAGS,
    cc: Toolchain | None = None,
    probes: bool = False,
) -> Native:
    """The library compiled as a shared object (in `folder`, or in a temporary one) and loaded.

    With `probes` it can be traced.
    """
    keep = None if folder else tempfile.TemporaryDirectory(prefix="edgewright-")
    target = build_shared(library, Path(folder or keep.name), flags, cc, probes)  # type: ignore[union-attr]
    return Native(library, target, keep)


def build_shared(
    library: Linkable, folder: Path, flags: Sequence[str] = FLAGS, cc: Toolchain | None = None, probes: bool = False
) -> Path:
    """The shared object that the library was compiled to, in `folder`; nothing is loaded."""
    where = folder.resolve()
    where.mkdir(parents=True, exist_ok=True)
    for name, content in library.files.items():
        (where / name).write_bytes(content.encode() if isinstance(content, str) else content)
    target = where / f"lib{library.name}.so"
    sources = [str(where / name) for name in library.sources]
    if probes:
        probe = where / f"{library.name}_probe.c"
        probe.write_text(own_source("probe_watcher", library.name))
        flags, sources = [*flags, f"-D{library.name.upper()}_PROFILE"], [*sources, str(probe)]
    arguments = [*flags, "-shared", "-fPIC", "-pthread", "-I", str(where), "-o", str(target), *sources, "-lm"]
    (cc or compiler()).run(arguments, where)
    return target


def in_threads(library: Library) -> Library:
    """The library with threads of this machine for its lanes, whatever target its kernels are for."""
    if library.plan.lanes == 1 or has_threads(library.target):
        return library
    host = TARGETS["host"]
    files = {**library.files, f"{library.name}_lanes.c": lanes_file(library.name, host)}
    return replace(library, files=files, target=host)
