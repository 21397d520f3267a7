"""A part in onnxruntime. It allocates as it likes: what it takes is an estimate, by how the process grows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import InputError
from ..machine import resident_bytes
from ..ring import FrameSlot
from ..specification import PartSpec


class OnnxSession:
    """A session with as many threads as its worker has cores."""

    def __init__(self, part: PartSpec, path: Path, threads: int) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise InputError(
                f"{part.where} runs in onnxruntime, which is not installed: pip install onnxruntime"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4
        before = resident_bytes()
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class of its own for every kind of failure
            raise InputError(f"onnxruntime cannot load '{path}' for {part.where}: {error}") from error
        self._grown = max(0, resident_bytes() - before)
        self._part = part
        self._names = [port.tensor for port in part.outputs]

    @property
    def memory_estimate(self) -> int:
        return self._grown

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
