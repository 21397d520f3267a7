"""int8 convolutions and dense layers in plain C, blocked for few registers (Cortex-M0+, RV32)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...network.operators import Conv2d
from ...network.tensor import DType
from ...platform.target import Architecture
from ...program import Sweep
from ..call import Call as Site
from ..printing.images import part_pointer
from ..printing.nest import loops
from ..printing.source import Expr, Source
from ..printing.tensor import CTensor as Place
from .blocked import STACK, Products, column_buffer, convolution, interleaved, is_image, products_of

AT_ONCE = 4  # pixels of a block
CONV_BLOCKS = (4,)  # channels of blocks, widest first
DENSE_BLOCKS = (16, 4)  # where there is one pixel only
PAIR_BYTES = 4  # of two pixels in one number
PAIR_STACK = 1152  # bytes of pairs that may lie on the stack: what they save is worth more of it


@dataclass(frozen=True)
class Columns:
    """Where windows are gathered."""

    pixels: int  # at once
    buffer: str | None  # in the arena; None: on the stack
    has_pairs: bool  # two pixels in one number

    @property
    def step(self) -> int:
        """Products that are summed up together."""
        return 2 if self.has_pairs else 1

    @property
    def kernel(self) -> str:
        return "portable_pairs" if self.has_pairs else "portable_conv"

    def call(self, c: Source, given: str, depth: int) -> None:
        """Calls the kernel with these arguments and the columns."""
        ctype, size = ("int32_t", self.pixels // 2 * depth) if self.has_pairs else ("int8_t", self.pixels * depth)
        if self.buffer is not None:
            c.line(f"ew_{self.kernel}({given}, ({ctype} *)(void *){self.buffer});")
            return
        with c.block():
            c.line(f"{ctype} columns[{size}];")
            c.line(f"ew_{self.kernel}({given}, columns);")


def conv2d(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Conv2d)
    x, w = site.shapes[:2]
    if op.groups != 1 or site.sweep is Sweep.CHANNELS or not is_image(site.inputs[0]) or not is_image(site.output):
        return False
    room = _columns(site, w[1] * w[2] * w[3])
    made = products_of(site, room.step) if room else None
    if made is None or room is None:
        return False
    products, channel = made
    window = (*x[1:], w[1], w[2], *op.stride, *op.dilation, *op.pads[:2])
    batch, rows, columns, _ = site.region
    with loops(c, [batch], "n", backward=site.is_backward) as (n,):
        places = [
            replace(place, pointer=place.address((n, 0, 0, first)))
            for place, first in ((site.inputs[0], 0), (site.output, channel))
        ]
        _call(site, c, products, window, places, (*rows, *columns), room)
    return True


def _columns(site: Site, depth: int) -> Columns | None:
    """Room for pairs of pixels where cores have the registers for it, else for bytes; None if there is for neither."""
    first, last = site.region[-1]
    is_blocked = isinstance(first, int) and isinstance(last, int) and (last - first) % CONV_BLOCKS[0] == 0
    has_registers = site.target.architecture is not Architecture.CORTEX_M
    if is_blocked and has_registers:
        size = AT_ONCE // 2 * (depth + depth % 2) * PAIR_BYTES
        hole = site.free(size)
        if hole is not None or size <= PAIR_STACK:
            return Columns(AT_ONCE, hole, True)
    room = column_buffer(site, depth, AT_ONCE, PAIR_STACK if has_registers else STACK)
    return Columns(*room, False) if room else None


def dense(site: Site, c: Source) -> bool:
    """One row by a kernel of its own; several as the pixels of a convolution."""
    x, y = site.inputs[0], site.output
    if x.window or y.window or x.strides[-1] != 1 or y.strides[-1] != 1:
        return False
    *lead, rows = site.region[:-1] if len(y.strides) > 1 else [(0, 1)]
    is_many = _is_more_than_one(rows) or x.tensor.dtype is DType.UINT8
    if is_many and not (is_image(x) and is_image(y)):
        return False
    room = _columns(site, x.tensor.shape[-1]) if is_many else Columns(1, None, False)
    made = products_of(site, room.step) if room else None
    if made is None or room is None:
        return False
    products, channel = made
    with loops(c, lead, "n", backward=site.is_backward) as at:
        if is_many:
            _rows(site, c, products, (*at, 0), channel, rows, room)
        else:
            index = (*at, rows[0]) if len(y.strides) > 1 else ()
            _row(site, c, products, x.address((*index, 0)), y.address((*index, channel)))
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
    room: Columns,
) -> None:
    """A dense layer as a convolution of one tap over an image of one line."""
    x, y = site.inputs[0], site.output
    size, depth = (x.tensor.shape[-2] if len(x.strides) > 1 else 1), x.tensor.shape[-1]
    places = []
    for place, first in ((x, 0), (y, channel)):
        index = (*at, first) if len(place.strides) > 1 else (first,)
        step = place.strides[-2] if len(place.strides) > 1 else 0
        places.append(replace(place, pointer=place.address(index), strides=(0, 0, step, 1)))
    _call(site, c, products, (1, size, depth, *((1,) * 6), 0, 0), places, (0, 1, *rows), room)


def _call(
    site: Site,
    c: Source,
    products: Products,
    window: tuple[int, ...],
    places: list[Place],
    part: tuple[Expr, ...],
    room: Columns,
) -> None:
    site.use(room.kernel)
    weights = interleaved(products.weights, CONV_BLOCKS)
    table = convolution(site, products, weights, places, window, room.pixels)
    x, y = (place.pointer for place in places)
    given = f"&{table}, (const uint8_t *){x}, (uint8_t *){y}"
    with c.block():
        region = part_pointer(site, c, part) if room.has_pairs else f"ew_part_of({', '.join(map(str, part))})"
        room.call(c, f"{given}, {region}", products.weights.shape[1])
