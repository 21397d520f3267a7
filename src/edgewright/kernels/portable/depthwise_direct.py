"""int8 depthwise convolutions of 3x3 kernels, for cores with many registers: read from where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...network import DType
from ...network.operators import Conv2d
from ...platform.target import Architecture, Family
from ...program import Sweep
from ..call import CCall, image, part_pointer
from ..kernel import Kernel, Offer
from ..printing.source import CWriter, Fields
from ..requantise.depthwise_factors import LEAST_LEFT, factors_of
from ..site import Site, unwrap
from .depthwise import fits_depthwise
from .depthwise_work import depthwise_direct

FEW_ROWS = 2  # for so few, to copy the row above is not worth it
STACK_BYTES = 768  # for a line and a block of outputs where the arena has no room


@dataclass(frozen=True)
class _Traversal:
    """How the layer is worked through."""

    axes: tuple[int, int]  # of the image that are the kernel's rows and columns
    line: int  # bytes of the row above, where it is kept aside
    block: tuple[int, int] | None  # rows and columns computed before the first is written
    depth: int  # channels of a block

    @property
    def offer(self) -> Offer:
        """The offer that stands for it; blocks of no rows mean that there are no blocks."""
        rows, columns = self.block or (0, 0)
        scratch = self.line + rows * columns * self.depth
        return Offer.of(
            scratch, exchanged=int(self.axes == (2, 1)), line=int(self.line > 0), rows=rows, columns=columns
        )


def offers(site: Site) -> Iterator[Offer]:
    """Long rows before short ones; large blocks before small ones where memory is shared."""
    op = site.op_as(Conv2d)
    if not fits_depthwise(site, op) or not _fits(site, op):
        return
    factors = factors_of(site)
    if factors is not None and not factors.has_sign:
        yield from (walk.offer for walk in _walks(site, op))


def _fits(site: Site, op: Conv2d) -> bool:
    return (
        site.target.architecture is not Architecture.CORTEX_M
        and site.inputs[0].tensor.dtype is site.result.dtype is DType.INT8
        and site.shapes[1][1:3] == (3, 3)
        and op.stride in ((1, 1), (2, 2))
        and op.dilation == (1, 1)
        and all(-8 <= pad <= 1 for pad in op.pads)
        and (site.sweep is not Sweep.CHANNELS or _is_in_place(site, op))
    )


def _is_in_place(site: Site, op: Conv2d) -> bool:
    """Whether each output lies where the middle of its window does."""
    x, y = site.inputs[0], site.output
    is_same = site.shares(0) and x.first == y.first and x.strides == y.strides and not x.window and not y.window
    sizes = tuple((0, size) for size in site.result.shape[1:3])
    return is_same and op.pads == (1, 1, 1, 1) and op.stride == (1, 1) and site.bounds[1:3] == sizes


def _walks(site: Site, op: Conv2d) -> Iterator[_Traversal]:
    _, rows, columns, depth = site.most
    plain = _Traversal((1, 2), columns + 2 if _keeps_a_line(site, op) else 0, None, depth)
    if site.sweep is not Sweep.CHANNELS and site.shares(0):
        blocks = [(n, columns) for n in range(rows, 0, -1)] + [(1, n) for n in range(columns - 1, 0, -1)]
        yield from (replace(plain, block=block) for block in blocks)
        return
    is_free = site.inputs[0].window is None and site.output.window is None
    if rows > columns and is_free:
        yield replace(plain, axes=(2, 1), line=rows + 2 if plain.line else 0)
    yield plain


def _keeps_a_line(site: Site, op: Conv2d) -> bool:
    """Whether the row above is kept aside: to be there in place, and in whole layers, which share that code."""
    return op.stride == (1, 1) and (site.sweep is Sweep.CHANNELS or site.most[1] > FEW_ROWS)


def write(call: CCall, offer: Offer, c: CWriter) -> None:
    call.use("depthwise_direct")
    axes = (2, 1) if offer["exchanged"] else (1, 2)
    table = call.module.table("ew_direct", _fields(call, axes, bool(offer["line"])))
    x, y = f"(int8_t *){call.inputs[0].pointer}", f"(uint8_t *){call.output.pointer}"
    (first, last), bounds = call.region[3], [bound for axis in axes for bound in call.region[axis]]
    with c.block():
        scratch = _scratch(call, c, offer.scratch)
        given = f"&{table}, {x}, {y}, {part_pointer(call, c, bounds)}, {first}, {last}"
        if offer["rows"] == 0:
            c.line(f"ew_direct_run({given}, {scratch});")
        else:
            sizes = {"rows": offer["rows"], "columns": offer["columns"], "backward": int(call.is_backward)}
            blocks = call.module.table("ew_direct_blocks", sizes)
            c.line(f"ew_direct_shared({given}, &{blocks}, {scratch});")


def _scratch(call: CCall, c: CWriter, size: int) -> str:
    """Free arena or the stack."""
    if size == 0:
        return "0"
    return call.scratch(c, "int8_t", size)


def _fields(call: CCall, axes: tuple[int, int], keeps_a_line: bool) -> Fields:
    """Of ew_direct: all channels of the layer, of which the call says which it computes."""
    op, x, y, factors = call.op_as(Conv2d), call.inputs[0], call.output, unwrap(factors_of(call))
    weights = call.weights[..., 0]
    if axes == (2, 1):
        weights = np.ascontiguousarray(weights.transpose(0, 2, 1))
    (height, width), (top, left) = ([sizes[axis - 1] for axis in axes] for sizes in (x.tensor.shape[1:3], op.pads[:2]))
    return {
        "x": image(x, axes),
        "y": image(y, axes),
        "weights": call.add(weights, "weights"),
        "factors": call.add(factors.table, "multipliers, offsets"),
        "height": height,
        "width": width,
        "multiplier": y.tensor.shape[3] // x.tensor.shape[3],
        "zero": factors.sums.zero,
        "low": factors.sums.rule.low,
        "high": factors.sums.rule.high,
        "stride": op.stride[0],
        "pad_h": top,
        "pad_w": left,
        "left": factors.left + LEAST_LEFT,
        "shift": factors.shift,
        "factor_count": factors.table.shape[1],
        "plane": f"ew_direct_{'kept' if keeps_a_line else 'full' if op.stride == (1, 1) else 'half'}",
    }


DIRECT = Kernel(
    "depthwise_direct", (Conv2d,), offers, write, frozenset({Family.PORTABLE}), stack=STACK_BYTES, work=depthwise_direct
)
