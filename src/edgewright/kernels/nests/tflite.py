"""Quantised operators that go element by element in TFLite's arithmetic, bit for bit as LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...network import Arithmetic, DType
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_functions import function_of, input_factor, sigmoid_table, wide_table
from ...network.kernels.tflite_scales import activation_range, scale, zero
from ...network.operators import Activation, Binary, BinaryKind, Clamp, LeakyRelu, Unary, UnaryKind
from ..call import Call as Site
from ..printing.constants import number
from ..printing.source import Source
from .values import World, named, reader, walk, writer

Formula = Callable[[Sequence[str]], str]  # C expressions of the stored inputs -> that of the stored output


def applies(site: Site) -> bool:
    """Whether TFLite's rules for stored integers are the ones to follow."""
    return site.is_quantised and site.arithmetic is Arithmetic.TFLITE


def each(site: Site, c: Source, formula: Formula) -> bool:
    """The formula of every element, in the step's order."""
    streams = [*(reader(site, i, World.RAW) for i in range(len(site.inputs))), writer(site, World.RAW)]
    with named(site, c, streams) as (*read, y), walk(site, c, site.region, [*read, y]) as offsets:
        y.store(c, formula([x.value(at) for x, at in zip(read, offsets, strict=False)]), offsets[-1])
    return True


def centred(site: Site, which: int, element: str) -> str:
    """A stored integer less its zero point."""
    offset = zero(site.inputs[which].tensor)
    return element if offset == 0 else f"({element} {'-' if offset > 0 else '+'} {abs(offset)})"


def scaled(site: Site, value: str, ratio: float | np.float32) -> str:
    """value * ratio in fixed point."""
    site.use("fixed")
    factor, shift = quantize_multiplier(ratio)
    return f"ew_multiply({value}, {factor}, {shift})"


def placed(site: Site, steps: str, activation: Activation | None = None) -> str:
    """Steps of the output's scale as stored: zero point added, kept in the range of type and activation."""
    site.use("fixed")
    low, high = activation_range(activation, site.result)
    return f"({site.output.ctype})ew_placed({steps}, {zero(site.result)}, {low}, {high})"


def binary(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Binary)
    if not applies(site):
        return False
    match op.kind:
        case BinaryKind.MIN:
            return each(site, c, lambda v: f"{v[0]} < {v[1]} ? {v[0]} : {v[1]}")
        case BinaryKind.MAX:
            return each(site, c, lambda v: f"{v[0]} > {v[1]} ? {v[0]} : {v[1]}")
        case _:
            return each(site, c, lambda v: placed(site, _steps(site, op.kind, v), op.activation))


def _steps(site: Site, kind: BinaryKind, v: Sequence[str]) -> str:
    """Two stored numbers combined, in steps of the output's scale."""
    a, b = (centred(site, which, element) for which, element in enumerate(v))
    sa, sb, sy = (scale(tensor) for tensor in (*(place.tensor for place in site.inputs), site.result))
    match kind:
        case BinaryKind.ADD | BinaryKind.SUB:
            left = 15 if site.result.dtype is DType.INT16 else 20
            x, y, twice = _common(site, a, b, left)
            sign = "+" if kind is BinaryKind.ADD else "-"
            return scaled(site, f"{x} {sign} {y}", twice / (float(1 << left) * float(sy)))
        case BinaryKind.MUL:
            return scaled(site, f"{a} * {b}", sa * sb / sy)
        case BinaryKind.SQUARED_DIFFERENCE:
            x, y, twice = _common(site, a, b, 7)
            site.use("tflite_square")
            return scaled(site, f"ew_squared({x} - {y})", twice * twice / ((1 << 14) * float(sy)))
        case BinaryKind.DIV:
            site.use("tflite_divide")
            factor, shift = quantize_multiplier(sa / (sb * sy))
            return f"ew_quotient({a}, {b}, {factor}, {shift})"
        case _:
            raise AssertionError(f"TFLite has no integer kernel for {kind}")


def _common(site: Site, a: str, b: str, left: int) -> tuple[str, str, float]:
    """Both operands in steps of half the finer common scale, shifted to the left; and that scale, doubled."""
    scales = [float(scale(place.tensor)) for place in site.inputs]
    twice = 2.0 * max(scales)
    x, y = (scaled(site, f"{e} * {1 << left}", s / twice) for e, s in zip((a, b), scales, strict=True))
    return x, y, twice


def activation(site: Site, c: Source) -> bool:
    """16-bit numbers: those of eight bits are looked up."""
    if not applies(site):
        return False
    formula = _function(site)
    return formula is not None and each(site, c, lambda v: formula(v[0]))


def _function(site: Site) -> Callable[[str], str] | None:
    x, op = site.inputs[0].tensor, site.op
    ratio = scale(x) / scale(site.result)
    match op:
        case Clamp():
            return lambda e: placed(site, scaled(site, centred(site, 0, e), ratio), op)
        case LeakyRelu(alpha):
            sloped = scale(x) * np.float32(alpha) / scale(site.result)
            return lambda e: _two_slopes(site, centred(site, 0, e), ratio, centred(site, 0, e), sloped)
        case Unary(UnaryKind.ABS):
            return lambda e: placed(site, _size(site, e, ratio))
        case Unary(UnaryKind.SIGMOID | UnaryKind.TANH as kind):
            return lambda e: _by_sigmoid(site, e, kind)
        case Unary(kind):
            site.use("tflite_wide")
            values = wide_table(x, site.result, function_of(kind, site.result)).astype(np.int16)
            table = site.unit.constants.add(values, f"{site.layer.name}: {kind.value}")
            return lambda e: f"ew_interpolated({e}, {table})"
        case _:
            return None


def _two_slopes(site: Site, value: str, ratio: np.float32, below: str, sloped: np.float32) -> str:
    """One ratio for what is not negative, another for what is."""
    return placed(site, f"{value} >= 0 ? {scaled(site, value, ratio)} : {scaled(site, below, sloped)}")


def _size(site: Site, element: str, ratio: np.float32) -> str:
    site.use("tflite_square")
    size = f"ew_size({centred(site, 0, element)})"
    return size if ratio == 1 else scaled(site, size, ratio)


def _by_sigmoid(site: Site, element: str, kind: UnaryKind) -> str:
    site.use("tflite_wide")
    table = site.unit.constants.add(sigmoid_table().astype(np.uint16), "sigmoid(i / 24)")
    factor, shift = input_factor(site.inputs[0].tensor, 0 if kind is UnaryKind.SIGMOID else 1)
    return f"ew_wide_{kind.value}(ew_wide_scaled({element}, {factor}, {shift}), {table})"


def prelu(site: Site, c: Source) -> bool:
    if not applies(site):
        return False
    sx, slope = (scale(place.tensor) for place in site.inputs)
    ratio, sloped = sx / scale(site.result), sx * slope / scale(site.result)

    def formula(v: Sequence[str]) -> str:
        x = centred(site, 0, v[0])
        return _two_slopes(site, x, ratio, f"{x} * {centred(site, 1, v[1])}", sloped)

    return each(site, c, formula)


def quantize(site: Site, c: Source) -> bool:
    """Real numbers to stored ones, or stored ones to another scale or type."""
    if not applies(site):
        return False
    x = site.inputs[0].tensor
    if not x.dtype.is_float:
        ratio = float(scale(x)) / float(scale(site.result))
        return each(site, c, lambda v: placed(site, scaled(site, centred(site, 0, v[0]), ratio)))
    step = number(scale(site.result))
    return each(site, c, lambda v: placed(site, f"ew_round_away_float({_wide(site, v[0])} / {step})"))


def _wide(site: Site, element: str) -> str:
    if site.inputs[0].tensor.dtype is DType.FLOAT32:
        return element
    site.use("half")
    return f"ew_from_half({element})"


def dequantize(site: Site, c: Source) -> bool:
    """Integers of 16 bits and less are exact as floats, so that one product rounds as the reference's in double."""
    x = site.inputs[0].tensor
    if not applies(site) or x.dtype.bytes > 2 or x.dtype.is_float or site.result.dtype is not DType.FLOAT32:
        return False
    step = number(scale(x))
    return each(site, c, lambda v: f"(float){centred(site, 0, v[0])} * {step}")
