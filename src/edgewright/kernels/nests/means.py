"""Sums, means and global averages share by share: stored values are added as they are."""

from __future__ import annotations

from math import prod

from ...network import Arithmetic, DType
from ...network.kernels.tflite_lines import reduce_factor
from ...network.kernels.tflite_scales import zero
from ...network.operators import AvgPool2d, Reduce, ReduceKind
from ...platform.target import Family
from ..call import Call as Site
from ..printing.constants import number
from ..printing.nest import Bounds, loops
from ..printing.source import Expr, Source, plus
from ..printing.tensor import CTensor as Place
from ..shares_form import difference, share_of, summed, summed_type, sums_place
from .finish import narrowed
from .pools import mean_of
from .reductions import is_pooled, pooled
from .tflite import placed
from .values import World, writer


def add_by_pixels(site: Site, c: Source) -> bool:
    """Bytes on small cores: the channels of all pixels along an axis at a time."""
    x, axis = site.inputs[0], max(summed(site))
    if site.target.family is Family.SIMD or not _lies_by_pixels(x, axis):
        return False
    site.use("share_mean")
    spans = list(_spans(site))
    (low, high), (first, last) = spans[axis], spans[-1]
    spans[axis] = spans[-1] = (0, 1)
    kernel = "unsigned" if x.tensor.dtype is DType.UINT8 else "signed"
    with loops(c, spans) as at:
        start = [*at]
        start[axis], start[-1] = low, first
        sums = sums_place(site).address(_kept(site, start))
        count, channels = difference(low, high), difference(first, last)
        c.line(f"ew_share_{kernel}_pixels({x.address(start)}, {x.strides[axis]}, {count}, {channels}, {sums});")
    return True


def _lies_by_pixels(x: Place, axis: int) -> bool:
    """Whether elements are bytes, channels lie side by side, and pixels along the axis at one distance."""
    is_narrow = x.tensor.dtype in (DType.INT8, DType.UINT8) and x.strides[-1] == 1
    return is_narrow and axis < len(x.strides) - 1 and not (x.window and x.window[0] == axis)


def add(site: Site, c: Source) -> bool:
    """Element by element, in the order of the input."""
    x = site.inputs[0]
    with c.block():
        c.line(f"const {x.ctype} *const px = {site.place(0).pointer};")
        place = sums_place(site)
        c.line(f"{summed_type(site)} *const ps = {place.pointer};")
        with loops(c, _spans(site)) as at:
            c.line(f"ps[{place.offset(_kept(site, at))}] += px[{x.offset(at)}];")
    return True


def _spans(site: Site) -> Bounds:
    """What is read of the input along each axis: of those summed over the share, of the others the region."""
    axes, kept = summed(site), iter(site.region)
    found: list[tuple[Expr, Expr]] = []
    for axis in range(len(site.shapes[0])):
        if axis in axes:
            found.append(share_of(site, axis))
            if _keeps(site):
                next(kept)
        else:
            found.append(next(kept))
    return found


def _kept(site: Site, at: tuple[Expr, ...] | list[Expr]) -> tuple[Expr, ...]:
    """The indices of the output that an element of the input belongs to."""
    axes = summed(site)
    return tuple(0 if axis in axes else index for axis, index in enumerate(at) if _keeps(site) or axis not in axes)


def _keeps(site: Site) -> bool:
    """Whether axes that are summed over stay, with one index."""
    return not isinstance(site.op, Reduce) or site.op.keep


def finish(site: Site, c: Source) -> bool:
    stored = _stored(site)
    if stored is None:
        return False
    start, value = stored
    with c.block():
        place = sums_place(site)
        c.line(f"const {summed_type(site)} *const ps = {place.pointer};")
        c.line(f"{site.output.ctype} *const py = {site.output.pointer};")
        with loops(c, site.region) as at, c.block():
            c.line(f"const {summed_type(site)} total = {plus(f'ps[{place.offset(at)}]', start)};")
            if isinstance(site.op, AvgPool2d):
                c.line(f"const int32_t count = {_count(site)};")
            c.line(f"py[{site.output.offset(at)}] = {value};")
    return True


def _count(site: Site) -> int:
    """Elements in a sum."""
    return prod(site.shapes[0][axis] for axis in summed(site))


def _stored(site: Site) -> tuple[int, str] | None:
    """(what is added to a sum, C of the `total` as the output stores it)."""
    op, x = site.op, site.inputs[0].tensor
    if isinstance(op, AvgPool2d):
        way = mean_of(site)
        return (0, way[2]("total")) if way and way[0] == summed_type(site) else None
    assert isinstance(op, Reduce)
    if not site.is_quantised:
        mean = f"total / {number(_count(site))}" if op.kind is ReduceKind.MEAN else "total"
        return 0, narrowed(site, mean)
    if site.arithmetic is Arithmetic.TFLITE:
        site.use("fixed")
        factor, shift = reduce_factor(op, x, site.result)
        return -zero(x) * _count(site), placed(site, f"ew_multiply(total, {factor}, {shift})")
    if not is_pooled(site, op):
        return None
    fold = pooled(site, op, writer(site, World.REAL))
    return int(fold.start), fold.end
