"""Partial sums of int8 layers on cores with pairs of 16-bit products, and how complete sums become outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...network import Array, Interval
from ...network.operators import Conv2d, Dense
from ...network.tensor import DType
from ...platform.target import Family
from ...program.steps import SUM_BYTES
from ..call import CCall, image, image_of, part_pointer
from ..cost.products import add_dense_work, finish_work
from ..kernel import CallKind, Kernel, Offer, where
from ..partial_layout import difference, missing, partial_layout, partial_range, sums_place, write_lines
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, Fields, plus, times
from ..requantise.sums import flip, requantised
from ..site import ChannelRange, Site, unwrap
from ..strided_tensor import dense_strides
from . import work
from .conv import STACK, ConvColumns, fields_of, runs_of
from .numbers import ChannelScaling, channel_scaling
from .packing import LARGEST, grouped, layer_numbers, overlapped

FEW = 32  # taps that are summed up without a loop
EIGHT = 8  # taps that stay in registers


def _has_pairs(site: Site) -> bool:
    """Whether the channels of all calls are known, and come in whole pairs."""
    ends = [channels.channels for channels in site.ranges]
    whole = site.result.shape[-1] if site.result.shape else 0
    are_pairs = all(first % 2 == 0 and (last % 2 == 0 or last == whole) for first, last in ends)
    return bool(ends) and are_pairs and partial_layout(site).is_paired


def offers_conv(site: Site) -> Iterator[Offer]:
    """Two pixels and two channels at a time, from columns, as whole layers are computed; of fewer inputs at a time
    where columns of all of them have no room."""
    op = site.op_as(Conv2d)
    if not _has_pairs(site) or not site.inputs[0].lies_by_pixels:
        return
    depths = [_depth(channels) for channels in site.ranges]
    for most in _depths(max(depths)):
        if len({-(-depth // most) for depth in depths}) == 1:
            windows = [_window(site, op, part) for r in site.ranges for part in _depth_passes(r, most)]
            if all(window.fits_table for window in windows):
                yield Offer.of(max(window.columns for window in windows), depth=most)


def _depth(channels: ChannelRange) -> int:
    low, high = channels.partial or (0, 0)
    return high - low


def _depths(most: int) -> Iterator[int]:
    """How many input channels one pass may take: all of them, then ever smaller multiples of four."""
    yield most
    yield from range((most - 1) // 4 * 4, 0, -4)


def _depth_passes(channels: ChannelRange, most: int) -> list[Interval]:
    """The input channels that a call sums over, divided into passes of at most `most`."""
    low, high = channels.partial or (0, 0)
    return [(start, min(high, start + most)) for start in range(low, high, most)]


def _window(site: Site, op: Conv2d, part: Interval) -> ConvColumns:
    """The convolution restricted to these input channels, with the running sums as its output."""
    low, high = part
    weights = site.weights[..., low:high]
    _, rows, columns, depth = weights.shape
    _, height, width, _ = site.shapes[0]
    row, pixel = (SUM_BYTES * stride for stride in dense_strides(site.result)[1:3])
    images = (image(site.inputs[0]), image_of(row, pixel))
    return ConvColumns(op, (height, width, depth), (rows, columns), runs_of(site, op, weights), images)


def write_conv(call: CCall, offer: Offer, c: CWriter) -> None:
    op = call.op_as(Conv2d)
    is_pointwise = call.shapes[1][1:3] == (1, 1) and op.pads == (0, 0, 0, 0)
    for at in range(len(_depth_passes(call.ranges[0], offer["depth"]))):
        (_write_points if is_pointwise else _write_windows)(call, c, _DepthPass(call, op, offer, at))


@dataclass(frozen=True)
class _DepthPass:
    """One pass over some of the input channels that a call sums over."""

    call: CCall
    op: Conv2d
    offer: Offer
    at: int

    def window(self, channels: ChannelRange) -> ConvColumns:
        return _window(self.call, self.op, _depth_passes(channels, self.offer["depth"])[self.at])

    @property
    def depth(self) -> Expr:
        """C of the first input channel of this pass."""
        return plus(partial_range(self.call, 3)[0], self.at * self.offer["depth"])

    @property
    def columns(self) -> int:
        """Bytes of the columns of two pixels, at most."""
        return max(self.window(channels).columns for channels in self.call.ranges)

    def kernel(self, window: ConvColumns, count: int) -> tuple[str, int]:
        """The kernel that multiplies, and how many channels at once."""
        taps = window.columns // 4  # which are of two pixels, two bytes each
        if taps == EIGHT and count % 4 == 0:
            return "share_eight", 4
        return ("share_odd" if count % 2 else "share_few" if taps <= FEW else "share_pairs"), 2

    def packed(self, channels: ChannelRange) -> tuple[Fields, str, ConvColumns]:
        """The fields of ew_dsp_sums, the kernel, and the window."""
        window, (first, last) = self.window(channels), channels.channels
        kernel, group = self.kernel(window, channels.count)
        weights = unwrap(grouped(window.runs[first:last], group))
        return _fields(self.call, weights, channels.count, group), kernel, window

    @property
    def zero(self) -> int:
        return unwrap(requantised(self.call)).zero - flip(self.call.inputs[0].tensor)


def _fields(call: CCall, weights: Array, count: int, group: int) -> Fields:
    """The fields of an ew_dsp_sums that leaves its sums as they are: weights and counts, no scaling."""
    name = call.add(weights, "weights of a share, pairs of channels as 256 * b + a")
    taps = weights.shape[1] * 2 // group
    unscaled = {"left": 8, "shift": 0, "low": 0, "high": 0, "flip": 0, "numbers": 0}
    return {"weights": name, "channels": 0, "count": count, "taps": taps, **unscaled, **call.pitch_field(taps)}


def _write_windows(call: CCall, c: CWriter, depth_pass: _DepthPass) -> None:
    def fields(channels: ChannelRange) -> Fields:
        sums, kernel, window = depth_pass.packed(channels)
        call.use("dsp_conv", kernel)
        return fields_of(call, window, sums, depth_pass.zero, kernel)

    table = call.table("ew_dsp_convolution", fields)
    batch, rows, columns, (first, _) = call.region
    with loops(c, [batch], "n") as (n,), c.block():
        where, buffer = part_pointer(call, c, (*rows, *columns)), _columns(call, c, depth_pass)
        x, y = call.inputs[0].address((n, 0, 0, depth_pass.depth)), sums_place(call).address((n, 0, 0, first))
        run = "ew_dsp_conv_circular" if call.inputs[0].window else "ew_dsp_conv"
        c.line(f"{run}(&{table}, {x}, {y}, {where}, {buffer});")


def _columns(call: CCall, c: CWriter, depth_pass: _DepthPass) -> str:
    return call.scratch(c, "uint32_t", depth_pass.columns // 4, "columns")


def _write_points(call: CCall, c: CWriter, depth_pass: _DepthPass) -> None:
    """Row by row, or all rows at once where pixels follow each other at one distance."""
    x, place, (down, right) = call.inputs[0], sums_place(call), depth_pass.op.stride

    def fields(channels: ChannelRange) -> Fields:
        sums, kernel, window = depth_pass.packed(channels)
        call.use("share_points", kernel)
        return {
            "sums": sums,
            "pairs": f"ew_{kernel}",
            "depth": window.size[2],
            "x": x.strides[2] * right,
            "y": place.strides[2],
            "zero": depth_pass.zero,
            "flip": flip(x.tensor),
        }

    table = call.table("ew_share_point", fields)
    batch, rows, (left, end), (first, _) = call.region
    is_even = (
        x.window is None
        and (down, right) == (1, 1)
        and (left, end) == (0, call.result.shape[2])
        and x.strides[1] == x.strides[2] * call.shapes[0][2]
    )
    count = times(difference(*rows), call.result.shape[2]) if is_even else difference(left, end)
    with loops(c, [batch, *([] if is_even else [rows])], "n") as (n, *inner), c.block():
        buffer, (row, *_) = _columns(call, c, depth_pass), (*inner, rows[0])
        source = x.address((n, times(row, down), times(left, right), depth_pass.depth))
        target = place.address((n, row, left, first))
        c.line(f"ew_share_points(&{table}, {source}, {target}, {count}, {buffer});")


def suits_dense(site: Site) -> bool:
    """One output after the other, from bytes as they lie."""
    if not _has_pairs(site) or site.inputs[0].strides[-1] != 1:
        return False
    return all(_dense_words(site, channels).shape[1] // 2 <= LARGEST for channels in site.ranges)


def _dense_words(site: Site, channels: ChannelRange) -> Array:
    (first, last), (low, high) = channels.channels, channels.partial or (0, 0)
    return unwrap(grouped(overlapped(site.weights[first:last, low:high])[:, None], 4))


def write_dense(call: CCall, _: Offer, c: CWriter) -> None:
    x, (first, _last), (low, high) = call.inputs[0], call.region[-1], partial_range(call, len(call.shapes[0]) - 1)
    call.use("share_dense")
    table = call.table("ew_dsp_sums", lambda r: _fields(call, _dense_words(call, r), r.count, 4))
    kind = "unsigned" if x.tensor.dtype is DType.UINT8 else "signed"
    with loops(c, call.region[:-1], "n", backward=call.is_backward) as at:
        pointers = f"{x.address((*at, low))}, {sums_place(call).address((*at, first))}"
        c.line(f"ew_share_dense(&{table}, ew_share_{kind}, {pointers}, {difference(low, high)});")


def suits_finish(site: Site) -> bool:
    """Where sums lie in pairs of channels, which the kernels of whole layers can scale and store."""
    return partial_layout(site).is_paired and _numbers(site) is not None


def _numbers(site: Site) -> ChannelScaling | None:
    sums, layout = requantised(site), partial_layout(site)
    if sums is None or not site.facts.exact:
        return None if sums is None else layer_numbers(site, layout.is_raw)
    is_unsigned = layout.is_raw and site.inputs[0].tensor.dtype is DType.UINT8
    return channel_scaling(site, sums, missing(sums, layout.is_raw), is_unsigned)


def write_finish(call: CCall, _: Offer, c: CWriter) -> None:
    rule, numbers, up = unwrap(requantised(call)).rule, unwrap(_numbers(call)), flip(call.result)
    channels = np.concatenate([numbers.channels, numbers.channels[-1:]][: 1 + len(numbers.channels) % 2])
    kernel = f"share_finish_{numbers.kind}"
    call.use(kernel)
    fields: Fields = {
        "weights": 0,
        "channels": call.add(channels, f"numbers of each channel ({numbers.kind})"),
        "count": len(numbers.channels),
        "taps": 0,
        "left": numbers.left,
        "shift": numbers.shift,
        "low": rule.low - up,
        "high": rule.high - up,
        "flip": up,
        "numbers": channels.shape[1],
        **call.pitch_field(0),
    }
    write_lines(call, c, f"ew_{kernel}(&{call.module.table('ew_dsp_sums', fields)}")


DUAL = frozenset({Family.DSP, Family.HELIUM})
ADD_CONV = Kernel("dsp_add_conv", (Conv2d,), offers_conv, write_conv, DUAL, CallKind.ADD, STACK, work=work.add_conv)
ADD_DENSE = Kernel(
    "dsp_add_dense",
    (Dense,),
    where(suits_dense),
    write_dense,
    DUAL,
    CallKind.ADD,
    work=partial(add_dense_work, multiple=4),
)
FINISH = Kernel(
    "dsp_finish",
    (Conv2d, Dense),
    where(suits_finish),
    write_finish,
    DUAL,
    CallKind.FINISH,
    work=lambda s, *_: finish_work(s, work.stored_how(s, is_raw=isinstance(s.op, Dense))),
)
