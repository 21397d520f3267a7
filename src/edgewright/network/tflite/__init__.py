"""Reads TFLite: the flatbuffer, its operators, and the network made from them."""

from .reader import read_tflite

__all__ = ["read_tflite"]
