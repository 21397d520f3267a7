"""The sums of a quantised convolution or dense layer: how large they get, and what the reference stores them as."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from ...network import Arithmetic, Array, Tensor
from ...network.kernels.operand import Operand
from ...network.kernels.scales import number, saturated
from ...network.kernels.tflite_fixed import multiply, rounded
from ...network.kernels.tflite_scales import activation_range, channel_multipliers, channel_scales
from ...network.operators import Clamp, Conv2d, ConvTranspose2d, Dense
from ...network.region import Region
from ...network.tensor import DType
from ...program.options import Rounding
from ..site import Site, unwrap
from .multipliers import Rule


@dataclass(frozen=True)
class Requantised:
    """One product layer with eight-bit weights (zero point 0) and one scale of x."""

    weights: Array  # (channels, taps in the order of the weights' own axes) int8
    bias: Array  # (channels,) int64
    zero: int  # of x: what is taken off each stored x
    rule: Rule
    drop_bits: Array | None  # (channels,): TFLite's convolutions round a second time, after this shift


def requantised(site: Site) -> Requantised | None:
    """The layer's sums, found once; None where they are not plain (float, 16 bits, weights with a zero point, ...)."""
    return site.facts.once("requantised", lambda: _found(site))


def _found(site: Site) -> Requantised | None:
    op = site.op
    if not isinstance(op, Conv2d | ConvTranspose2d | Dense) or not _is_plain(site):
        return None
    x, weights = site.inputs[0].tensor, site.weights.reshape(len(site.weights), -1)
    bias = np.zeros(len(weights), np.int64)
    if len(site.inputs) > 2:
        bias = site.network.constants[site.inputs[2].tensor.name].astype(np.int64)
    zero = _zero(x)
    first, last = _reach(weights, bias, x, zero)
    if max(-int(first.min()), int(last.max())) >= 1 << 31:
        return None
    if site.arithmetic is not Arithmetic.TFLITE:
        return Requantised(weights, bias, zero, _rule_of_onnx(site, first, last), None)
    if isinstance(op, Dense) and site.options.rounding is Rounding.REFERENCE:
        return Requantised(weights, bias, zero, _rule_in_double(site, first, last), None)
    rule, bits = _rule_rounded_twice(site, first, last)
    return Requantised(weights, bias, zero, rule, bits) if rule else None


def larger_layer(site: Site, counts_weights: bool) -> Site | None:
    """The layer of which this one is a slice, if whatever stores the sums of its first channels exactly does so here.

    Scales, biases and ranges must be the same. With `counts_weights`, so must be the sums of weights, which are part
    of what is added where x keeps its zero point.
    """
    whole, sums = site.whole, requantised(site)
    larger = requantised(whole) if whole is not None else None
    if sums is None or larger is None or sums.zero != larger.zero:
        return None
    rule, other, first = sums.rule, larger.rule, slice(len(sums.bias))
    is_same_rule = rule.name == other.name != "" and (rule.low, rule.high) == (other.low, other.high)
    is_reached = np.all(rule.first >= other.first[first]) and np.all(rule.last <= other.last[first])
    same = [(rule.scale, other.scale), (sums.bias, larger.bias)]
    if counts_weights:
        same.append((sums.weights.sum(axis=1), larger.weights.sum(axis=1)))
    if (sums.drop_bits is None) != (larger.drop_bits is None):
        return None
    if sums.drop_bits is not None and larger.drop_bits is not None:
        same.append((sums.drop_bits, larger.drop_bits))
    is_same = is_same_rule and all(np.array_equal(own, of_all[first]) for own, of_all in same)
    return whole if is_same and is_reached else None


def flip(tensor: Tensor) -> int:
    """How far stored bytes lie above int8: the bit that turns unsigned ones into signed ones."""
    return 128 if tensor.dtype is DType.UINT8 else 0


def _is_plain(site: Site) -> bool:
    x, w, *bias = (place.tensor for place in site.inputs)
    types = (DType.INT8,) if site.arithmetic is Arithmetic.TFLITE else (DType.INT8, DType.UINT8)
    return (
        site.inputs[1].is_constant
        and all(place.is_constant for place in site.inputs[2:])
        and x.dtype in types
        and w.dtype is DType.INT8
        and site.result.dtype in types
        and all(t.quant is not None and not t.quant.is_per_channel for t in (x, site.result))
        and w.quant is not None
        and not any(w.quant.zero)
        and (not w.quant.is_per_channel or w.quant.axis in (0, -len(w.shape)))
        and all(b.dtype is DType.INT32 for b in bias)
        and isinstance(site.activation, Clamp | None)
    )


def _reach(weights: Array, bias: Array, x: Tensor, zero: int) -> tuple[Array, Array]:
    """The least and the greatest sum of each channel, whatever x holds; padding counts 0."""
    info = np.iinfo(x.dtype.numpy)
    least, most = min(int(info.min) - zero, 0), max(int(info.max) - zero, 0)
    up = np.maximum(weights, 0).sum(axis=1, dtype=np.int64)
    down = np.minimum(weights, 0).sum(axis=1, dtype=np.int64)
    return bias + up * least + down * most, bias + up * most + down * least


def _kernel(site: Site) -> Operand:
    w = site.inputs[1].tensor
    return Operand(site.weights, Region.whole(w.shape), w)


def _rule_in_double(site: Site, first: Array, last: Array) -> Rule:
    """That of TFLite's dense layers: one product in double, rounded half away from zero."""
    low, high = activation_range(site.activation, site.result)
    scale = channel_scales(site.inputs[0].tensor, _kernel(site), site.result) * np.ones(len(first))
    zero = _zero(site.result)

    def stored(sums: Array) -> Array:
        return np.clip(rounded(sums * scale[:, None]) + zero, low, high).astype(np.int64)

    return Rule(stored, low, high, first, last, scale, f"in double, {zero}")


def _rule_rounded_twice(site: Site, first: Array, last: Array) -> tuple[Rule | None, Array | None]:
    """That of TFLite's convolutions: rounded after the product and again after the shift; and the shift's bits.

    No rule when int32 arithmetic would wrap around, since what is stored no longer grows with the sum. No bits when
    the lower bound clamps all negative sums away: the second rounding then agrees with rounding half up.
    """
    low, high = activation_range(site.activation, site.result)
    ones, x = np.ones(len(first), np.int64), site.inputs[0].tensor
    multipliers, shifts = (v * ones for v in channel_multipliers(x, _kernel(site), site.result))
    left, zero = np.maximum(shifts, 0), _zero(site.result)
    if np.any((first << left) < -(1 << 31)) or np.any((last << left) >= 1 << 31):
        return None, None

    def stored(sums: Array) -> Array:
        return np.clip(multiply(sums, multipliers[:, None], shifts[:, None]) + zero, low, high)

    bits = np.maximum(-shifts, 0)
    scale = multipliers * 2.0 ** (shifts - 31.0)
    rule = Rule(stored, low, high, first, last, scale, f"twice, {zero}")
    return rule, bits if low < zero and bits.any() else None


def _zero(tensor: Tensor) -> int:
    return unwrap(tensor.quant).zero[0]


def _rule_of_onnx(site: Site, first: Array, last: Array) -> Rule:
    """That of onnxruntime: one float32 product, rounded half to even."""
    w = np.array(unwrap(site.inputs[1].tensor.quant).scale, np.float32)
    return _onnx_rule(site.inputs[0].tensor, w, site.result, site.activation, first, last)


def _onnx_rule(x: Tensor, w: Array, result: Tensor, activation: object, first: Array, last: Array) -> Rule:
    products = np.float32(unwrap(x.quant).scale[0]) * w
    scale = (products / np.float32(unwrap(result.quant).scale[0])) * np.ones(len(first), np.float32)
    info = np.iinfo(result.dtype.numpy)
    low, high = int(info.min), int(info.max)
    if isinstance(activation, Clamp):
        low, high = (int(np.clip(number(v, result), low, high)) for v in (activation.low, activation.high))
    point = Region(tuple((0, 1) for _ in result.shape))

    def stored(sums: Array) -> Array:
        steps = sums.astype(np.float32) * scale[:, None]
        return np.clip(saturated(steps, point, result).astype(np.int64), low, high)

    name = f"in float, {_zero(result)} of {result.dtype.name}"
    return Rule(stored, low, high, first, last, scale.astype(np.float64), name)


def sums_of_onnx(x: Tensor, result: Tensor, weights: Array, scale: Array, bias: Array, has_relu: bool) -> Requantised:
    """The sums of an int8 ONNX layer: stored weights (channels, taps) with one scale each, biases in steps of sums."""
    zero, offsets = _zero(x), bias.astype(np.int64)
    first, last = _reach(weights, offsets, x, zero)
    rule = _onnx_rule(x, scale, result, Clamp(0.0, inf) if has_relu else None, first, last)
    return Requantised(weights, offsets, zero, rule, None)
