"""Sums of products in every arithmetic: what is summed, from where it starts, and what becomes of the sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...network import Arithmetic, Array, DType, Region
from ...network.kernels import Operand
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_scales import activation_range, channel_multipliers, channel_scales, scale
from ...network.operators import Activation, Clamp, Dense, DynamicProduct, MatMul
from ..call import Call as Site
from ..options import Rounding
from ..printing.source import Expr
from ..printing.tensor import CTensor as Place
from .activations import activated
from .finish import (
    Element,
    activation_of,
    narrowed,
    per_channel,
    plus_number,
    real_element,
    rounded_even,
    stored_even,
    sum_type,
    widened,
    zero_of,
)


@dataclass(frozen=True)
class Sums:
    ctype: str  # in which products are summed
    weights: Place
    left: Element
    right: Element
    start: Callable[[Expr], str]  # of an output channel's sum
    store: Callable[[str, Expr], str]  # (sum, output channel) -> the element as stored

    def product(self, x: str, w: str, channel: Expr) -> str:
        wide = "(int64_t)" if self.ctype == "int64_t" else ""
        return f"{wide}{self.left(x, channel)} * {self.right(w, channel)}"


def sums_of(site: Site) -> Sums | None:
    """How the layer's products are summed and stored; None where its arithmetic has no such layer."""
    x, w = site.inputs[0].tensor, site.inputs[1].tensor
    if site.dynamic is not None:
        return _dynamic(site, site.dynamic)
    if not site.is_quantised:
        return _real(site) if site.result.dtype.is_float else _plain(site)
    if site.arithmetic is Arithmetic.TFLITE:
        return None if isinstance(site.op, MatMul) else _tflite(site)
    if all(t.quant is not None and not t.dtype.is_float for t in (x, w)):
        return _onnx(site)
    return _between_scales(site)


def _minus(text: str, value: int) -> str:
    return text if value == 0 else f"({plus_number(text, -value)})"


def _real(site: Site) -> Sums:
    bias = _bias(site)
    return Sums(
        ctype="float",
        weights=site.place(1),
        left=lambda e, _: widened(site, site.inputs[0].tensor, e),
        right=lambda e, _: widened(site, site.inputs[1].tensor, e),
        start=lambda ch: widened(site, bias.tensor, f"{bias.pointer}[{ch}]") if bias else "0.0f",
        store=lambda s, _: narrowed(site, activated(site, activation_of(site), s)),
    )


def _dynamic(site: Site, op: DynamicProduct) -> Sums:
    """`scale` and `zero` are those of the item at hand."""
    scales, bias = site.place(2), site.place(3)
    taps = site.inputs[1].tensor.size // max(1, site.inputs[1].tensor.shape[0])

    def store(total: str, ch: Expr) -> str:
        factor = f"{scales.pointer}[{ch}]"
        scaled = f"(float){total} * {factor} * scale" if op.in_turn else f"(float){total} * (scale * {factor})"
        return narrowed(site, activated(site, activation_of(site), f"{scaled} + {bias.pointer}[{ch}]"))

    return Sums(
        ctype="int32_t" if taps * 255 * 128 < 1 << 31 else "int64_t",
        weights=site.place(1),
        left=lambda e, _: f"({e} - zero)" if op.asymmetric else e,
        right=lambda e, _: e,
        start=lambda ch: "0",
        store=store,
    )


def _bias(site: Site) -> Place | None:
    return site.place(2) if len(site.inputs) > 2 else None


def _plain(site: Site) -> Sums | None:
    """Integers that stand for themselves; sums keep 64 bits until they are stored."""
    activation, bias = activation_of(site), _bias(site)
    if not isinstance(activation, Clamp | None):
        return None

    def store(total: str, _: Expr) -> str:
        if isinstance(activation, Clamp):
            info = np.iinfo(np.int64)
            if activation.low > info.min:
                total = f"({total} > {int(activation.low)} ? {total} : {int(activation.low)})"
            if activation.high < info.max:
                total = f"({total} < {int(activation.high)} ? {total} : {int(activation.high)})"
        return f"({site.output.ctype}){total}"

    return Sums(
        ctype="int64_t",
        weights=site.place(1),
        left=lambda e, _: e,
        right=lambda e, _: e,
        start=lambda ch: _integer_bias(bias, ch, "int64_t"),
        store=store,
    )


def _integer_bias(bias: Place | None, channel: Expr, ctype: str) -> str:
    if bias is None:
        return "0"
    element = f"{bias.pointer}[{channel}]"
    return f"({ctype}){element}" if bias.tensor.dtype is DType.INT64 and ctype == "int32_t" else element


def _integers(
    site: Site, store: Callable[[str, Expr], str], with_bias: bool = True, ctype: str | None = None
) -> Sums:
    """Sums of stored integers less their zero points."""
    x, w = site.inputs[0].tensor, site.inputs[1].tensor
    bias = _bias(site) if with_bias else None
    assert x.quant is not None
    zeros = per_channel(site, np.array(w.quant.zero if w.quant else (0,), np.int32), "zero points of the weights")
    has_zeros = w.quant is not None and any(w.quant.zero)
    kind = ctype or sum_type(site)
    return Sums(
        ctype=kind,
        weights=site.place(1),
        left=lambda e, _: _minus(e, zero_of(x)),
        right=lambda e, ch: f"({e} - {zeros(ch)})" if has_zeros else e,
        start=lambda ch: _integer_bias(bias, ch, kind),
        store=store,
    )


def _weights_operand(site: Site) -> Operand:
    tensor = site.inputs[1].tensor
    return Operand(np.empty(0), Region.whole(tensor.shape), tensor)


def _tflite(site: Site) -> Sums:
    """A convolution multiplies in fixed point, rounding twice; a dense layer in double, rounding once."""
    site.use("fixed")
    x = site.inputs[0].tensor
    if isinstance(site.op, Dense) and site.options.rounding is Rounding.REFERENCE:
        scales = per_channel(site, channel_scales(x, _weights_operand(site), site.result), "scales")
        return _integers(site, lambda s, ch: _placed(site, f"ew_round_away((double){s} * {scales(ch)})"))
    bias_type = site.inputs[2].tensor.dtype if len(site.inputs) > 2 else None
    if x.dtype is DType.INT16 and bias_type is not DType.INT32:
        factors, powers = _wide_factors(site)
        return _integers(
            site,
            lambda s, ch: _placed(site, f"ew_multiply_wide({s}, {factors(ch)}, {powers(ch)})"),
            ctype="int64_t",
        )
    factors, powers = _factors(site)
    kept = "" if sum_type(site) == "int32_t" else "(int32_t)"
    return _integers(site, lambda s, ch: _placed(site, f"ew_multiply({kept}{s}, {factors(ch)}, {powers(ch)})"))


def _factors(site: Site) -> tuple[Callable[[Expr], str], Callable[[Expr], str]]:
    x, w = site.inputs[0].tensor, site.inputs[1].tensor
    if x.dtype is DType.UINT8:  # one scale for all channels, combined in float32
        factor, power = quantize_multiplier(float(scale(x) * scale(w)) / float(scale(site.result)))
        multipliers, shifts = np.array([factor]), np.array([power])
    else:
        multipliers, shifts = channel_multipliers(x, _weights_operand(site), site.result)
    return (
        per_channel(site, multipliers.astype(np.int32), "multipliers"),
        per_channel(site, shifts.astype(np.int8), "shifts"),
    )


def _wide_factors(site: Site) -> tuple[Callable[[Expr], str], Callable[[Expr], str]]:
    """Multipliers of 15 bits, and shifts to the right."""
    multipliers, shifts = channel_multipliers(site.inputs[0].tensor, _weights_operand(site), site.result)
    narrow = np.where(multipliers < 0x7FFF0000, (multipliers + (1 << 15)) >> 16, 0x7FFF)
    return (
        per_channel(site, narrow.astype(np.int16), "multipliers"),
        per_channel(site, (15 - shifts).astype(np.int8), "shifts"),
    )


def _placed(site: Site, steps: str) -> str:
    low, high = activation_range(activation_of(site), site.result)
    return f"({site.output.ctype})ew_placed({steps}, {zero_of(site.result)}, {low}, {high})"


def _onnx(site: Site) -> Sums:
    """Integer sums, one float32 multiplication, rounded half to even; other activations than clamps before rounding."""
    x, w = site.inputs[0].tensor, site.inputs[1].tensor
    activation = activation_of(site)
    assert x.quant is not None and w.quant is not None
    scales = np.float32(x.quant.scale[0]) * np.array(w.quant.scale, np.float32)
    if not isinstance(activation, Clamp | None):
        return _activated_onnx(site, scales, activation)
    if site.result.quant is None:
        factors = per_channel(site, scales, "scales")
        return _integers(
            site, lambda s, ch: narrowed(site, activated(site, activation, f"(float){s} * {factors(ch)}"))
        )
    ratios = per_channel(site, scales / np.float32(site.result.quant.scale[0]), "scales")
    return _integers(site, lambda s, ch: rounded_even(site, f"(float){s} * {ratios(ch)}", activation))


def _activated_onnx(site: Site, scales: Array, activation: Activation) -> Sums:
    """Real numbers go through the activation: the bias, with a scale of its own perhaps, joins them there."""
    factors = per_channel(site, scales, "scales")
    bias = _real_bias(site, scales)

    def store(total: str, ch: Expr) -> str:
        real = f"(float){total} * {factors(ch)}" + (f" + {bias(ch)}" if bias else "")
        return stored_even(site, real, activation)

    return _integers(site, store, with_bias=False)


def _real_bias(site: Site, scales: Array) -> Callable[[Expr], str] | None:
    if len(site.inputs) < 3:
        return None
    tensor = site.inputs[2].tensor
    values = site.network.constants[tensor.name]
    if tensor.quant is not None:
        centred = values.astype(np.int64) - np.array(tensor.quant.zero)
        return per_channel(site, centred.astype(np.float32) * np.array(tensor.quant.scale, np.float32), "bias")
    if tensor.dtype is DType.INT32:
        return per_channel(site, values.astype(np.float32) * scales, "bias")
    return per_channel(site, values.astype(np.float32), "bias")


def _between_scales(site: Site) -> Sums:
    """Real numbers throughout: of each element read, and back when it is stored."""
    bias = _real_bias(site, np.ones(1, np.float32))
    return Sums(
        ctype="float",
        weights=site.place(1),
        left=real_element(site, 0),
        right=real_element(site, 1),
        start=lambda ch: bias(ch) if bias else "0.0f",
        store=lambda total, _: stored_even(site, total, activation_of(site)),
    )
