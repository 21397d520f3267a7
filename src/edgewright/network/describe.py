"""Operators in words, for tables and pages."""

from __future__ import annotations

from math import inf

from .network import Layer, Network
from .operators import (
    Activation,
    AvgPool2d,
    BatchNorm,
    Binary,
    Clamp,
    Concat,
    Conv2d,
    ConvTranspose2d,
    Dense,
    Elu,
    LeakyRelu,
    MaxPool2d,
    Reduce,
    Unary,
)


def operator_text(network: Network, layer: Layer) -> str:
    """The layer's operator in a few words: "depthwise 3x3 /2 + relu"."""
    op = layer.op
    match op:
        case Conv2d() | ConvTranspose2d():
            _, kh, kw, _ = network.tensors[layer.inputs[1]].shape
            channels = network.tensors[layer.inputs[0]].shape[3]
            kind = "conv" if isinstance(op, Conv2d) else "transposed conv"
            if op.groups > 1:
                kind = "depthwise" if op.groups == channels else f"{kind} in {op.groups} groups"
            return f"{kind} {kh}x{kw}{_stride(op.stride)}{_dilation(op.dilation)}{_then(op.activation)}"
        case MaxPool2d() | AvgPool2d():
            kind = "max pool" if isinstance(op, MaxPool2d) else "average pool"
            return f"{kind} {op.kernel[0]}x{op.kernel[1]}{_stride(op.stride)}{_then(op.activation)}"
        case Dense():
            return f"dense{_then(op.activation)}"
        case Binary():
            return f"{op.kind.value}{_then(op.activation)}"
        case BatchNorm():
            return f"scale and shift{_then(op.activation)}"
        case Clamp() | LeakyRelu() | Elu() | Unary():
            return activation_text(op)
        case Reduce():
            return f"{op.kind.value} over {'x'.join(str(a) for a in op.axes)}"
        case Concat():
            return f"concat {len(layer.inputs)} along {op.axis}"
        case _:
            return type(op).__name__.lower()


def activation_text(op: Activation) -> str:
    match op:
        case Clamp(low=0, high=high):
            return "relu" if high == inf else f"relu{high:g}"
        case Clamp(low=low, high=high):
            return f"clamp {low:g}..{high:g}"
        case Unary():
            return op.kind.value
        case LeakyRelu():
            return f"leaky relu {op.alpha:g}"
        case _:
            return type(op).__name__.lower()


def _stride(stride: tuple[int, int]) -> str:
    if stride == (1, 1):
        return ""
    return f" /{stride[0]}" if stride[0] == stride[1] else f" /{stride[0]}x{stride[1]}"


def _dilation(dilation: tuple[int, int]) -> str:
    return "" if dilation == (1, 1) else f" dilated {dilation[0]}x{dilation[1]}"


def _then(activation: Activation | None) -> str:
    return "" if activation is None else f" + {activation_text(activation)}"
