"""int8 depthwise convolutions, for microcontrollers: one channel at a time through a ring of gathered rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ...network import Array
from ...network.operators import Conv2d
from ...platform.target import Family
from ...program import Sweep
from ..call import CCall, image, part_pointer
from ..kernel import SMALL, Kernel, Offer
from ..printing.source import CWriter, Fields, designated, struct_fields
from ..requantise.depthwise_factors import factors_of
from ..requantise.sums import flip
from ..site import Site, unwrap
from ..window import round_up
from .depthwise_work import depthwise_ring

MOST_SIZE = 8192  # of an axis: tables of the kernels have 16 bits for sizes, pads and strides included


def fits_depthwise(site: Site, op: Conv2d) -> bool:
    """Whether each output channel reads one input channel, of images that lie as the kernels expect."""
    x, y, w = site.inputs[0], site.output, site.shapes[1]
    return (
        w[3] == 1
        and op.groups == site.shapes[0][3] > 1  # one channel is an ordinary convolution, and quicker as such
        and x.tensor.shape[0] == 1
        and site.bounds[0] == (0, 1)
        and max(x.tensor.shape[1:] + y.tensor.shape[1:]) <= MOST_SIZE
        and x.strides[3] == y.strides[3] == 1
        and all(place.window is None or place.window[0] == 1 for place in (x, y))
        and (site.sweep is not Sweep.CHANNELS or op.pads[0] < extent(w[1], op.dilation[0]))
    )


def extent(taps: int, dilation: int) -> int:
    """Rows or columns from the first tap to the last."""
    return (taps - 1) * dilation + 1


STACK_BYTES = 768  # for the ring and a run of outputs where the arena has no room
MOST_STACK = 1 << 16  # for the least of rings: still better than plain loops


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
    def is_3x3(self) -> bool:
        return self.kernel == (3, 3) and self.stride[1] in (1, 2) and not self.has_sign

    @property
    def taps(self) -> int:
        """Numbers of a row of weights."""
        return round_up(self.kernel[1], 2)

    @property
    def pitch(self) -> int:
        """Numbers of a gathered row. Outputs are computed in pairs."""
        columns = self.block[1] if self.block else self.size[1]
        return round_up((round_up(columns, 2) - 1) * self.stride[1] + self.taps, 2)

    @property
    def slots(self) -> int:
        """Gathered rows."""
        rows = self.block[0] if self.block else self.size[0]
        return (rows - 1) * self.stride[0] + self.kernel[0] if self.is_whole else self.kernel[0]

    @property
    def row(self) -> str:
        return "any" if not self.is_3x3 else "3x3" if self.stride[1] == 1 else "3x3_half"

    @property
    def scratch(self) -> int:
        """Bytes."""
        ring = 2 * (self.slots * self.pitch + (0 if self.is_3x3 else self.kernel[0] * self.taps))
        block = prod(self.block) * self.size[2] if self.block and self.block != (1, 1) else 0
        return ring + block

    @property
    def exchanged(self) -> _Geometry:
        """The same with rows and columns exchanged."""
        return replace(
            self,
            kernel=self.kernel[::-1],
            stride=self.stride[::-1],
            pads=self.pads[::-1],
            size=(self.size[1], self.size[0], self.size[2]),
            axes=self.axes[::-1],
        )

    @property
    def variant(self) -> dict[str, int]:
        """What tells it from others of the layer; blocks of no rows stand for none."""
        rows, columns = self.block or (0, 0)
        return {"exchanged": int(self.axes == (2, 1)), "rows": rows, "columns": columns, "whole": int(self.is_whole)}


def _plain(site: Site) -> _Geometry:
    op, (_, kh, kw, _), factors = site.op_as(Conv2d), site.shapes[1], unwrap(factors_of(site))
    kernel = extent(kh, op.dilation[0]), extent(kw, op.dilation[1])
    size = site.most[1], site.most[2], site.most[3]
    return _Geometry(kernel, op.stride, (op.pads[0], op.pads[1]), size, factors.has_sign)


def _offered(site: Site, offer: Offer) -> _Geometry:
    """What the offer stands for."""
    made = _plain(site).exchanged if offer["exchanged"] else _plain(site)
    block = (offer["rows"], offer["columns"]) if offer["rows"] else None
    return replace(made, block=block, is_whole=bool(offer["whole"]))


def _is_ours(site: Site) -> bool:
    assert isinstance(site.op, Conv2d)
    return fits_depthwise(site, site.op) and factors_of(site) is not None


def offers(site: Site) -> Iterator[Offer]:
    """Long rows before short ones, large blocks before small ones, and all rows at once before a ring of a few."""
    if not _is_ours(site):
        return
    is_straight = site.output.window is None or site.most[1] == 1
    for made in _geometries(site):
        for shape in [replace(made, is_whole=True), made] if is_straight else [made]:
            yield Offer.of(shape.scratch, **shape.variant)
    least = _least(site)
    if _has_plane(site, least):
        yield Offer.of(0, **least.variant)


def offers_least(site: Site) -> Iterator[Offer]:
    """What takes the least memory."""
    if _is_ours(site):
        least = _least(site)
        yield Offer.of(least.scratch, **least.variant)


def _geometries(site: Site) -> Iterator[_Geometry]:
    """The ways to work through the layer, the fastest first."""
    plain = _plain(site)
    if _is_shared(site):
        rows, columns, _ = plain.size
        blocks = [(n, columns) for n in range(rows, 0, -1)] + [(1, n) for n in range(columns - 1, 0, -1)]
        yield from (replace(plain, block=block) for block in blocks)
        return
    if _goes_by_columns(site, plain):
        yield plain.exchanged
    yield plain


def _least(site: Site) -> _Geometry:
    """Single pixels where memory is shared, else a ring of rows."""
    return replace(_plain(site), block=(1, 1) if _is_shared(site) else None)


def _is_shared(site: Site) -> bool:
    """Whether outputs are written over inputs, so that blocks of them are computed before the first is written."""
    return site.sweep is not Sweep.CHANNELS and site.shares(0)


def _goes_by_columns(site: Site, plain: _Geometry) -> bool:
    """Whether an image is higher than wide: long rows cost less, and with its axes exchanged it has them."""
    is_circular = site.inputs[0].window or site.output.window
    return plain.size[0] > plain.size[1] and not is_circular and plain.pads[1] < plain.kernel[1]


def _has_plane(site: Site, shape: _Geometry) -> bool:
    """Whether the plane that the plan reserves holds the ring, from a whole word on."""
    return site.plane >= shape.scratch + 3


def write(call: CCall, offer: Offer, c: CWriter) -> None:
    shape = _offered(call, offer)
    call.use("depthwise", "depthwise_plain" if call.target.family is Family.PORTABLE else "depthwise_pairs")
    table = call.module.table("ew_depthwise", _fields(call, shape))
    x, y = (f"(uint8_t *){pointer}" for pointer in (call.inputs[0].pointer, call.output.pointer))
    with c.block():
        scratch = _scratch(call, c, shape)
        part = part_pointer(call, c, [bound for axis in shape.axes for bound in call.region[axis]])
        first, last = call.region[3]
        given = f"&{table}, {x}, {y}, {part}, {first}, {last}"
        if shape.block is None:
            c.line(f"ew_depthwise_run({given}, {scratch});")
        else:
            sizes = struct_fields(("rows", "columns", "backward"), (*shape.block, int(call.is_backward)))
            c.line(f"const ew_blocks blocks = {designated(sizes)};")
            c.line(f"ew_depthwise_shared({given}, &blocks, {scratch});")


def _scratch(call: CCall, c: CWriter, shape: _Geometry) -> str:
    """Memory for the ring: free arena, the plane that the plan reserves, or the stack."""
    if call.plane_at and not call.arena_scratch and _has_plane(call, shape):
        return f"ew_word_at({call.plane_at})"
    return f"(int16_t *){call.scratch(c, 'int32_t', -(-shape.scratch // 4))}"


def _fields(call: CCall, shape: _Geometry) -> Fields:
    """Of ew_depthwise: all channels of the layer, of which the call says which it computes."""
    x, y, factors = call.inputs[0], call.output, unwrap(factors_of(call))
    flip_x, flip_y = flip(x.tensor), flip(y.tensor)
    rule = factors.sums.rule
    sizes = (*(x.tensor.shape[axis] for axis in shape.axes), *shape.kernel, *shape.stride, *shape.pads)
    return {
        "x": image(x, shape.axes),
        "y": image(y, shape.axes),
        "weights": call.add(_spread(call, shape), "weights"),
        "factors": call.add(factors.table, "multipliers, offsets"),
        **struct_fields(("height", "width", "kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w"), sizes),
        "multiplier": y.tensor.shape[3] // x.tensor.shape[3],
        "slots": shape.slots,
        "pitch": shape.pitch,
        "taps": 0 if shape.is_3x3 else shape.taps,
        "left": factors.left,
        "shift": factors.shift,
        "zero": factors.sums.zero - flip_x,
        "low": rule.low - flip_y,
        "high": rule.high - flip_y,
        "flip_x": flip_x,
        "flip_y": flip_y,
        "factor_count": factors.table.shape[1],
        "row": f"ew_depthwise_{shape.row}",
    }


def _spread(site: Site, shape: _Geometry) -> Array:
    """(channels, kernel_h, kernel_w): the weights with zeros where dilation leaves gaps."""
    op = site.op_as(Conv2d)
    weights = site.weights[..., 0]
    height, width = (extent(n, d) for n, d in zip(weights.shape[1:], op.dilation, strict=True))
    whole = np.zeros((len(weights), height, width), np.int8)
    whole[:, :: op.dilation[0], :: op.dilation[1]] = weights
    return whole if shape.axes == (1, 2) else whole.transpose(0, 2, 1)


RING = Kernel("depthwise_ring", (Conv2d,), offers, write, SMALL, stack=STACK_BYTES, work=depthwise_ring)
LEAST_RING = Kernel(
    "depthwise_least_ring", (Conv2d,), offers_least, write, SMALL, stack=MOST_STACK, work=depthwise_ring
)
