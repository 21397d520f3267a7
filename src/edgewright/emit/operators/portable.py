"""int8 convolutions and dense layers in plain C, blocked for few registers (Cortex-M0+, RV32)."""

from __future__ import annotations

from dataclasses import replace

from ...network.operators import Conv2d
from ...network.tensor import DType
from ...program import Sweep
from ..nest import loops
from ..place import Place
from ..site import Site
from ..source import Expr, Source
from .blocked import Products, column_buffer, convolution, interleaved, is_image, pointer, products_of

AT_ONCE = 4  # pixels of a block
CONV_BLOCKS = (4,)  # channels of blocks, widest first
DENSE_BLOCKS = (16, 4)  # where there is one pixel only


def conv2d(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Conv2d)
    x, w = site.shapes[:2]
    if op.groups != 1 or site.sweep is Sweep.CHANNELS or not is_image(site.inputs[0]) or not is_image(site.output):
        return False
    room = column_buffer(site, w[1] * w[2] * w[3], AT_ONCE)
    made = products_of(site) if room else None
    if made is None or room is None:
        return False
    products, channel = made
    window = (*x[1:], w[1], w[2], *op.stride, *op.dilation, *op.pads[:2])
    batch, rows, columns, _ = site.region
    with loops(c, [batch], "n", backward=site.is_backward) as (n,):
        places = [
            replace(place, pointer=pointer(place, (n, 0, 0, first)))
            for place, first in ((site.inputs[0], 0), (site.output, channel))
        ]
        _call(site, c, products, window, places, (*rows, *columns), room)
    return True


def dense(site: Site, c: Source) -> bool:
    """One row by a kernel of its own; several as the pixels of a convolution."""
    x, y = site.inputs[0], site.output
    if x.window or y.window or x.strides[-1] != 1 or y.strides[-1] != 1:
        return False
    *lead, rows = site.region[:-1] if len(y.strides) > 1 else [(0, 1)]
    is_many = _is_more_than_one(rows) or x.tensor.dtype is DType.UINT8
    if is_many and not (is_image(x) and is_image(y)):
        return False
    room = column_buffer(site, x.tensor.shape[-1], AT_ONCE) if is_many else (1, None)
    made = products_of(site) if room else None
    if made is None or room is None:
        return False
    products, channel = made
    with loops(c, lead, "n", backward=site.is_backward) as at:
        if is_many:
            _rows(site, c, products, (*at, 0), channel, rows, room)
        else:
            index = (*at, rows[0]) if len(y.strides) > 1 else ()
            _row(site, c, products, pointer(x, (*index, 0)), pointer(y, (*index, channel)))
    return True


def _is_more_than_one(bounds: tuple[Expr, Expr]) -> bool:
    low, high = bounds
    return not (isinstance(low, int) and isinstance(high, int) and high - low == 1)


def _row(site: Site, c: Source, products: Products, x: str, y: str) -> None:
    """One row as it lies. Few channels do without the block of sixteen, and so without its code."""
    weights = interleaved(products.weights, DENSE_BLOCKS)
    name = site.unit.constants.add(weights, f"{site.layer.name}: weights")
    table = site.unit.table("ew_products", (name, *products.fields))
    if len(products.weights) >= DENSE_BLOCKS[0]:
        site.use("portable_dense")
        c.line(f"ew_portable_dense(&{table}, (const int8_t *){x}, (uint8_t *){y});")
    else:
        site.use("portable")
        c.line(f"ew_portable_pixel(&{table}, 0, {name}, (const int8_t *){x}, (uint8_t *){y});")


def _rows(
    site: Site,
    c: Source,
    products: Products,
    at: tuple[Expr, ...],
    channel: int,
    rows: tuple[Expr, Expr],
    room: tuple[int, str | None],
) -> None:
    """A dense layer as a convolution of one tap over an image of one line."""
    x, y = site.inputs[0], site.output
    size, depth = (x.tensor.shape[-2] if len(x.strides) > 1 else 1), x.tensor.shape[-1]
    places = []
    for place, first in ((x, 0), (y, channel)):
        index = (*at, first) if len(place.strides) > 1 else (first,)
        step = place.strides[-2] if len(place.strides) > 1 else 0
        places.append(replace(place, pointer=pointer(place, index), strides=(0, 0, step, 1)))
    _call(site, c, products, (1, size, depth, *((1,) * 6), 0, 0), places, (0, 1, *rows), room)


def _call(
    site: Site,
    c: Source,
    products: Products,
    window: tuple[int, ...],
    places: list[Place],
    part: tuple[Expr, ...],
    room: tuple[int, str | None],
) -> None:
    site.use("portable_conv")
    pixels, buffer = room
    weights = interleaved(products.weights, CONV_BLOCKS)
    table = convolution(site, products, weights, places, window, pixels)
    x, y = (place.pointer for place in places)
    region = f"ew_part_of({', '.join(map(str, part))})"
    call = f"ew_portable_conv(&{table}, (const uint8_t *){x}, (uint8_t *){y}, {region}"
    if buffer is not None:
        c.line(f"{call}, (int8_t *){buffer});")
        return
    with c.block():
        c.line(f"int8_t columns[{pixels * products.weights.shape[1]}];")
        c.line(f"{call}, columns);")
