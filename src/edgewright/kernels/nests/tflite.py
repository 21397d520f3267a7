"""Quantised operators that go element by element in TFLite's arithmetic, bit for bit as LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...network import Arithmetic, DType
from ...network import operators as ops
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_functions import FUNCTIONS, function_of, input_factor, sigmoid_table, wide_table
from ...network.kernels.tflite_scales import activation_range, scale, zero
from ..call import CCall
from ..cost.elements import in_loops
from ..kernel import Kernel, Offer, where
from ..printing.constants import number
from ..printing.source import CWriter
from ..site import Site
from .finish import less_zero, widened
from .values import ComputeType, write_each

# Functions of 16-bit numbers.
_WIDE = (*FUNCTIONS, *(ops.UnaryKind[name] for name in ("ABS", "LOG", "RSQRT", "SQRT")))


def applies(site: Site) -> bool:
    """Whether TFLite's rules for stored integers are the ones to follow."""
    return site.is_quantised and site.arithmetic is Arithmetic.TFLITE


def centred(call: CCall, which: int, element: str) -> str:
    """An element of input `which` less its zero point."""
    return less_zero(element, zero(call.inputs[which].tensor))


def scaled(call: CCall, value: str, ratio: float | np.float32) -> str:
    """value * ratio in fixed point."""
    call.use("fixed")
    factor, shift = quantize_multiplier(ratio)
    return f"ew_multiply({value}, {factor}, {shift})"


def placed(call: CCall, steps: str, activation: ops.Activation | None = None) -> str:
    """Steps of the output's scale as stored: zero point added, kept in the range of type and activation."""
    call.use("fixed")
    low, high = activation_range(activation, call.result)
    return f"({call.output.ctype})ew_placed({steps}, {zero(call.result)}, {low}, {high})"


def suits_binary(site: Site) -> bool:
    op = site.op_as(ops.Binary)
    return applies(site) and op.kind is not ops.BinaryKind.POW


def write_binary(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(ops.Binary)
    write_each(call, c, ComputeType.RAW, lambda v: _combined(call, op, v))


def _combined(call: CCall, op: ops.Binary, v: Sequence[str]) -> str:
    """Two stored numbers combined, as stored."""
    match op.kind:
        case ops.BinaryKind.MIN:
            return f"{v[0]} < {v[1]} ? {v[0]} : {v[1]}"
        case ops.BinaryKind.MAX:
            return f"{v[0]} > {v[1]} ? {v[0]} : {v[1]}"
        case kind:
            return placed(call, _steps(call, kind, v), op.activation)


def _steps(call: CCall, kind: ops.BinaryKind, v: Sequence[str]) -> str:
    """Two stored numbers combined, in steps of the output's scale."""
    a, b = (centred(call, which, element) for which, element in enumerate(v))
    sa, sb, sy = (scale(tensor) for tensor in call.tensors)
    match kind:
        case ops.BinaryKind.ADD | ops.BinaryKind.SUB:
            left = 15 if call.result.dtype is DType.INT16 else 20
            x, y, twice = _common(call, a, b, left)
            sign = "+" if kind is ops.BinaryKind.ADD else "-"
            return scaled(call, f"{x} {sign} {y}", twice / (float(1 << left) * float(sy)))
        case ops.BinaryKind.MUL:
            return scaled(call, f"{a} * {b}", sa * sb / sy)
        case ops.BinaryKind.SQUARED_DIFFERENCE:
            x, y, twice = _common(call, a, b, 7)
            call.use("tflite_square")
            return scaled(call, f"ew_squared({x} - {y})", twice * twice / ((1 << 14) * float(sy)))
        case ops.BinaryKind.DIV:
            call.use("tflite_divide")
            factor, shift = quantize_multiplier(sa / (sb * sy))
            return f"ew_quotient({a}, {b}, {factor}, {shift})"
        case _:
            raise AssertionError(f"TFLite has no integer kernel for {kind}")


def _common(call: CCall, a: str, b: str, left: int) -> tuple[str, str, float]:
    """Both operands in steps of half the finer common scale, shifted to the left; and that scale, doubled."""
    scales = [float(scale(place.tensor)) for place in call.inputs]
    twice = 2.0 * max(scales)
    x, y = (scaled(call, f"{e} * {1 << left}", s / twice) for e, s in zip((a, b), scales, strict=True))
    return x, y, twice


def suits_activation(site: Site) -> bool:
    """16-bit numbers: those of eight bits are looked up."""
    is_wide = isinstance(site.op, ops.Clamp | ops.LeakyRelu) or (
        isinstance(site.op, ops.Unary) and site.op.kind in _WIDE
    )
    return applies(site) and is_wide


def write_activation(call: CCall, _: Offer, c: CWriter) -> None:
    function = _function(call)
    write_each(call, c, ComputeType.RAW, lambda v: function(v[0]))


def _function(call: CCall) -> Callable[[str], str]:
    """C of a stored input -> C of the stored output."""
    x, op = call.inputs[0].tensor, call.op
    ratio = scale(x) / scale(call.result)
    match op:
        case ops.Clamp():
            return lambda e: placed(call, scaled(call, centred(call, 0, e), ratio), op)
        case ops.LeakyRelu(alpha):
            sloped = scale(x) * np.float32(alpha) / scale(call.result)
            return lambda e: _two_slopes(call, centred(call, 0, e), ratio, centred(call, 0, e), sloped)
        case ops.Unary(ops.UnaryKind.ABS):
            return lambda e: placed(call, _size(call, e, ratio))
        case ops.Unary(ops.UnaryKind.SQRT):  # steps are cut off, not rounded
            call.use("real")
            call.use("math_functions")
            size, step = number(scale(x)), number(scale(call.result))
            return lambda e: placed(call, f"ew_whole(sqrtf({size} * (float)ew_max({centred(call, 0, e)}, 0)) / {step})")
        case ops.Unary(ops.UnaryKind.SIGMOID | ops.UnaryKind.TANH as kind):
            return lambda e: _by_sigmoid(call, e, kind)
        case ops.Unary(kind):
            call.use("tflite_wide")
            values = wide_table(x, call.result, function_of(kind, call.result)).astype(np.int16)
            table = call.add(values, kind.value)
            return lambda e: f"ew_interpolated({e}, {table})"
        case _:
            raise AssertionError(f"TFLite has no 16-bit kernel for {op}")


def _two_slopes(call: CCall, value: str, ratio: np.float32, below: str, sloped: np.float32) -> str:
    """One ratio for what is not negative, another for what is."""
    return placed(call, f"{value} >= 0 ? {scaled(call, value, ratio)} : {scaled(call, below, sloped)}")


def _size(call: CCall, element: str, ratio: np.float32) -> str:
    call.use("tflite_square")
    size = f"ew_size({centred(call, 0, element)})"
    return size if ratio == 1 else scaled(call, size, ratio)


def _by_sigmoid(call: CCall, element: str, kind: ops.UnaryKind) -> str:
    call.use("tflite_wide")
    table = call.module.constants.add(sigmoid_table().astype(np.uint16), "sigmoid(i / 24)")
    factor, shift = input_factor(call.inputs[0].tensor, 0 if kind is ops.UnaryKind.SIGMOID else 1)
    return f"ew_wide_{kind.value}(ew_wide_scaled({element}, {factor}, {shift}), {table})"


def write_prelu(call: CCall, _: Offer, c: CWriter) -> None:
    sx, slope = (scale(place.tensor) for place in call.inputs)
    ratio, sloped = sx / scale(call.result), sx * slope / scale(call.result)

    def formula(v: Sequence[str]) -> str:
        x = centred(call, 0, v[0])
        return _two_slopes(call, x, ratio, f"{x} * {centred(call, 1, v[1])}", sloped)

    write_each(call, c, ComputeType.RAW, formula)


def write_quantize(call: CCall, _: Offer, c: CWriter) -> None:
    """Real numbers to stored ones, or stored ones to another scale or type."""
    x, step = call.inputs[0].tensor, scale(call.result)

    def steps(element: str) -> str:
        if x.dtype.is_float:
            return f"ew_round_away_float({widened(call, x, element)} / {number(step)})"
        return scaled(call, centred(call, 0, element), float(scale(x)) / float(step))

    write_each(call, c, ComputeType.RAW, lambda v: placed(call, steps(v[0])))


def suits_dequantize(site: Site) -> bool:
    """Integers of 16 bits and less are exact as floats, so that one product rounds as the reference's in double."""
    dtype = site.inputs[0].tensor.dtype
    is_exact = dtype.bytes <= 2 and not dtype.is_float and site.result.dtype is DType.FLOAT32
    return applies(site) and is_exact


def write_dequantize(call: CCall, _: Offer, c: CWriter) -> None:
    step = number(scale(call.inputs[0].tensor))
    write_each(call, c, ComputeType.RAW, lambda v: f"(float){centred(call, 0, v[0])} * {step}")


ACTIVATION = Kernel("activation_tflite", ops.ACTIVATIONS, where(suits_activation), write_activation)
PRELU = Kernel("prelu_tflite", (ops.PRelu,), where(applies), write_prelu)
BINARY = Kernel("binary_tflite", (ops.Binary,), where(suits_binary), write_binary, work=in_loops)
QUANTIZE = Kernel("quantize_tflite", (ops.Quantize,), where(applies), write_quantize)
DEQUANTIZE = Kernel("dequantize_tflite", (ops.Dequantize,), where(suits_dequantize), write_dequantize)
