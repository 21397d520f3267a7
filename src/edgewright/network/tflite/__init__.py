"""TFLite in: the flatbuffer, its operators, and the network that comes of them."""

from .reader import read_tflite

__all__ = ["read_tflite"]
