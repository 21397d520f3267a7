"""Sessions of onnxruntime that compute the same on every processor."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime

from edgewright.network.onnx_format.exact_products import make_products_exact
from edgewright.network.reference import exact_session


def onnx_session(model: onnx.ModelProto | bytes | str | Path, optimised: bool = True) -> onnxruntime.InferenceSession:
    """A session with one thread, whose 8-bit products do not saturate on processors without VNNI."""
    match model:
        case onnx.ModelProto():
            exact = onnx.load_from_string(model.SerializeToString())
        case bytes():
            exact = onnx.load_from_string(model)
        case _:
            exact = onnx.load(model)
    make_products_exact(exact)
    return exact_session(onnxruntime, exact.SerializeToString(), is_optimised=optimised)
