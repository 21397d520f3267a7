"""Native libraries, called through ctypes: code and weights are mapped once, arenas belong to the worker."""

from __future__ import annotations

import _ctypes
import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import InputError
from ...network.tensor import Array
from ...program.deployment import BuiltPart
from ..machine import architecture, processor_features
from ..ring import FrameSlot


class NativePart:
    """A run function with its arenas in place; a call releases Python's lock while C runs."""

    memory_estimate = 0  # everything is planned

    def __init__(self, built: BuiltPart, path: Path, arenas: Mapping[str, Array]) -> None:
        check_machine(built, path)
        try:
            library = ctypes.CDLL(str(path))  # mapped once for all users
            self._function = library[built.function]
        except (OSError, AttributeError) as error:
            raise InputError(f"'{path}' cannot be loaded ({error}); build the pipeline again") from error
        self._function.restype = None
        self._handle = library._handle
        self._memories = [ctypes.c_void_p(arenas[memory].ctypes.data) for memory in built.arenas]
        self._arenas = arenas  # kept alive
        self._stop_lanes = library[built.lanes_stop] if built.lanes_stop else None

    def run(self, inputs: Sequence[FrameSlot], outputs: Sequence[FrameSlot]) -> None:
        tensors = [ctypes.c_void_p(slot.address) for slot in (*inputs, *outputs)]
        self._function(*self._memories, *tensors)

    def close(self) -> None:
        """Ends the lanes' threads, which wait for the next frame, and unloads the library."""
        if self._stop_lanes is not None:
            self._stop_lanes()
        if hasattr(_ctypes, "dlclose"):  # unmapped when the last part that uses it is closed
            _ctypes.dlclose(self._handle)


def check_machine(built: BuiltPart, path: Path) -> None:
    """Raises an error if the code was compiled for another instruction set, or for missing instructions."""
    if built.architecture != architecture():
        raise InputError(
            f"'{path}' was built for {built.architecture}, this machine is {architecture()}; build the pipeline here"
        )
    missing = sorted(set(built.features) - set(processor_features()))
    if missing:
        listed = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise InputError(
            f"'{path}' was built for a processor with {listed}, which this one lacks; build the pipeline here"
        )
