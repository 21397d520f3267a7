"""Conversion between stored integers and real numbers, in float32 as in onnxruntime."""

from __future__ import annotations

import numpy as np

from ..region import Region
from ..tensor import Array, Quant, Tensor
from .elementwise import widened
from .operand import Operand


def real(x: Operand) -> Array:
    """The real numbers of an operand: scale * (stored - zero), in float32."""
    if x.tensor.quant is None or x.tensor.dtype.is_float:
        return widened(x.data)
    return centred(x).astype(np.float32) * scale_of(x.tensor, x.region)


def is_narrow(tensor: Tensor) -> bool:
    """Whether the tensor has eight bits and one scale."""
    return tensor.dtype.bytes == 1 and tensor.quant is not None and not tensor.quant.is_per_channel


def dequantized(data: Array, quant: Quant) -> Array:
    """The real numbers of a stored constant in float32, as ONNX's DequantizeLinear computes them."""
    scale, zero = quant.along(data.ndim)
    return ((data.astype(np.int64) - zero).astype(np.float32) * scale).reshape(data.shape)


def centred(x: Operand) -> Array:
    """Stored integers minus their zero point, in a type that holds them."""
    if x.tensor.quant is None or not any(x.tensor.quant.zero):
        return x.data
    wide = np.int16 if x.data.dtype.itemsize == 1 else np.int32
    return x.data.astype(wide) - zero_of(x.tensor, x.region).astype(wide)


def stored(values: Array, region: Region, tensor: Tensor) -> Array:
    """Real numbers as stored in a region of `tensor`: divided by the scale, rounded half to even, saturated."""
    if tensor.quant is None or tensor.dtype.is_float:
        return values
    with np.errstate(over="ignore"):
        steps = values.astype(np.float32, copy=False) / scale_of(tensor, region)
    return saturated(steps, region, tensor)


def saturated(steps: Array, region: Region, tensor: Tensor) -> Array:
    """Multiples of the scale: rounded half to even, zero point added, saturated to the type's range.

    Overwrites `steps`.
    """
    info, zero = np.iinfo(tensor.dtype.numpy), zero_of(tensor, region)
    steps = np.asarray(steps)
    # Clipped before rounding, so that infinities and huge numbers become valid integers; NaN becomes the minimum.
    np.fmax(steps, info.min - zero.astype(np.float32), out=steps)
    np.fmin(steps, info.max - zero.astype(np.float32), out=steps)
    whole = np.rint(steps, out=steps).astype(np.int32)
    whole += zero
    return whole.astype(tensor.dtype.numpy)


def number(value: float, tensor: Tensor) -> int | float:
    """One real number as stored in `tensor` (which has one scale)."""
    point = Region(tuple((0, 1) for _ in tensor.shape))
    return stored(np.full(point.shape, value, np.float32), point, tensor).item()


def scale_of(tensor: Tensor, region: Region) -> Array:
    """The scale of every element of the region, float32, shaped to broadcast against it."""
    assert tensor.quant is not None
    return _spread(np.array(tensor.quant.scale, np.float32), tensor, region)


def zero_of(tensor: Tensor, region: Region) -> Array:
    """The zero point of every element of the region, int32, shaped to broadcast against it."""
    assert tensor.quant is not None
    return _spread(np.array(tensor.quant.zero, np.int32), tensor, region)


def _spread(values: Array, tensor: Tensor, region: Region) -> Array:
    if len(values) == 1:
        return values[0]
    assert tensor.quant is not None
    rank = len(tensor.shape)
    axis = (tensor.quant.axis or 0) % rank
    return values[slice(*region.bounds[axis])].reshape([-1 if i == axis else 1 for i in range(rank)])
