"""int8 depthwise convolutions, for microcontrollers: one channel at a time through a ring of gathered rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ...network import Array
from ...network.operators import Conv2d
from ...platform.target import Family
from ...program import Sweep
from ..call import Call as Site
from ..printing.images import image, part_pointer
from ..printing.source import Expr, Source
from ..requantise.depthwise_factors import Factors, factors_of, flip
from . import depthwise_direct

MOST_SIZE = 8192  # of an axis: the kernel's table has 16 bits for sizes, pads and strides included
STACK_BYTES = 768  # for the ring and a run of outputs where the arena has no room


def conv2d(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Conv2d)
    if site.target.family is Family.SIMD or not _fits(site, op):
        return False
    factors = factors_of(site)
    if factors is None:
        return False
    if not depthwise_direct.write(site, c, factors):
        _write(site, c, _geometry(site, op, factors), factors)
    return True


def _fits(site: Site, op: Conv2d) -> bool:
    """Whether each output channel reads one input channel, of images that lie as the kernel expects."""
    x, y, w = site.inputs[0], site.output, site.shapes[1]
    return (
        w[3] == 1
        and op.groups == site.shapes[0][3] > 1  # one channel is an ordinary convolution, and quicker as such
        and x.tensor.shape[0] == 1
        and site.region[0] == (0, 1)
        and max(x.tensor.shape[1:] + y.tensor.shape[1:]) <= MOST_SIZE
        and x.strides[3] == y.strides[3] == 1
        and all(place.window is None or place.window[0] == 1 for place in (x, y))
        and (site.sweep is not Sweep.CHANNELS or op.pads[0] < _extent(w[1], op.dilation[0]))
    )


def _extent(taps: int, dilation: int) -> int:
    return (taps - 1) * dilation + 1


@dataclass(frozen=True)
class _Geometry:
    """How the layer is worked through: rows and columns as the kernel sees them, which may be the image's exchanged."""

    kernel: tuple[int, int]  # dilation written out
    stride: tuple[int, int]
    pads: tuple[int, int]
    size: tuple[int, int, int]  # most rows, columns and channels of the part
    has_sign: bool  # negative sums are rounded otherwise
    axes: tuple[int, int] = (1, 2)
    block: tuple[int, int] | None = None  # rows and columns computed before the first is written
    is_whole: bool = False  # all rows of a part are gathered at once

    @property
    def is_nine(self) -> bool:
        return self.kernel == (3, 3) and self.stride[1] in (1, 2) and not self.has_sign

    @property
    def taps(self) -> int:
        """Numbers of a row of weights."""
        return -(-self.kernel[1] // 2) * 2

    @property
    def pitch(self) -> int:
        """Numbers of a gathered row. Outputs are computed in pairs."""
        columns = self.block[1] if self.block else self.size[1]
        pairs = -(-columns // 2) * 2
        return -(-((pairs - 1) * self.stride[1] + self.taps) // 2) * 2

    @property
    def slots(self) -> int:
        """Gathered rows."""
        rows = self.block[0] if self.block else self.size[0]
        return (rows - 1) * self.stride[0] + self.kernel[0] if self.is_whole else self.kernel[0]

    @property
    def row(self) -> str:
        return "any" if not self.is_nine else "3x3" if self.stride[1] == 1 else "3x3_half"

    @property
    def scratch(self) -> int:
        """Bytes."""
        ring = 2 * (self.slots * self.pitch + (0 if self.is_nine else self.kernel[0] * self.taps))
        block = prod(self.block) * self.size[2] if self.block and self.block != (1, 1) else 0
        return ring + block

    @property
    def exchanged(self) -> _Geometry:
        """With rows for columns."""
        return replace(
            self,
            kernel=self.kernel[::-1],
            stride=self.stride[::-1],
            pads=self.pads[::-1],
            size=(self.size[1], self.size[0], self.size[2]),
            axes=self.axes[::-1],
        )


def _geometry(site: Site, op: Conv2d, factors: Factors) -> _Geometry:
    _, kh, kw, _ = site.shapes[1]
    kernel = _extent(kh, op.dilation[0]), _extent(kw, op.dilation[1])
    size = site.most[1], site.most[2], site.most[3]
    plain = _Geometry(kernel, op.stride, (op.pads[0], op.pads[1]), size, factors.has_sign)
    room = _room(site)
    if site.sweep is not Sweep.CHANNELS and site.shares(0):
        made = _in_blocks(plain, room)
    else:
        made = plain.exchanged if _goes_by_columns(site, op, plain, room) else plain
    whole = replace(made, is_whole=True)
    is_straight = site.output.window is None or size[0] == 1
    return whole if is_straight and whole.scratch <= room else made


def _room(site: Site) -> int:
    """Bytes of scratch to be had."""
    return max(site.hole[1] if site.hole else 0, STACK_BYTES)


def _goes_by_columns(site: Site, op: Conv2d, plain: _Geometry, room: int) -> bool:
    """Whether an image is higher than wide: long rows cost less, and with its axes exchanged it has them."""
    return (
        plain.size[0] > plain.size[1]
        and site.inputs[0].window is None
        and site.output.window is None
        and op.pads[1] < plain.kernel[1]
        and plain.exchanged.scratch <= room
    )


def _in_blocks(plain: _Geometry, room: int) -> _Geometry:
    """The largest blocks there is scratch for: rows, a part of a row, at last single pixels."""
    rows, columns, _ = plain.size
    blocks = [(n, columns) for n in range(rows, 0, -1)] + [(1, n) for n in range(columns - 1, 1, -1)]
    made = (replace(plain, block=block) for block in blocks)
    return next((found for found in made if found.scratch <= room), replace(plain, block=(1, 1)))


def _write(site: Site, c: Source, shape: _Geometry, factors: Factors) -> None:
    site.use("depthwise", "depthwise_plain" if site.target.family is Family.PORTABLE else "depthwise_pairs")
    table = site.unit.table("ew_depthwise", _fields(site, shape, factors))
    x, y = (f"(uint8_t *){pointer}" for pointer in (site.inputs[0].pointer, site.output.pointer))
    with c.block():
        scratch = _scratch(site, c, shape.scratch)
        part = part_pointer(site, c, [bound for axis in shape.axes for bound in site.region[axis]])
        first, last = site.region[3]
        given = f"&{table}, {x}, {y}, {part}, {first}, {last}"
        if shape.block is None:
            c.line(f"ew_depthwise_run({given}, {scratch});")
        else:
            c.line(f"const ew_blocks blocks = {{{shape.block[0]}, {shape.block[1]}, {int(site.is_backward)}}};")
            c.line(f"ew_depthwise_shared({given}, &blocks, {scratch});")


def _scratch(site: Site, c: Source, size: int) -> str:
    """Memory for the ring: free arena, the plane that the plan reserves, or the stack."""
    if hole := site.free(size):
        return f"(int16_t *)(void *){hole}"
    plane = prod(site.result.shape[1:3])
    if site.plane_at and plane >= size + 3:
        return f"ew_word_at({site.plane_at})"
    c.line(f"int32_t scratch[{-(-size // 4)}];")
    return "(int16_t *)scratch"


def _fields(site: Site, shape: _Geometry, factors: Factors) -> list[Expr]:
    op = site.op
    assert isinstance(op, Conv2d)
    x, y = site.inputs[0], site.output
    flip_x, flip_y = flip(x.tensor.dtype), flip(y.tensor.dtype)
    rule = factors.sums.rule
    note = site.layer.name
    return [
        image(x, shape.axes),
        image(y, shape.axes),
        site.unit.constants.add(_spread(site, op, shape), f"{note}: weights"),
        site.unit.constants.add(factors.table, f"{note}: multipliers, offsets"),
        *(x.tensor.shape[axis] for axis in shape.axes),
        *shape.kernel,
        *shape.stride,
        *shape.pads,
        y.tensor.shape[3] // x.tensor.shape[3],
        shape.slots,
        shape.pitch,
        0 if shape.is_nine else shape.taps,
        factors.left,
        factors.shift,
        factors.sums.zero - flip_x,
        rule.low - flip_y,
        rule.high - flip_y,
        flip_x,
        flip_y,
        factors.table.shape[1],
        f"ew_depthwise_{shape.row}",
    ]


def _spread(site: Site, op: Conv2d, shape: _Geometry) -> Array:
    """(channels, kernel_h, kernel_w): the weights with zeros where dilation leaves gaps."""
    weights = site.network.constants[site.inputs[1].tensor.name][..., 0]
    height, width = (_extent(n, d) for n, d in zip(weights.shape[1:], op.dilation, strict=True))
    whole = np.zeros((len(weights), height, width), np.int8)
    whole[:, :: op.dilation[0], :: op.dilation[1]] = weights
    return whole if shape.axes == (1, 2) else whole.transpose(0, 2, 1)
