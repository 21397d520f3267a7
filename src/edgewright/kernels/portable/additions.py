"""int8 additions, for microcontrollers."""

from __future__ import annotations

from math import prod

from ...network import Arithmetic, DType
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_scales import activation_range, scale, zero
from ...network.operators import Binary, BinaryKind
from ..call import CCall
from ..kernel import SMALL, Kernel, Offer, where
from ..printing.nest import loops
from ..printing.source import CWriter, Fields, times
from ..site import Site, unwrap
from ..strided_tensor import StridedTensor

MOST_SHIFT = 21  # a zero point, shifted by this, leaves room for the sum in 32 bits


def suits(site: Site) -> bool:
    """A sum of two tensors of one shape that lie densely, or whose rows do."""
    op = site.op_as(Binary)
    return _adds_int8(site, op) and _axis(site) is not None and _fields(site, op) is not None


def _adds_int8(site: Site, op: Binary) -> bool:
    return (
        op.kind is BinaryKind.ADD
        and site.arithmetic is Arithmetic.TFLITE
        and all(t.dtype is DType.INT8 and t.shape == site.result.shape and t.quant is not None for t in site.tensors)
    )


def _axis(site: Site) -> int | None:
    """The first axis from which on all that a call computes lies side by side."""
    shape, places = site.result.shape, (*site.inputs, site.output)
    cut = [axis for axis, (size, bounds) in enumerate(zip(shape, site.bounds, strict=True)) if bounds != (0, size)]
    rolling = [place.window[0] + 1 for place in places if place.window]
    axes = range(max([*cut, *rolling], default=0), len(shape))
    return next((axis for axis in axes if all(_lies_side_by_side(place, axis) for place in places)), None)


def _lies_side_by_side(place: StridedTensor, axis: int) -> bool:
    """Whether elements follow each other without gaps along this axis and those behind it."""
    step = 1
    for size, stride in zip(reversed(place.tensor.shape[axis:]), reversed(place.strides[axis:]), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _coarser_first(site: Site) -> tuple[int, int]:
    """The inputs: the one of the larger scale, and the other."""
    a, b = (scale(place.tensor) for place in site.inputs)
    return (0, 1) if a >= b else (1, 0)


def _fields(site: Site, op: Binary) -> Fields | None:
    """The fields of `ew_add`; None where a multiplier is out of the kernel's reach."""
    a, b = (site.inputs[which].tensor for which in _coarser_first(site))
    twice = 2.0 * float(scale(a))
    finer = _rescale(float(scale(b)) / twice, 0)
    out = _rescale(twice / (float(1 << 20) * float(scale(site.result))), zero(site.result))
    if finer is None or out is None or out["shift"] == 0:
        return None
    low, high = activation_range(op.activation, site.result)
    zeros: Fields = {"zero_a": zero(a) * (1 << 19), "zero_b": zero(b) * (1 << 21)}
    return {**zeros, "b": finer, "out": out, "low": low, "high": high}


def _rescale(real: float, offset: int) -> Fields | None:
    """The fields of `ew_rescale`, with an offset that is added behind the shift."""
    multiplier, shift = quantize_multiplier(real)
    right = -shift
    if not 0 <= right <= MOST_SHIFT:
        return None
    half = ((1 << right) >> 1) + offset * (1 << right)
    return {"multiplier": multiplier, "shift": right, "half": half, "sign": -1 if right else 0}


def write(call: CCall, _: Offer, c: CWriter) -> None:
    axis, shape = unwrap(_axis(call)), call.result.shape
    inputs = [call.place(0), call.place(1)]
    places = (*(inputs[which] for which in _coarser_first(call)), call.output)
    call.use("add")
    table = call.module.table("ew_add", unwrap(_fields(call, call.op_as(Binary))))
    low, high = call.region[axis]
    count = high - low if isinstance(low, int) and isinstance(high, int) else f"({high} - {low})"
    inner = (low, *[0] * (len(shape) - axis - 1))
    with loops(c, call.region[:axis], "n", backward=call.is_backward) as at:
        pointers = ", ".join(place.address((*at, *inner)) for place in places)
        elements = times(count, prod(shape[axis + 1 :]))
        c.line(f"ew_add_int8(&{table}, {pointers}, {elements}, {int(call.is_backward)});")


ADD = Kernel("portable_add", (Binary,), where(suits), write, SMALL)
