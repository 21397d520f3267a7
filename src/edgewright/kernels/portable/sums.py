"""int8 additions, for microcontrollers; pooling and means are in `small_pools`."""

from __future__ import annotations

from math import prod

from ...network import Arithmetic, DType
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_scales import activation_range, scale, zero
from ...network.operators import Binary, BinaryKind
from ...platform.target import Family
from ..call import Call as Site
from ..printing.nest import Bounds, loops
from ..printing.source import Expr, Source, braced, times
from ..printing.tensor import CTensor as Place
from .pools import avg_pool2d, max_pool2d, reduce

__all__ = ["avg_pool2d", "binary", "max_pool2d", "reduce"]

MOST_SHIFT = 21  # a zero point, shifted by this, leaves room for the sum in 32 bits


def binary(site: Site, c: Source) -> bool:
    """A sum of two tensors of one shape that lie densely, or whose rows do."""
    op = site.op
    assert isinstance(op, Binary)
    spans = _spans(site) if _adds_int8(site, op) else None
    fields = _add_fields(site, op) if spans else None
    if spans is None or fields is None:
        return False
    site.use("add")
    table = site.unit.table("ew_add", fields)
    lead, inner, count = spans
    places = (*_coarser_first(site), site.output)
    with loops(c, lead, "n", backward=site.is_backward) as at:
        pointers = ", ".join(place.address((*at, *inner)) for place in places)
        c.line(f"ew_add_int8(&{table}, {pointers}, {count}, {int(site.is_backward)});")
    return True


def _coarser_first(site: Site) -> tuple[Place, Place]:
    a, b = site.place(0), site.place(1)
    return (a, b) if scale(a.tensor) >= scale(b.tensor) else (b, a)


def _adds_int8(site: Site, op: Binary) -> bool:
    tensors = [site.result, *(place.tensor for place in site.inputs)]
    return (
        site.target.family is not Family.SIMD
        and op.kind is BinaryKind.ADD
        and site.arithmetic is Arithmetic.TFLITE
        and all(t.dtype is DType.INT8 and t.shape == site.result.shape and t.quant is not None for t in tensors)
    )


def _spans(site: Site) -> tuple[Bounds, tuple[Expr, ...], Expr] | None:
    """(axes to go through, first index along each of the others, elements from there on that lie side by side)."""
    shape, places = site.result.shape, (*site.inputs, site.output)
    cut = [axis for axis, (size, bounds) in enumerate(zip(shape, site.region, strict=True)) if bounds != (0, size)]
    rolling = [place.window[0] + 1 for place in places if place.window]
    axes = range(max([*cut, *rolling], default=0), len(shape))
    axis = next((axis for axis in axes if all(_lies_side_by_side(place, axis) for place in places)), None)
    if axis is None:
        return None
    low, high = site.region[axis]
    count = high - low if isinstance(low, int) and isinstance(high, int) else f"({high} - {low})"
    inner = (low, *[0] * (len(shape) - axis - 1))
    return site.region[:axis], inner, times(count, prod(shape[axis + 1 :]))


def _lies_side_by_side(place: Place, axis: int) -> bool:
    """Whether elements follow each other without gaps along this axis and those behind it."""
    step = 1
    for size, stride in zip(reversed(place.tensor.shape[axis:]), reversed(place.strides[axis:]), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _add_fields(site: Site, op: Binary) -> list[Expr] | None:
    """The fields of `ew_add`; None where a multiplier is out of the kernel's reach."""
    a, b = (place.tensor for place in _coarser_first(site))
    twice = 2.0 * float(scale(a))
    finer = _rescale(float(scale(b)) / twice, 0)
    out = _rescale(twice / (float(1 << 20) * float(scale(site.result))), zero(site.result))
    if finer is None or out is None or out[1] == 0:
        return None
    ends = activation_range(op.activation, site.result)
    return [zero(a) * (1 << 19), zero(b) * (1 << 21), braced(finer), braced(out), *ends]


def _rescale(real: float, offset: int) -> tuple[int, int, int, int] | None:
    """The fields of `ew_rescale`, with an offset that is added behind the shift."""
    multiplier, shift = quantize_multiplier(real)
    right = -shift
    if not 0 <= right <= MOST_SHIFT:
        return None
    return multiplier, right, ((1 << right) >> 1) + offset * (1 << right), -1 if right else 0
