"""Sums of products in every arithmetic: operands, initial value, and conversion to the output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...network import Arithmetic, Array, DType, Region
from ...network.kernels import Operand
from ...network.kernels.tflite_scales import channel_multipliers, channel_scales, multiplier
from ...network.operators import Activation, Clamp, Dense, DynamicProduct, MatMul
from ...program.options import Rounding
from ..call import CCall, CTensor
from ..printing.source import Expr
from ..site import Site
from .activations import activated
from .finish import (
    Element,
    less_zero,
    narrowed,
    per_channel,
    real_element,
    rounded_even,
    stored_even,
    sum_type,
    widened,
    zero_of,
)
from .tflite import placed


@dataclass(frozen=True)
class Accumulator:
    ctype: str  # in which products are summed
    place: Callable[[], CTensor]  # of the weights, which it puts into flash as they are
    left: Element
    right: Element
    start: Callable[[Expr], str]  # of an output channel's sum
    store: Callable[[str, Expr], str]  # (sum, output channel) -> the element as stored

    @cached_property
    def weights(self) -> CTensor:
        """The weights, stored in flash when first asked for; code that only finishes sums needs none."""
        return self.place()

    def product(self, x: str, w: str, channel: Expr) -> str:
        wide = "(int64_t)" if self.ctype == "int64_t" else ""
        return f"{wide}{self.left(x, channel)} * {self.right(w, channel)}"


def can_accumulate(site: Site) -> bool:
    """Whether there is such a layer in the layer's arithmetic."""
    if site.dynamic is not None:
        return True
    return site.is_quantised or site.result.dtype.is_float or isinstance(site.activation, Clamp | None)


def accumulator_type(site: Site) -> str:
    """The C type in which products are summed."""
    if site.dynamic is not None:
        weights = site.inputs[1].tensor
        taps = weights.size // max(1, weights.shape[0])
        return "int32_t" if taps * 255 * 128 < 1 << 31 else "int64_t"
    if not site.is_quantised:
        return "float" if site.result.dtype.is_float else "int64_t"
    if site.arithmetic is Arithmetic.TFLITE:
        return "int64_t" if _is_wide(site) else sum_type(site)
    return sum_type(site) if _has_integers(site) else "float"


def accumulator(call: CCall) -> Accumulator:
    """How the layer's products are summed and stored."""
    assert can_accumulate(call), call.layer
    if call.dynamic is not None:
        return _dynamic(call, call.dynamic)
    if not call.is_quantised:
        return _real(call) if call.result.dtype.is_float else _plain(call)
    if call.arithmetic is Arithmetic.TFLITE:
        return _tflite(call)
    return _onnx(call) if _has_integers(call) else _between_scales(call)


def plain_sums(call: CCall) -> Accumulator:
    """Sums of products of stored integers, left as they are: 32 bits, in which they are known to fit."""
    kept = "" if accumulator_type(call) == "int32_t" else "(int32_t)"
    return _integers(call, lambda total, _: f"{kept}{total}", with_bias=False)


def _has_integers(site: Site) -> bool:
    """Whether stored integers are multiplied, each with a scale."""
    tensors = (site.inputs[0].tensor, site.inputs[1].tensor)
    return all(t.quant is not None and not t.dtype.is_float for t in tensors)


def _rounds_once(site: Site) -> bool:
    """Whether sums are multiplied in double (TFLite's reference, dense layers)."""
    return isinstance(site.op, Dense) and site.options.rounding is Rounding.REFERENCE


def _is_wide(site: Site) -> bool:
    """Whether TFLite sums up in 64 bits: inputs of 16 without a bias of 32."""
    bias = site.inputs[2].tensor.dtype if len(site.inputs) > 2 else None
    return site.inputs[0].tensor.dtype is DType.INT16 and bias is not DType.INT32 and not _rounds_once(site)


def _real(call: CCall) -> Accumulator:
    bias = _bias(call)
    return Accumulator(
        ctype="float",
        place=lambda: call.place(1),
        left=lambda e, _: widened(call, call.inputs[0].tensor, e),
        right=lambda e, _: widened(call, call.inputs[1].tensor, e),
        start=lambda ch: widened(call, bias.tensor, f"{bias.pointer}[{ch}]") if bias else "0.0f",
        store=lambda s, _: narrowed(call, activated(call, call.activation, s)),
    )


def _dynamic(call: CCall, op: DynamicProduct) -> Accumulator:
    """Inputs quantised at run time: `scale` and `zero` are C variables of the current item of the batch."""
    scales, bias = call.place(2), call.place(3)

    def store(total: str, ch: Expr) -> str:
        factor = f"{scales.pointer}[{ch}]"
        scaled = f"(float){total} * {factor} * scale" if op.in_turn else f"(float){total} * (scale * {factor})"
        return narrowed(call, activated(call, call.activation, f"{scaled} + {bias.pointer}[{ch}]"))

    return Accumulator(
        ctype=accumulator_type(call),
        place=lambda: call.place(1),
        left=lambda e, _: f"({e} - zero)" if op.asymmetric else e,
        right=lambda e, _: e,
        start=lambda _: "0",
        store=store,
    )


def _bias(call: CCall) -> CTensor | None:
    return call.place(2) if len(call.inputs) > 2 else None


def _plain(call: CCall) -> Accumulator:
    """Integers without a scale. Sums are kept in 64 bits until they are stored."""
    activation, bias = call.activation, _bias(call)

    def store(total: str, _: Expr) -> str:
        if isinstance(activation, Clamp):
            info = np.iinfo(np.int64)
            if activation.low > info.min:
                total = f"({total} > {int(activation.low)} ? {total} : {int(activation.low)})"
            if activation.high < info.max:
                total = f"({total} < {int(activation.high)} ? {total} : {int(activation.high)})"
        return f"({call.output.ctype}){total}"

    return Accumulator(
        ctype="int64_t",
        place=lambda: call.place(1),
        left=lambda e, _: e,
        right=lambda e, _: e,
        start=lambda ch: _integer_bias(bias, ch, "int64_t"),
        store=store,
    )


def _integer_bias(bias: CTensor | None, channel: Expr, ctype: str) -> str:
    if bias is None:
        return "0"
    element = f"{bias.pointer}[{channel}]"
    return f"({ctype}){element}" if bias.tensor.dtype is DType.INT64 and ctype == "int32_t" else element


def _integers(call: CCall, store: Callable[[str, Expr], str], with_bias: bool = True) -> Accumulator:
    """Sums of stored integers less their zero points."""
    x, w = call.inputs[0].tensor, call.inputs[1].tensor
    bias = _bias(call) if with_bias else None
    zeros = per_channel(call, np.array(w.quant.zero if w.quant else (0,), np.int32), "zero points of the weights")
    has_zeros = w.quant is not None and any(w.quant.zero)
    kind = accumulator_type(call)
    return Accumulator(
        ctype=kind,
        place=lambda: call.place(1),
        left=lambda e, _: less_zero(e, zero_of(x)),
        right=lambda e, ch: f"({e} - {zeros(ch)})" if has_zeros else e,
        start=lambda ch: _integer_bias(bias, ch, kind),
        store=store,
    )


def _weights_operand(site: Site) -> Operand:
    tensor = site.inputs[1].tensor
    return Operand(np.empty(0), Region.whole(tensor.shape), tensor)


def _tflite(call: CCall) -> Accumulator:
    """A convolution multiplies in fixed point, rounding twice; a dense layer in double, rounding once."""
    call.use("fixed")
    x = call.inputs[0].tensor
    if _rounds_once(call):
        scales = per_channel(call, channel_scales(x, _weights_operand(call), call.result), "scales")
        return _integers(
            call, lambda s, ch: placed(call, f"ew_round_away((double){s} * {scales(ch)})", call.activation)
        )
    factors, powers = _factors(call)
    multiply = "ew_multiply_wide" if _is_wide(call) else "ew_multiply"
    kept = "" if _is_wide(call) or sum_type(call) == "int32_t" else "(int32_t)"

    def store(total: str, ch: Expr) -> str:
        return placed(call, f"{multiply}({kept}{total}, {factors(ch)}, {powers(ch)})", call.activation)

    return _integers(call, store)


def _multipliers(call: CCall) -> tuple[Array, Array]:
    """TFLite's multipliers of 31 bits, for each channel or one for all, with their shifts to the left."""
    x, w = call.inputs[0].tensor, call.inputs[1].tensor
    if x.dtype is DType.UINT8 or isinstance(call.op, MatMul):
        factor, power = multiplier(x, w, call.result)
        return np.array([factor]), np.array([power])
    return channel_multipliers(x, _weights_operand(call), call.result)


def _factors(call: CCall) -> tuple[Callable[[Expr], str], Callable[[Expr], str]]:
    """Multipliers and shifts as C: of sums of 64 bits 15 bits each, and to the right."""
    multipliers, shifts = _multipliers(call)
    stored = multipliers.astype(np.int32)
    if _is_wide(call):
        narrow = np.where(multipliers < 0x7FFF0000, (multipliers + (1 << 15)) >> 16, 0x7FFF)
        stored, shifts = narrow.astype(np.int16), 15 - shifts
    return per_channel(call, stored, "multipliers"), per_channel(call, shifts.astype(np.int8), "shifts")


def _onnx(call: CCall) -> Accumulator:
    """Integer sums, one float32 multiplication, rounded half to even; other activations than clamps before rounding."""
    x, w = call.inputs[0].tensor, call.inputs[1].tensor
    activation = call.activation
    assert x.quant is not None and w.quant is not None
    scales = np.float32(x.quant.scale[0]) * np.array(w.quant.scale, np.float32)
    if not isinstance(activation, Clamp | None):
        return _activated_onnx(call, scales, activation)
    if call.result.quant is None:
        factors = per_channel(call, scales, "scales")
        return _integers(call, lambda s, ch: narrowed(call, activated(call, activation, f"(float){s} * {factors(ch)}")))
    ratios = per_channel(call, scales / np.float32(call.result.quant.scale[0]), "scales")
    return _integers(call, lambda s, ch: rounded_even(call, f"(float){s} * {ratios(ch)}", activation))


def _activated_onnx(call: CCall, scales: Array, activation: Activation) -> Accumulator:
    """Real numbers go through the activation: the bias, with a scale of its own perhaps, joins them there."""
    factors = per_channel(call, scales, "scales")
    bias = _real_bias(call, scales)

    def store(total: str, ch: Expr) -> str:
        real = f"(float){total} * {factors(ch)}" + (f" + {bias(ch)}" if bias else "")
        return stored_even(call, real, activation)

    return _integers(call, store, with_bias=False)


def _real_bias(call: CCall, scales: Array) -> Callable[[Expr], str] | None:
    if len(call.inputs) < 3:
        return None
    tensor = call.inputs[2].tensor
    values = call.network.constants[tensor.name]
    if tensor.quant is not None:
        centred = values.astype(np.int64) - np.array(tensor.quant.zero)
        return per_channel(call, centred.astype(np.float32) * np.array(tensor.quant.scale, np.float32), "bias")
    if tensor.dtype is DType.INT32:
        return per_channel(call, values.astype(np.float32) * scales, "bias")
    return per_channel(call, values.astype(np.float32), "bias")


def _between_scales(call: CCall) -> Accumulator:
    """Computation in real numbers: each element is dequantised when read, and the result is quantised when stored."""
    bias = _real_bias(call, np.ones(1, np.float32))
    return Accumulator(
        ctype="float",
        place=lambda: call.place(1),
        left=real_element(call, 0),
        right=real_element(call, 1),
        start=lambda ch: bias(ch) if bias else "0.0f",
        store=lambda total, _: stored_even(call, total, call.activation),
    )
