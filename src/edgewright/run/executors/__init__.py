"""What runs parts: native libraries, onnxruntime, torch. Each is loaded when a part needs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ...errors import InputError
from ...network.tensor import Array
from ...program.deployment import Part
from ...program.deployment_file import digest_of
from ..ring import FrameSlot

EXECUTORS = ("native", "onnxruntime", "torch")


class Executor(Protocol):
    """One part as run by one worker."""

    @property
    def memory_estimate(self) -> int:
        """Bytes that the runtime allocates itself, if it reports them; 0 if everything was planned."""
        ...

    def run(self, inputs: Sequence[FrameSlot], outputs: Sequence[FrameSlot]) -> None:
        """Computes one frame, from the input slots into the output slots."""
        ...

    def close(self) -> None:
        """Releases resources other than memory."""
        ...


def executor_of(part: Part, folder: Path, arenas: Mapping[str, Array], threads: int) -> Executor:
    """The executor of a part for one worker, with the worker's arenas by memory."""
    built = part.built
    if built is None:
        raise InputError(f"{part.where} has not been built; give the deployment itself, or build it")
    path = folder / built.file
    if digest_of(path) != built.digest:
        raise InputError(f"'{path}' is not the file that was built for {part.where}; build the pipeline again")
    if built.executor == "native":
        from .native import NativePart

        return NativePart(built, path, arenas)
    if built.executor == "onnxruntime":
        from .onnx_session import OnnxSession

        return OnnxSession(part, path, threads)
    if built.executor == "torch":
        from .torch_part import TorchPart

        return TorchPart(part, path, threads)
    raise InputError(f"{part.where} wants the executor '{built.executor[:40]}'; known are {', '.join(EXECUTORS)}")
