"""Shares of convolutions and dense layers tap by tap in plain C, and the end of their sums: small cores."""

from __future__ import annotations

import numpy as np

from ...network import Array, DType
from ...network.operators import Conv2d
from ...platform.target import Family
from ...program.shares import SUM_BYTES
from ..call import Call as Site
from ..printing.images import lies_by_pixels, part_pointer
from ..printing.nest import loops
from ..printing.source import Expr, Source, braced
from ..printing.tensor import CTensor as Place
from ..requantise.sums import requantised
from ..shares_form import form_of, share_of, sums_place, write_lines
from .blocked import product_fields

BLOCK = 4  # channels at a time without vectors
_KINDS = {DType.INT8: "signed", DType.UINT8: "unsigned", DType.FLOAT32: "real"}


def add_conv2d(site: Site, c: Source) -> bool:
    op, x, part = site.op, site.inputs[0], _part(site)
    assert isinstance(op, Conv2d)
    if part is None or not lies_by_pixels(x) or not lies_by_pixels(sums_place(site)):
        return False
    (first, _), (low, _) = part
    weights, tap = _weights(site, part), _tap(site)
    site.use("share_window", f"share_{tap}")
    name = site.unit.constants.add(weights, f"{site.layer.name}: weights of a share")
    table = site.unit.table(
        "ew_share_window", (name, f"ew_share_{tap}", *_window(site, op, weights), *_ends(site, part))
    )
    batch, rows, columns, _ = site.region
    with loops(c, [batch], "n") as (n,), c.block():
        where = part_pointer(site, c, (*rows, *columns))
        pointers = f"{x.address((n, 0, 0, low))}, {sums_place(site).address((n, 0, 0, first))}"
        c.line(f"ew_share_windows(&{table}, {pointers}, {where});")
    return True


def add_dense(site: Site, c: Source) -> bool:
    x, part = site.inputs[0], _part(site)
    if part is None or x.strides[-1] != 1 or sums_place(site).strides[-1] != 1:
        return False
    (first, last), (low, high) = part
    tap = _tap(site)
    site.use(f"share_{tap}")
    name = site.unit.constants.add(_weights(site, part), f"{site.layer.name}: weights of a share")
    with loops(c, site.region[:-1], "n") as at:
        source, sums = x.address((*at, low)), sums_place(site).address((*at, first))
        c.line(f"ew_share_{tap}({source}, {name}, {high - low}, {_zero(site)}, {sums}, {last - first});")
    return True


Pair = tuple[int, int]


def _part(site: Site) -> tuple[Pair, Pair] | None:
    """(channels of the output, channels of x) where they are known and our kernels fit."""
    (first, last), (low, high) = site.region[-1], share_of(site, len(site.shapes[0]) - 1)
    if not all(isinstance(bound, int) for bound in (first, last, low, high)) or not _is_ours(site):
        return None
    is_plain = requantised(site) is not None if site.is_quantised else _is_real(site)
    return ((int(first), int(last)), (int(low), int(high))) if is_plain else None


def _is_ours(site: Site) -> bool:
    return site.target.family is not Family.SIMD and not form_of(site).is_paired


def _is_real(site: Site) -> bool:
    places = (*site.inputs[:2], site.output)
    return site.inputs[1].is_constant and all(place.tensor.dtype is DType.FLOAT32 for place in places)


def _tap(site: Site) -> str:
    """The kernel's name."""
    return f"blocks_{_KINDS[site.inputs[0].tensor.dtype]}"


def _weights(site: Site, part: tuple[Pair, Pair]) -> Array:
    """(taps, blocks of channels, depth, channels of a block), zero beyond the last channel."""
    (first, last), (low, high) = part
    values = site.network.constants[site.inputs[1].tensor.name][first:last, ..., low:high]
    taps = np.moveaxis(values.reshape(last - first, -1, high - low), 0, 2)
    blocks = np.pad(taps, ((0, 0), (0, 0), (0, -taps.shape[2] % BLOCK)))
    return blocks.reshape(*taps.shape[:2], -1, BLOCK).transpose(0, 2, 1, 3).copy()


def _window(site: Site, op: Conv2d, weights: Array) -> tuple[Expr, ...]:
    """The fields of ew_share_window up to `next`, but for the depth of x, which is the share's."""
    x, w = site.shapes[:2]
    sizes = (x[1], x[2], weights.shape[2], w[1], w[2], *op.stride, *op.dilation, *op.pads[:2])
    return (_image(site.inputs[0], site.inputs[0].tensor.dtype.bytes), _image(sums_place(site), SUM_BYTES), *sizes)


def _image(place: Place, size: int) -> str:
    """An ew_image in bytes."""
    _, row, pixel, _ = place.strides
    return braced((row * size, pixel * size, place.window[1] if place.window else 0))


def _ends(site: Site, part: tuple[Pair, Pair]) -> tuple[Expr, ...]:
    """The last fields of ew_share_window."""
    (first, last), (low, high) = part
    count = -(-(last - first) // BLOCK) * BLOCK
    return count * (high - low) * site.inputs[1].tensor.dtype.bytes, _zero(site), last - first


def _zero(site: Site) -> int:
    quant = site.inputs[0].tensor.quant
    return quant.zero[0] if quant is not None and site.is_quantised else 0


def finish(site: Site, c: Source) -> bool:
    """Small cores: by multipliers that are proven to store what the reference stores."""
    sums = requantised(site) if site.is_quantised else None
    if (
        sums is None
        or site.target.family is Family.SIMD
        or form_of(site).is_paired
        or site.output.strides[-1] != 1
    ):
        return False
    count = site.result.shape[-1]
    fields = product_fields(site, sums, sums.bias, (0, count), 0)
    if fields is None:
        return False
    site.use("share_store")
    write_lines(site, c, f"ew_share_store(&{site.unit.table('ew_products', (0, *fields))}")
    return True
