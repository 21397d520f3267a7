"""What a model must keep to beyond being a sound file: sizes, weights that are numbers, layers that TFLite runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...errors import ModelError, Unsupported
from ..kernels.tflite import has_tflite_kernel, needs_one_scale
from ..kernels.tflite_lines import difference_scale
from ..operators import Conv2d, ConvTranspose2d, Dense, LogSoftmax, Op, Softmax
from ..region import Shape
from ..tensor import MOST_ELEMENTS, Array, DType, Tensor

_CHUNK = 1 << 22  # elements looked at together, so that a scan needs little memory


def require_size(name: str, shape: Shape) -> None:
    if prod(shape) > MOST_ELEMENTS:
        raise ModelError(f"tensor '{name}' would have {prod(shape)} elements (shape {shape})")
    if min(shape, default=1) < 1:
        raise ModelError(f"tensor '{name}' has no elements (shape {shape})")


def require_finite(name: str, value: Array) -> None:
    """Refuses weights that are no numbers. A single infinity may be meant, as what a maximum is padded with."""
    if not np.issubdtype(value.dtype, np.floating) or 0 in value.strides:
        return
    if value.size == 1 and not np.isnan(value).any():
        return
    flat = value.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        if not np.isfinite(flat[start : start + _CHUNK]).all():
            raise ModelError(f"the constant '{name}' holds NaN or infinite values. Export the model again.")


def require_kernel(op: Op, tensors: Sequence[Tensor], result: Tensor) -> None:
    """Refuses quantised layers that TFLite itself does not run: what they would give is not defined."""
    quantised = [tensor for tensor in (*tensors, result) if tensor.quant is not None]
    if not quantised:
        return
    single: Sequence[Tensor] = quantised
    if isinstance(op, Conv2d | ConvTranspose2d | Dense):
        single = (tensors[0], result)  # weights and bias may have a scale per channel
    if any(tensor.quant is not None and tensor.quant.is_per_channel for tensor in single):
        raise Unsupported("elements are quantised per channel")
    dtype = quantised[0].dtype
    if not has_tflite_kernel(op, dtype):
        raise Unsupported(f"TFLite has no kernel for quantised {dtype.value}")
    if needs_one_scale(op, dtype):
        pairs = {(tensor.quant.scale, tensor.quant.zero) for tensor in quantised if tensor.quant is not None}
        least, most = min(pairs), max(pairs)
        if most[0][0] - least[0][0] > 1e-6 * most[0][0] or len({zero for _, zero in pairs}) > 1:
            raise Unsupported("the scales of inputs and output differ, which TFLite does not convert here")
    if isinstance(op, Softmax | LogSoftmax) and dtype is not DType.INT16:
        difference_scale(op.beta if isinstance(op, Softmax) else 1.0, tensors[0])
