"""A part in onnxruntime. It allocates as it likes: what it takes is an estimate, by how the process grows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ..machine import resident_bytes
from ..ring import FrameSlot
from ..specification import PartSpec


def load_onnxruntime() -> Any:
    """The module; an error that says how to get it."""
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError("onnxruntime is to run this, and is not installed: pip install onnxruntime") from error
    return onnxruntime


def open_session(model: str | bytes, threads: int) -> Any:
    """A model, by its path or its content, on so many threads."""
    runtime = load_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class OnnxSession:
    """A session with as many threads as its worker has cores."""

    def __init__(self, part: PartSpec, path: Path, threads: int) -> None:
        load_onnxruntime()  # the module itself is no memory of the part
        before = resident_bytes()
        try:
            self._session = open_session(str(path), threads)
        except Exception as error:  # onnxruntime has a class of its own for every kind of failure
            raise InputError(f"onnxruntime cannot load '{path}' for {part.where}: {error}") from error
        self.memory_estimate = max(0, resident_bytes() - before)
        self._part = part
        self._names = [port.tensor for port in part.outputs]

    def close(self) -> None:
        """A session ends with its last user."""

    def run(self, inputs: Sequence[FrameSlot], outputs: Sequence[FrameSlot]) -> None:
        feed = {}
        for port, slot in zip(self._part.inputs, inputs, strict=True):
            value = slot.array
            feed[port.tensor] = np.ascontiguousarray(value.transpose(np.argsort(port.layout)) if port.layout else value)
        results = self._session.run(self._names, feed)
        for port, slot, value in zip(self._part.outputs, outputs, results, strict=True):
            np.copyto(slot.array, value.transpose(port.layout) if port.layout else value)
