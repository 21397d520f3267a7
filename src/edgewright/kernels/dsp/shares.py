"""Shares of int8 convolutions and dense layers on cores with pairs of 16-bit products, and what becomes of the sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...network import Array
from ...network.operators import Conv2d
from ...network.tensor import DType
from ...program.shares import SUM_BYTES
from ..call import Call as Site
from ..placement import dense_strides
from ..printing.images import image, lies_by_pixels, part_pointer
from ..printing.nest import loops
from ..printing.source import Expr, Source, braced, times
from ..requantise.sums import sums_of
from ..shares_form import difference, form_of, missing, share_of, sums_place, write_lines
from .conv import Window, fields_of
from .numbers import numbers_of
from .packing import LARGEST, Packed, grouped, overlapped
from .rows import STACK

FEW = 32  # taps that are summed up without a loop
EIGHT = 8  # taps that stay in registers


def add_conv2d(site: Site, c: Source) -> bool:
    """Two pixels and two channels at a time, from columns, as whole layers are computed."""
    op, x, channels, (low, high) = site.op, site.inputs[0], _channels(site), share_of(site, 3)
    assert isinstance(op, Conv2d)
    if channels is None or not form_of(site).is_paired or not lies_by_pixels(x):
        return False
    if not isinstance(low, int) or not isinstance(high, int):
        return False
    is_pointwise = site.shapes[1][1:3] == (1, 1) and op.pads == (0, 0, 0, 0)
    windows = [(part[0], _window(site, op, part)) for part in _cuts(site, low, high)]
    if not all(window.fits_table for _, window in windows):
        return False
    for first, window in windows:
        (_points if is_pointwise else _by_pairs)(site, c, window, first, channels)
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


def _window(site: Site, op: Conv2d, part: tuple[int, int]) -> Window:
    """The convolution over these channels of x alone, and the running sums as its output."""
    low, high = part
    weights = site.network.constants[site.inputs[1].tensor.name][..., low:high]
    channels, rows, columns, depth = weights.shape
    is_joined = columns == 1 or (op.dilation[1] == 1 and site.inputs[0].strides[2] == depth)
    runs = weights.reshape(channels, rows, -1) if is_joined else weights.reshape(channels, rows * columns, depth)
    _, height, width, _ = site.shapes[0]
    row, pixel = (SUM_BYTES * stride for stride in dense_strides(site.result)[1:3])
    images = (image(site.inputs[0]), braced((row, pixel, 0)))
    return Window(op, (height, width, depth), (rows, columns), runs, images)


def _packed(site: Site, window: Window, channels: tuple[int, int]) -> tuple[Packed, str]:
    """The weights of the share, and the kernel that multiplies them."""
    (first, last), sums = channels, sums_of(site)
    count, taps = last - first, window.columns // 4  # which are of two pixels, two bytes each
    kernel = "share_odd" if count % 2 else "share_few" if taps <= FEW else "share_pairs"
    kernel, group = ("share_eight", 4) if taps == EIGHT and count % 4 == 0 else (kernel, 2)
    weights = grouped(window.runs[first:last], group)
    assert sums is not None and weights is not None
    fields = _fields(site, weights, count, group)
    return Packed(fields, first, count, sums.zero - _flip(site), "share"), kernel


def _flip(site: Site) -> int:
    """What makes bytes of x signed."""
    return 128 if site.inputs[0].tensor.dtype is DType.UINT8 else 0


def _by_pairs(site: Site, c: Source, window: Window, depth: int, channels: tuple[int, int]) -> None:
    made, kernel = _packed(site, window, channels)
    site.use("dsp_conv", kernel)
    table = site.unit.table("ew_dsp_convolution", fields_of(site, window, made, kernel))
    batch, rows, columns, _ = site.region
    with loops(c, [batch], "n") as (n,), c.block():
        where, buffer = part_pointer(site, c, (*rows, *columns)), _columns(site, c, window)
        x, y = site.inputs[0].address((n, 0, 0, depth)), sums_place(site).address((n, 0, 0, made.first))
        run = "ew_dsp_conv_bent" if site.inputs[0].window else "ew_dsp_conv"
        c.line(f"{run}(&{table}, {x}, {y}, {where}, {buffer});")


def _columns(site: Site, c: Source, window: Window) -> str:
    """Memory for the columns of two pixels: of the arena, or of the stack, and then declared."""
    hole = site.free(window.columns)
    if hole is None:
        c.line(f"uint32_t columns[{window.columns // 4}];")
    return hole or "columns"


def _points(site: Site, c: Source, window: Window, depth: int, channels: tuple[int, int]) -> None:
    """Row by row, or all rows at once where pixels follow each other at one distance."""
    x, place, (made, kernel) = site.inputs[0], sums_place(site), _packed(site, window, channels)
    site.use("share_points", kernel)
    down, right = window.op.stride
    steps = (window.size[2], x.strides[2] * right, place.strides[2])
    fields = (braced(made.fields), f"ew_{kernel}", *steps, made.zero, _flip(site))
    table = site.unit.table("ew_share_point", fields)
    batch, rows, (left, end), _ = site.region
    is_even = (
        x.window is None
        and (down, right) == (1, 1)
        and (left, end) == (0, site.result.shape[2])
        and x.strides[1] == x.strides[2] * site.shapes[0][2]
    )
    count = times(difference(*rows), site.result.shape[2]) if is_even else difference(left, end)
    with loops(c, [batch, *([] if is_even else [rows])], "n") as (n, *inner), c.block():
        buffer, (row, *_) = _columns(site, c, window), (*inner, rows[0])
        source = x.address((n, times(row, down), times(left, right), depth))
        c.line(
            f"ew_share_points(&{table}, {source}, {place.address((n, row, left, made.first))}, {count}, {buffer});"
        )


def _fields(site: Site, weights: Array, count: int, group: int) -> tuple[Expr, ...]:
    """Of ew_dsp_sums, as far as sums alone are wanted."""
    name = site.unit.constants.add(
        weights, f"{site.layer.name}: weights of a share, pairs of channels as 256 * b + a"
    )
    return (name, 0, count, weights.shape[1] * 2 // group, 8, 0, 0, 0, 0, 0)


def add_dense(site: Site, c: Source) -> bool:
    """One output after the other, from bytes as they lie."""
    x, channels, (low, high) = site.inputs[0], _channels(site), share_of(site, len(site.shapes[0]) - 1)
    if channels is None or not form_of(site).is_paired or x.strides[-1] != 1:
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
    form, sums = form_of(site), sums_of(site)
    if sums is None or not form.is_paired:
        return False
    is_unsigned = form.is_raw and site.inputs[0].tensor.dtype is DType.UINT8
    numbers = numbers_of(site, sums, missing(sums, form.is_raw), is_unsigned)
    if numbers is None:
        return False
    flip = 128 if site.result.dtype is DType.UINT8 else 0
    channels = np.concatenate([numbers.channels, numbers.channels[-1:]][: 1 + len(numbers.channels) % 2])
    kernel = f"share_finish_{numbers.kind}"
    site.use(kernel)
    table = site.unit.table(
        "ew_dsp_sums",
        (
            *(
                0,
                site.unit.constants.add(channels, f"{site.layer.name}: numbers of each channel ({numbers.kind})"),
            ),
            *(len(numbers.channels), 0, numbers.left, numbers.shift),
            *(sums.rule.low - flip, sums.rule.high - flip, flip, channels.shape[1]),
        ),
    )
    write_lines(site, c, f"ew_{kernel}(&{table}")
    return True
