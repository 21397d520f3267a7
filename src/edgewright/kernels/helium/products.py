"""int8 convolutions and dense layers with M-profile vectors (Cortex-M55)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...network.operators import Conv2d
from ...network.tensor import DType
from ...platform.target import Family
from ...program import Sweep
from ..call import Call as Site
from ..portable.blocked import Products, column_buffer, convolution, is_image, products_of
from ..printing.nest import loops
from ..printing.source import Source

MOST_TAPS = 32  # of a depthwise window: EW_MOST_TAPS
# Channels from which on vectors take fewer instructions than a channel at a time with pairs of products.
LEAST_CHANNELS, LEAST_CHANNELS_STRIDED = 128, 16


def conv2d(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Conv2d)
    is_ours = site.target.family is Family.HELIUM and site.sweep is not Sweep.CHANNELS
    if not is_ours or not is_image(site.inputs[0]) or not is_image(site.output):
        return False
    if op.groups == 1:
        return _conv(site, c, op)
    return _is_depthwise(site, op) and _depthwise(site, c, op)


def dense(site: Site, c: Source) -> bool:
    """Rows one by one, as they lie."""
    x, y = site.inputs[0], site.output
    is_ours = site.target.family is Family.HELIUM and x.tensor.dtype is DType.INT8
    if not is_ours or x.window or y.window or x.strides[-1] != 1 or y.strides[-1] != 1:
        return False
    made = products_of(site)
    if made is None:
        return False
    products, channel = made
    site.use("helium")
    name = site.unit.constants.add(products.weights, f"{site.layer.name}: weights")
    table = site.unit.table("ew_products", (name, *products.fields))
    with loops(c, site.region[:-1], "n", backward=site.is_backward) as at:
        source, target = x.address((*at, 0)), y.address((*at, channel))
        c.line(f"ew_helium_pixel(&{table}, (const int8_t *){source}, (uint8_t *){target});")
    return True


def _conv(site: Site, c: Source, op: Conv2d) -> bool:
    w = site.shapes[1]
    depth = w[1] * w[2] * w[3]
    is_direct = w[1:3] == (1, 1) and op.pads == (0, 0, 0, 0) and site.inputs[0].tensor.dtype is DType.INT8
    room = (0, None) if is_direct else column_buffer(site, depth, 1)
    made = products_of(site) if room else None
    if made is None or room is None:
        return False
    pixels, buffer = room
    site.use("helium_conv")
    with c.block():
        if pixels and buffer is None:
            c.line(f"int8_t column[{depth}];")
        column = "NULL" if is_direct else f"(int8_t *){buffer}" if buffer else "column"
        _calls(site, c, op, made, "ew_helium_conv", "uint8_t", f", {column}", pixels)
    return True


def _is_depthwise(site: Site, op: Conv2d) -> bool:
    """Whether each output channel reads the input channel of its own number, and there are enough of them."""
    x, w = site.shapes[:2]
    is_plain = op.groups == x[3] == w[0] and site.inputs[0].tensor.dtype is DType.INT8
    least = LEAST_CHANNELS_STRIDED if max(op.stride) > 1 else LEAST_CHANNELS
    return is_plain and w[1] * w[2] <= MOST_TAPS and x[3] >= least


def _depthwise(site: Site, c: Source, op: Conv2d) -> bool:
    made = products_of(site)
    if made is None:
        return False
    site.use("helium_depthwise")
    products, channel = made
    packed = replace(products, weights=np.ascontiguousarray(products.weights.T))
    _calls(site, c, op, (packed, channel), "ew_helium_depthwise", "int8_t", "", 0)
    return True


def _calls(
    site: Site, c: Source, op: Conv2d, made: tuple[Products, int], kernel: str, ctype: str, rest: str, pixels: int
) -> None:
    """A call for each image of the batch."""
    products, channel = made
    x, w = site.shapes[:2]
    batch, rows, columns, _ = site.region
    window = (*x[1:], w[1], w[2], *op.stride, *op.dilation, *op.pads[:2])
    places = (site.inputs[0], site.output)
    table = convolution(site, products, products.weights, places, window, pixels)
    part = f"ew_part_of({rows[0]}, {rows[1]}, {columns[0]}, {columns[1]})"
    first = channel if op.groups > 1 else 0
    with loops(c, [batch], "n", backward=site.is_backward) as (n,):
        source, target = places[0].address((n, 0, 0, first)), places[1].address((n, 0, 0, channel))
        c.line(f"{kernel}(&{table}, (const {ctype} *){source}, (uint8_t *){target}, {part}{rest});")
