"""A network back into ONNX: NCHW where ONNX wants it, quantised layers as QDQ, the file's layout at the interface."""

from .file import to_onnx, write_onnx

__all__ = ["to_onnx", "write_onnx"]
