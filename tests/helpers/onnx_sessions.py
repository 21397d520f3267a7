"""Sessions of onnxruntime that compute the same on every processor."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime

from edgewright.network.onnx_format.exact_products import make_products_exact


def open_session(model: onnx.ModelProto | Path, *, is_optimised: bool = True) -> onnxruntime.InferenceSession:
    """A session with one thread, whose 8-bit products do not saturate."""
    copy = onnx.load(model) if isinstance(model, Path) else onnx.load_from_string(model.SerializeToString())
    make_products_exact(copy)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not is_optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(copy.SerializeToString(), options, ["CPUExecutionProvider"])
