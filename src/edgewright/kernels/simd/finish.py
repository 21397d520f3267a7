"""From sums to stored bytes: the tables that the vector kernels take for eight-bit layers of either arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...network import Arithmetic, Array, DType, Interval, Region
from ...network.kernels import Operand
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_scales import activation_range, channel_multipliers, channel_scales, scale
from ...network.operators import Clamp, Dense
from ...program.options import Rounding
from ..call import CCall
from ..nests.finish import stored_range, sum_type, zero_of
from ..printing.source import Fields, struct_fields
from ..site import Site
from .packing import ALIGNMENT, padded
from .sites import has_types


@dataclass(frozen=True)
class ByteLayer:
    """An eight-bit layer: its weights less their zero point, its bias, and what follows."""

    weights: Array  # int8, (channels, ...)
    bias: Array  # int32, (channels,)
    activation: Clamp | None
    is_signed: bool
    zero: int  # of the input


def byte_layer(site: Site) -> ByteLayer | None:
    """The layer, if it is quantised as the kernels know it: one scale for the input, weights of eight bits."""
    weights, x, activation = byte_weights(site), site.inputs[0].tensor, site.activation
    bias = _bias(site, len(weights)) if weights is not None else None
    if weights is None or bias is None or not isinstance(activation, Clamp | None):
        return None
    return ByteLayer(weights, bias, activation, x.dtype is DType.INT8, zero_of(x))


def byte_weights(site: Site) -> Array | None:
    """The layer's weights less their zero points, found once, where these are bytes and sums have 32 bits."""
    return site.facts.once("simd bytes", lambda: _centred(site))


def _centred(site: Site) -> Array | None:
    x, w, y = site.inputs[0].tensor, site.inputs[1].tensor, site.result
    values = site.network.constants.get(w.name)
    if not has_types(site, "int8", "uint8") or values is None or w.dtype not in (DType.INT8, DType.UINT8):
        return None
    if x.quant is None or w.quant is None or y.quant is None or x.quant.is_per_channel or y.quant.is_per_channel:
        return None
    centred = values.astype(np.int16) - np.array(w.quant.zero, np.int16).reshape(-1, *[1] * (values.ndim - 1))
    if np.abs(centred).max(initial=0) > 127 or sum_type(site) != "int32_t":
        return None
    return centred.astype(np.int8)


def _bias(site: Site, channels: int) -> Array | None:
    if len(site.inputs) < 3:
        return np.zeros(channels, np.int32)
    values = site.network.constants.get(site.inputs[2].tensor.name)
    return values if values is not None and values.dtype == np.int32 else None


# Fields of ew_simd_finish.
FINISH = ("multiplier", "shift", "exact", "scale", "zero", "low", "high")


def finish_fields(call: CCall, layer: ByteLayer, channels: Interval) -> Fields:
    """The ew_simd_finish of these channels."""
    result = call.result
    if call.arithmetic is Arithmetic.TFLITE:
        low, high = activation_range(layer.activation, result)
    else:
        low, high = stored_range(result, layer.activation)
    tables = [_table(call, values, channels) for values in _scales(call, len(layer.bias))]
    return struct_fields(FINISH, (*tables, zero_of(result), low, high))


def _scales(site: Site, channels: int) -> tuple[Array | None, ...]:
    """Multipliers and shifts, exact scales, float scales: of the three one is there."""
    x, w = site.inputs[0].tensor, site.inputs[1].tensor
    if site.arithmetic is not Arithmetic.TFLITE:
        assert x.quant is not None and w.quant is not None and site.result.quant is not None
        scales = np.float32(x.quant.scale[0]) * np.array(w.quant.scale, np.float32)
        return None, None, None, _spread(scales / np.float32(site.result.quant.scale[0]), channels)
    operand = Operand(np.empty(0), Region.whole(w.shape), w)
    if isinstance(site.op, Dense) and site.options.rounding is Rounding.REFERENCE:
        return None, None, _spread(channel_scales(x, operand, site.result), channels), None
    if x.dtype is DType.UINT8:  # one scale for all channels, combined in float32
        pair = quantize_multiplier(float(scale(x) * scale(w)) / float(scale(site.result)))
        multipliers, shifts = (np.array([value]) for value in pair)
    else:
        multipliers, shifts = channel_multipliers(x, operand, site.result)
    return _spread(multipliers.astype(np.int32), channels), _spread(shifts.astype(np.int32), channels), None, None


def _spread(values: Array, channels: int) -> Array:
    return np.ascontiguousarray(np.broadcast_to(values, (channels,)))


def _table(call: CCall, values: Array | None, channels: Interval) -> str:
    """The name of a table of these channels in whole panels; 0, C's null pointer, where there is none."""
    if values is None:
        return "0"
    return call.add(padded(values[slice(*channels)]), "scales", ALIGNMENT)
