"""The CNN as trained: network, layers, tensors, operators; ONNX and TFLite in, ONNX out; reference execution."""

from .builder import Builder, random_inputs
from .network import Arithmetic, Layer, Network, check
from .region import Interval, Region, Shape
from .tensor import Array, DType, Quant, Tensor

__all__ = [
    "Arithmetic", "Array", "Builder", "DType", "Interval", "Layer", "Network", "Quant", "Region", "Shape",
    "Tensor", "check", "random_inputs",
]  # fmt: skip
