"""Sums, means and global averages in partial sums: stored values are added as they are."""

from __future__ import annotations

from math import prod

from ...network import Arithmetic, DType
from ...network.kernels.tflite_lines import reduce_factor
from ...network.kernels.tflite_scales import zero
from ...network.operators import AvgPool2d, Reduce, ReduceKind
from ..call import CCall
from ..cost.products import add_mean_work, finish_mean_work
from ..kernel import SMALL, CallKind, Kernel, Offer, anywhere, where
from ..partial_layout import difference, partial_range, summed, summed_type, sums_place
from ..printing.constants import number
from ..printing.nest import Bounds, loops
from ..printing.source import CWriter, Expr, plus
from ..site import Site
from ..strided_tensor import StridedTensor
from .finish import narrowed
from .pools import is_scaled_once, mean_of, mean_type
from .reductions import is_pooled, pooled
from .tflite import placed
from .values import ComputeType, writer


def suits_pixels(site: Site) -> bool:
    """Bytes on small cores: the channels of all pixels along an axis at a time."""
    return _lies_by_pixels(site.inputs[0], max(summed(site)))


def write_pixels(call: CCall, _: Offer, c: CWriter) -> None:
    x, axis = call.inputs[0], max(summed(call))
    call.use("share_mean")
    spans = list(_spans(call))
    (low, high), (first, last) = spans[axis], spans[-1]
    spans[axis] = spans[-1] = (0, 1)
    kernel = "unsigned" if x.tensor.dtype is DType.UINT8 else "signed"
    with loops(c, spans) as at:
        start = [*at]
        start[axis], start[-1] = low, first
        sums = sums_place(call).address(_kept(call, start))
        count, channels = difference(low, high), difference(first, last)
        c.line(f"ew_share_{kernel}_pixels({x.address(start)}, {x.strides[axis]}, {count}, {channels}, {sums});")


def _lies_by_pixels(x: StridedTensor, axis: int) -> bool:
    """Whether elements are bytes, channels lie side by side, and pixels along the axis at one distance."""
    is_narrow = x.tensor.dtype in (DType.INT8, DType.UINT8) and x.strides[-1] == 1
    return is_narrow and axis < len(x.strides) - 1 and not (x.window and x.window[0] == axis)


def write_elements(call: CCall, _: Offer, c: CWriter) -> None:
    """Element by element, in the order of the input."""
    x = call.inputs[0]
    with c.block():
        c.line(f"const {x.ctype} *const px = {call.place(0).pointer};")
        place = sums_place(call)
        c.line(f"{summed_type(call)} *const ps = {place.pointer};")
        with loops(c, _spans(call)) as at:
            c.line(f"ps[{place.offset(_kept(call, at))}] += px[{x.offset(at)}];")


def _spans(call: CCall) -> Bounds:
    """What is read of the input along each axis: of those summed over the part, of the others the region."""
    axes, kept = summed(call), iter(call.region)
    found: list[tuple[Expr, Expr]] = []
    for axis in range(len(call.shapes[0])):
        if axis in axes:
            found.append(partial_range(call, axis))
            if _keeps(call):
                next(kept)
        else:
            found.append(next(kept))
    return found


def _kept(call: CCall, at: tuple[Expr, ...] | list[Expr]) -> tuple[Expr, ...]:
    """The indices of the output that an element of the input belongs to."""
    axes = summed(call)
    return tuple(0 if axis in axes else index for axis, index in enumerate(at) if _keeps(call) or axis not in axes)


def _keeps(site: Site) -> bool:
    """Whether axes that are summed over stay, with one index."""
    return not isinstance(site.op, Reduce) or site.op.keep


def has_mean(site: Site) -> bool:
    """Whether sums of what is stored, in 32 bits, make the mean."""
    if isinstance(site.op, AvgPool2d):
        return mean_type(site) == summed_type(site)
    return not site.is_quantised or site.arithmetic is Arithmetic.TFLITE or is_pooled(site)


def write_finish(call: CCall, _: Offer, c: CWriter) -> None:
    start, value = stored_mean(call)
    with c.block():
        place = sums_place(call)
        c.line(f"const {summed_type(call)} *const ps = {place.pointer};")
        c.line(f"{call.output.ctype} *const py = {call.output.pointer};")
        with loops(c, call.region) as at, c.block():
            c.line(f"const {summed_type(call)} total = {plus(f'ps[{place.offset(at)}]', start)};")
            if isinstance(call.op, AvgPool2d) and not is_scaled_once(call):
                c.line(f"const int32_t count = {summed_count(call)};")
            c.line(f"py[{call.output.offset(at)}] = {value};")


def summed_count(site: Site) -> int:
    """How many elements of the input a sum is made of."""
    return prod(site.shapes[0][axis] for axis in summed(site))


def stored_mean(call: CCall) -> tuple[int, str]:
    """(what is added to a sum, C of the `total` as the output stores it)."""
    op, x = call.op, call.inputs[0].tensor
    if isinstance(op, AvgPool2d):
        return 0, mean_of(call).stored
    assert isinstance(op, Reduce)
    if not call.is_quantised:
        mean = f"total / {number(summed_count(call))}" if op.kind is ReduceKind.MEAN else "total"
        return 0, narrowed(call, mean)
    if call.arithmetic is Arithmetic.TFLITE:
        call.use("fixed")
        factor, shift = reduce_factor(op, x, call.result)
        return -zero(x) * summed_count(call), placed(call, f"ew_multiply(total, {factor}, {shift})")
    fold = pooled(call, writer(call, ComputeType.REAL))
    return int(fold.start), fold.end


ADD_PIXELS = Kernel(
    "mean_add_pixels", (Reduce, AvgPool2d), where(suits_pixels), write_pixels, SMALL, CallKind.ADD, work=add_mean_work
)
ADD_ELEMENTS = Kernel(
    "mean_add_elements", (Reduce, AvgPool2d), anywhere, write_elements, kind=CallKind.ADD, work=add_mean_work
)
FINISH = Kernel(
    "mean_finish", (Reduce, AvgPool2d), where(has_mean), write_finish, kind=CallKind.FINISH, work=finish_mean_work
)
