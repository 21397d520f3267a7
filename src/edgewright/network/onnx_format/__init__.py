"""Reads ONNX files literally, operator by operator."""

from .reader import read_onnx

__all__ = ["read_onnx"]
