"""Shares of int8 convolutions and dense layers on cores with pairs of 16-bit products, and what becomes of the sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...network import Array
from ...network.operators import Conv2d
from ...network.tensor import DType
from ..nest import loops
from ..site import Site
from ..source import Expr, Source, braced
from ..sums import sums_of
from .dsp import STACK, Window, fields_of
from .dsp_packing import LARGEST, Packed, grouped, overlapped
from .images import image, lies_by_pixels, part_pointer
from .shares_form import dense_strides, form_of, share_of, sums_place

FEW = 16  # taps that are summed up without a loop


def add_conv2d(site: Site, c: Source) -> bool:
    """Two pixels and two channels at a time, from columns, as whole layers are computed."""
    channels, share = _channels(site), share_of(site, 3)
    if channels is None or form_of(site).numbers is None or not lies_by_pixels(site.inputs[0]):
        return False
    low, high = share
    if not isinstance(low, int) or not isinstance(high, int):
        return False
    windows = [(part[0], _window(site, part)) for part in _cuts(site, low, high)]
    if not all(window.fits_table for _, window in windows):
        return False
    for first, window in windows:
        _by_pairs(site, c, window, first, channels)
    return True


def _channels(site: Site) -> tuple[int, int] | None:
    """The channels of the step, if they are known and whole pairs."""
    first, last = site.region[-1]
    if not isinstance(first, int) or not isinstance(last, int) or first % 2:
        return None
    return None if last % 2 and last != site.result.shape[-1] else (first, last)


def _cuts(site: Site, low: int, high: int) -> Iterator[tuple[int, int]]:
    """The share in parts whose columns have room in the arena, or on the stack."""
    taps = site.shapes[1][1] * site.shapes[1][2]
    room = max(STACK, site.hole[1] if site.hole else 0)
    most = max(4, room // (4 * taps) // 4 * 4)
    for start in range(low, high, most):
        yield start, min(high, start + most)


def _window(site: Site, part: tuple[int, int]) -> Window:
    """The convolution over these channels of x alone."""
    op = site.op
    assert isinstance(op, Conv2d)
    low, high = part
    weights = site.network.constants[site.inputs[1].tensor.name][..., low:high]
    channels, rows, columns, depth = weights.shape
    is_joined = columns == 1 or (op.dilation[1] == 1 and site.inputs[0].strides[2] == depth)
    runs = weights.reshape(channels, rows, -1) if is_joined else weights.reshape(channels, rows * columns, depth)
    _, height, width, _ = site.shapes[0]
    row, pixel = (4 * stride for stride in dense_strides(site.result)[1:3])
    return Window(
        op,
        (height, width, depth),
        (rows, columns),
        runs,
        (image(site.inputs[0]), braced((row, pixel, 0))),
    )


def _by_pairs(site: Site, c: Source, window: Window, depth: int, channels: tuple[int, int]) -> None:
    first, last = channels
    sums = sums_of(site)
    weights = grouped(window.runs[first:last], 2)
    assert sums is not None and weights is not None
    flip = 128 if site.inputs[0].tensor.dtype is DType.UINT8 else 0
    made = Packed(_fields(site, weights, last - first, 2), first, last - first, sums.zero - flip, "share")
    kernel = "share_odd" if made.count % 2 else "share_few" if weights.shape[1] <= FEW else "share_pairs"
    site.use("dsp_conv", kernel)
    table = site.unit.table("ew_dsp_convolution", fields_of(site, window, made, kernel))
    buffer, (batch, rows, columns, _) = site.scratch(window.columns), site.region
    with loops(c, [batch], "n", backward=site.is_backward) as (n,), c.block():
        where = part_pointer(site, c, (*rows, *columns))
        if buffer is None:
            c.line(f"uint32_t columns[{window.columns // 4}];")
        x, y = site.inputs[0].address((n, 0, 0, depth)), sums_place(site).address((n, 0, 0, first))
        run = "ew_dsp_conv_bent" if site.inputs[0].window else "ew_dsp_conv"
        c.line(f"{run}(&{table}, {x}, {y}, {where}, {buffer or 'columns'});")


def _fields(site: Site, weights: Array, count: int, group: int) -> tuple[Expr, ...]:
    """Of ew_dsp_sums, as far as sums alone are wanted."""
    name = site.unit.constants.add(weights, f"{site.layer.name}: weights of a share, pairs of channels as 256 * b + a")
    return (name, 0, count, weights.shape[1] * 2 // group, 8, 0, 0, 0, 0, 0)


def add_dense(site: Site, c: Source) -> bool:
    """One output after the other, from bytes as they lie."""
    x, channels, (low, high) = site.inputs[0], _channels(site), share_of(site, len(site.shapes[0]) - 1)
    if channels is None or form_of(site).numbers is None or x.strides[-1] != 1:
        return False
    if not isinstance(low, int) or not isinstance(high, int):
        return False
    first, last = channels
    weights = site.network.constants[site.inputs[1].tensor.name][first:last, low:high]
    words = grouped(overlapped(weights)[:, None], 4)
    assert words is not None
    if words.shape[1] // 2 > LARGEST:
        return False
    site.use("share_dense")
    table = site.unit.table("ew_dsp_sums", _fields(site, words, last - first, 4))
    kind = "unsigned" if x.tensor.dtype is DType.UINT8 else "signed"
    with loops(c, site.region[:-1], "n", backward=site.is_backward) as at:
        pointers = f"{x.address((*at, low))}, {sums_place(site).address((*at, first))}"
        c.line(f"ew_share_dense(&{table}, ew_share_{kind}, {pointers}, {high - low});")
    return True


def finish(site: Site, c: Source) -> bool:
    """Sums of pairs of channels as the kernels of whole layers finish them."""
    numbers, sums = form_of(site).numbers, sums_of(site)
    if numbers is None or sums is None:
        return False
    flip = 128 if site.result.dtype is DType.UINT8 else 0
    channels = np.concatenate([numbers.channels, numbers.channels[-1:]][: 1 + len(numbers.channels) % 2])
    kernel = f"share_finish_{numbers.kind}"
    site.use(kernel)
    table = site.unit.table(
        "ew_dsp_sums",
        (
            *(0, site.unit.constants.add(channels, f"{site.layer.name}: numbers of each channel ({numbers.kind})")),
            *(len(numbers.channels), 0, numbers.left, numbers.shift),
            *(sums.rule.low - flip, sums.rule.high - flip, flip, channels.shape[1]),
        ),
    )
    place = sums_place(site)
    *lead, pixels, _ = (*site.region,) if len(site.region) > 1 else ((0, 1), *site.region)
    if site.output.is_dense:
        count = site.result.size // site.result.shape[-1]
        c.line(f"ew_{kernel}(&{table}, {place.pointer}, {site.output.pointer}, {count}, {site.result.shape[-1]});")
        return True
    with loops(c, lead, "n") as at:
        index = (*at, 0, 0)
        pointers = f"{place.address(index)}, {site.output.address(index)}"
        c.line(f"ew_{kernel}(&{table}, {pointers}, {pixels[1]}, {site.output.strides[-2]});")
    return True


