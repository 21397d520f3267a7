"""ONNX in: files read literally, operator by operator."""

from .reader import read_onnx

__all__ = ["read_onnx"]
