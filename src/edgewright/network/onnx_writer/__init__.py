"""Writes a network as ONNX: NCHW where required, quantised layers as QDQ, the file's layout for inputs and outputs."""

from .file import to_onnx, write_onnx

__all__ = ["to_onnx", "write_onnx"]
