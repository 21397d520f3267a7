"""A part in onnxruntime. It allocates by itself: its memory is estimated by the growth of the process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InputError
from ...lazy import load_package
from ...program.deployment import Part
from ..machine import resident_bytes
from ..ring import FrameSlot


def load_onnxruntime() -> Any:
    """The module; if it is missing, the error says how to install it."""
    return load_package("onnxruntime", "reference")


def open_session(model: str | bytes, threads: int) -> Any:
    """A session for a model, by its path or content, with a number of threads."""
    runtime = load_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class OnnxSession:
    """A session with as many threads as its worker has cores."""

    def __init__(self, part: Part, path: Path, threads: int) -> None:
        load_onnxruntime()  # the module itself does not count as the part's memory
        before = resident_bytes()
        try:
            self._session = open_session(str(path), threads)
        except Exception as error:  # onnxruntime has many classes of errors
            raise InputError(f"onnxruntime cannot load '{path}' for {part.where}: {error}") from error
        self.memory_estimate = max(0, resident_bytes() - before)
        self._ends, self._layouts = (part.network.inputs, part.network.outputs), part.network.layouts

    def close(self) -> None:
        """A session is released with its last user."""

    def run(self, inputs: Sequence[FrameSlot], outputs: Sequence[FrameSlot]) -> None:
        feed, layouts = {}, self._layouts
        for name, slot in zip(self._ends[0], inputs, strict=True):
            value = slot.array.transpose(np.argsort(layouts[name])) if name in layouts else slot.array
            feed[name] = np.ascontiguousarray(value)
        results = self._session.run(self._ends[1], feed)
        for name, slot, value in zip(self._ends[1], outputs, results, strict=True):
            np.copyto(slot.array, value.transpose(layouts[name]) if name in layouts else value)
