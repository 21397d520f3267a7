"""Convolutions one pixel at a time on cores with pairs of 16-bit products, where there is little memory for columns."""

from __future__ import annotations

from math import prod

from ...network.operators import Conv2d
from ...network.tensor import DType
from ..call import Call as Site
from ..printing.images import image, part_pointer
from ..printing.nest import loops
from ..printing.source import Expr, Source, braced
from .packing import LARGEST, Packed, packed_fours

STACK = 1152  # bytes of a window that may lie on the stack when the arena has no room for it


def write(site: Site, c: Source) -> bool:
    """Writes the step of images that lie by pixels, or says False and writes nothing."""
    op = site.op
    assert isinstance(op, Conv2d)
    taps = prod(site.shapes[1][1:])
    buffer = site.free(taps)
    if not _fits(site, op) or (buffer is None and taps > STACK):
        return False
    found = packed_fours(site, taps)
    if found is None:
        return False
    made, kernel = found
    site.use("dsp_windows", kernel)
    table = site.unit.table("ew_dsp_windows", _fields(site, op, made, kernel))
    batch, rows, columns, _ = site.region
    with loops(c, [batch], "n", backward=site.is_backward) as (n,), c.block():
        part = part_pointer(site, c, (*rows, *columns))
        if buffer is None:
            c.line(f"uint8_t window[{taps}];")
        x, y = site.inputs[0].address((n, 0, 0, 0)), site.output.address((n, 0, 0, made.first))
        c.line(f"ew_dsp_windows_run(&{table}, {x}, {y}, {part}, {buffer or 'window'});")
    return True


def _fits(site: Site, op: Conv2d) -> bool:
    """Whether all numbers fit the small types of ew_dsp_windows."""
    bytes_ = (*site.shapes[1][1:3], *op.stride, *op.dilation)
    return max(site.shapes[0]) <= LARGEST and max(bytes_) <= 255 and max(map(abs, op.pads)) <= 127


def _fields(site: Site, op: Conv2d, made: Packed, kernel: str) -> tuple[Expr, ...]:
    flip = 128 if site.inputs[0].tensor.dtype is DType.UINT8 else 0
    return (
        braced(made.fields),
        f"ew_{kernel}",
        *(image(site.inputs[0]), image(site.output)),
        *(*site.shapes[0][1:], *site.shapes[1][1:3]),
        *(*op.stride, *op.dilation, *op.pads[:2]),
        *((made.zero + flip) & 255, int(site.is_backward)),
    )
