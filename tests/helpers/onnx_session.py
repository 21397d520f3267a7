"""Sessions of onnxruntime of most tests: one thread, and exact sums of 8-bit products where it has them."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as Missing


def onnx_session(model: onnx.ModelProto | bytes | str | Path, optimised: bool = True) -> onnxruntime.InferenceSession:
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    providers = ["CPUExecutionProvider"]
    try:
        # Without it, 8-bit products saturate at 16 bits on processors that lack VNNI.
        return onnxruntime.InferenceSession(source, _options(optimised, ("session.x64quantprecision", "1")), providers)
    except Missing:  # for products of operators such as QGemm, where weights are signed
        return onnxruntime.InferenceSession(source, _options(optimised), providers)


def _options(optimised: bool, *entries: tuple[str, str]) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    for key, value in entries:
        options.add_session_config_entry(key, value)
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options
