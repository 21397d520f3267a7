"""Our own library, called through ctypes: the code and its weights are mapped once, arenas belong to the worker."""

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
    """A run function with its arenas in place: a call gives up Python's lock while C runs."""

    memory_estimate = 0  # all of it is in the plan

    def __init__(self, built: BuiltPart, path: Path, arenas: Mapping[str, Array]) -> None:
        check_machine(built, path)
        try:
            library = ctypes.CDLL(str(path))  # mapped once, however often it is asked for
            self._function = library[built.function]
        except (OSError, AttributeError) as error:
            raise InputError(f"'{path}' cannot be loaded ({error}); build the pipeline anew") from error
        self._function.restype = None
        self._handle = library._handle
        self._memories = [ctypes.c_void_p(arenas[memory].ctypes.data) for memory in built.arenas]
        self._arenas = arenas  # kept alive
        self._stop_lanes = library[built.lanes_stop] if built.lanes_stop else None

    def run(self, inputs: Sequence[FrameSlot], outputs: Sequence[FrameSlot]) -> None:
        tensors = [ctypes.c_void_p(slot.address) for slot in (*inputs, *outputs)]
        self._function(*self._memories, *tensors)

    def close(self) -> None:
        """Ends the threads of lanes, which wait for the next frame, and lets go of the library."""
        if self._stop_lanes is not None:
            self._stop_lanes()
        if hasattr(_ctypes, "dlclose"):  # unmapped when the last part that uses it is closed
            _ctypes.dlclose(self._handle)


def check_machine(built: BuiltPart, path: Path) -> None:
    """An error where the code was compiled for another instruction set, or for instructions that are not here."""
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
