"""Partial sums tap by tap in plain C, and what becomes of complete ones: small cores."""

from __future__ import annotations

import numpy as np

from ...network import Array, DType
from ...network.operators import Conv2d, Dense
from ...program.steps import SUM_BYTES
from ..call import WINDOW, CCall, image, part_pointer, window_sizes
from ..cost.products import add_conv_work, add_dense_work, finish_scaled_work
from ..kernel import SMALL, CallKind, Kernel, Offer, where
from ..partial_layout import difference, partial_layout, partial_range, sums_place, write_lines
from ..printing.nest import loops
from ..printing.source import CWriter, Fields, struct_fields
from ..requantise.sums import requantised
from ..site import ChannelRange, Site, unwrap
from .blocked import Scaling, scaling_of

BLOCK = 4  # channels at a time without vectors
_KINDS = {DType.INT8: "signed", DType.UINT8: "unsigned", DType.FLOAT32: "real"}


def _is_ours(site: Site) -> bool:
    """Whether all calls sum up known channels, whose products are those of int8 or of real numbers."""
    if not site.ranges or partial_layout(site).is_paired:
        return False
    return requantised(site) is not None if site.is_quantised else _is_real(site)


def _is_real(site: Site) -> bool:
    places = (*site.inputs[:2], site.output)
    return site.inputs[1].is_constant and all(place.tensor.dtype is DType.FLOAT32 for place in places)


def suits_conv(site: Site) -> bool:
    sums_lie_well = not site.result.dtype.is_float or site.output.lies_by_pixels  # those of integers lie densely
    return site.inputs[0].lies_by_pixels and sums_lie_well and _is_ours(site)


def write_conv(call: CCall, _: Offer, c: CWriter) -> None:
    x, place, (low, _high) = call.inputs[0], sums_place(call), partial_range(call, 3)
    call.use("share_window", f"share_{_tap(call)}")
    table = call.table("ew_share_window", lambda channels: _fields(call, channels))
    batch, rows, columns, (first, _last) = call.region
    with loops(c, [batch], "n") as (n,), c.block():
        where = part_pointer(call, c, (*rows, *columns))
        pointers = f"{x.address((n, 0, 0, low))}, {place.address((n, 0, 0, first))}"
        c.line(f"ew_share_windows(&{table}, {pointers}, {where});")


def _fields(call: CCall, channels: ChannelRange) -> Fields:
    """Of ew_share_window; the depth of x is that of the part that is summed over."""
    weights = _weights(call, channels)
    _, blocks, depth, block = weights.shape
    return {
        "weights": _name(call, channels),
        "tap": f"ew_share_{_tap(call)}",
        "x": image(call.inputs[0], size=call.inputs[0].tensor.dtype.bytes),
        "y": image(sums_place(call), size=SUM_BYTES),
        **struct_fields(WINDOW, window_sizes(call, depth)),
        "next": blocks * depth * block * weights.itemsize,
        "zero": _zero(call),
        "channels": channels.count,
    }


def suits_dense(site: Site) -> bool:
    sums_lie_well = not site.result.dtype.is_float or site.output.strides[-1] == 1
    return site.inputs[0].strides[-1] == 1 and sums_lie_well and _is_ours(site)


def write_dense(call: CCall, _: Offer, c: CWriter) -> None:
    (first, last), (low, high) = call.region[-1], partial_range(call, len(call.shapes[0]) - 1)
    call.use(f"share_{_tap(call)}")
    weights, place = call.pointer(lambda channels: _name(call, channels)), sums_place(call)
    with loops(c, call.region[:-1], "n") as at:
        source, sums = call.inputs[0].address((*at, low)), place.address((*at, first))
        given = f"{source}, {weights}, {difference(low, high)}, {_zero(call)}, {sums}, {difference(first, last)}"
        c.line(f"ew_share_{_tap(call)}({given});")


def _tap(site: Site) -> str:
    """The name of the kernel for these elements, without its prefix."""
    return f"blocks_{_KINDS[site.inputs[0].tensor.dtype]}"


def _name(call: CCall, channels: ChannelRange) -> str:
    return call.add(_weights(call, channels), "weights of a share")


def _weights(site: Site, channels: ChannelRange) -> Array:
    """(taps, blocks of channels, depth, channels of a block), zero beyond the last channel."""
    (first, last), (low, high) = channels.channels, channels.partial or (0, 0)
    values = site.weights[first:last, ..., low:high]
    taps = np.moveaxis(values.reshape(last - first, -1, high - low), 0, 2)
    blocks = np.pad(taps, ((0, 0), (0, 0), (0, -taps.shape[2] % BLOCK)))
    return blocks.reshape(*taps.shape[:2], -1, BLOCK).transpose(0, 2, 1, 3).copy()


def _zero(site: Site) -> int:
    quant = site.inputs[0].tensor.quant
    return quant.zero[0] if quant is not None and site.is_quantised else 0


def suits_finish(site: Site) -> bool:
    """By multipliers that are proven to store what the reference stores."""
    is_ours = site.is_quantised and site.output.strides[-1] == 1 and not partial_layout(site).is_paired
    return is_ours and (not site.facts.exact or _scaling(site) is not None)


def _scaling(site: Site) -> Scaling | None:
    sums = requantised(site)
    return site.facts.once("share_store", lambda: scaling_of(sums, sums.bias)) if sums else None


def write_finish(call: CCall, _: Offer, c: CWriter) -> None:
    call.use("share_store")
    numbers = unwrap(_scaling(call)).fields(call, (0, call.result.shape[-1]), 0)
    table = call.module.table("ew_products", {"weights": 0, **numbers, **call.pitch_field(0)})
    write_lines(call, c, f"ew_share_store(&{table}")


ADD_CONV = Kernel(
    "portable_add_conv", (Conv2d,), where(suits_conv), write_conv, SMALL, CallKind.ADD, work=add_conv_work
)
ADD_DENSE = Kernel(
    "portable_add_dense", (Dense,), where(suits_dense), write_dense, SMALL, CallKind.ADD, work=add_dense_work
)
FINISH = Kernel(
    "portable_finish",
    (Conv2d, Dense),
    where(suits_finish),
    write_finish,
    SMALL,
    CallKind.FINISH,
    work=finish_scaled_work,
)
