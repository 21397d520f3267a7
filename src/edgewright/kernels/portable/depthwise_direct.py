"""int8 depthwise convolutions of 3x3 kernels, for cores with many registers: read from where they lie."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...network import DType
from ...network.operators import Conv2d
from ...platform.target import Architecture, Family
from ...program import Sweep
from ..call import Call as Site
from ..printing.images import image, part_pointer
from ..printing.source import Expr, Source
from ..requantise.depthwise_factors import LEAST_LEFT, Factors

FEW_ROWS = 2  # for so few, to copy the row above is not worth it
STACK_BYTES = 768  # for a line and a block of outputs where the arena has no room


@dataclass(frozen=True)
class _Walk:
    """How the layer is worked through."""

    axes: tuple[int, int]  # of the image that are the kernel's rows and columns
    line: int  # bytes of the row above, where it is kept aside
    block: tuple[int, int] | None  # rows and columns computed before the first is written
    depth: int  # channels of a block

    @property
    def scratch(self) -> int:
        return self.line + (self.block[0] * self.block[1] * self.depth if self.block else 0)


def write(site: Site, c: Source, factors: Factors) -> bool:
    """Writes the step, or says False and writes nothing."""
    op = site.op
    assert isinstance(op, Conv2d)
    walk = _walk(site, op) if _fits(site, op, factors) else None
    if walk is None:
        return False
    site.use("depthwise_direct")
    table = site.unit.table("ew_direct", _fields(site, op, factors, walk))
    x, y = f"(int8_t *){site.inputs[0].pointer}", f"(uint8_t *){site.output.pointer}"
    with c.block():
        scratch = _scratch(site, c, walk.scratch)
        first, last = site.region[3]
        given = f"&{table}, {x}, {y}, {part_pointer(site, c, _bounds(site, walk))}, {first}, {last}"
        if walk.block is None:
            c.line(f"ew_direct_run({given}, {scratch});")
        else:
            blocks = site.unit.table("ew_direct_blocks", [*walk.block, int(site.is_backward)])
            c.line(f"ew_direct_shared({given}, &{blocks}, {scratch});")
    return True


def _fits(site: Site, op: Conv2d, factors: Factors) -> bool:
    return (
        site.target.family is Family.PORTABLE
        and site.target.architecture is not Architecture.CORTEX_M
        and site.inputs[0].tensor.dtype is site.result.dtype is DType.INT8
        and site.shapes[1][1:3] == (3, 3)
        and op.stride in ((1, 1), (2, 2))
        and op.dilation == (1, 1)
        and all(-8 <= pad <= 1 for pad in op.pads)
        and not factors.has_sign
        and (site.sweep is not Sweep.CHANNELS or _is_in_place(site, op))
    )


def _is_in_place(site: Site, op: Conv2d) -> bool:
    """Whether each output lies where the middle of its window does."""
    x, y = site.inputs[0], site.output
    sizes = [(0, size) for size in site.result.shape[1:3]]
    is_same = x.pointer == y.pointer and x.strides == y.strides and not x.window and not y.window
    return is_same and op.pads == (1, 1, 1, 1) and op.stride == (1, 1) and list(site.region[1:3]) == sizes


def _walk(site: Site, op: Conv2d) -> _Walk | None:
    """The cheapest way there is scratch for: long rows, and large blocks where memory is shared."""
    _, rows, columns, depth = site.most
    plain = _Walk((1, 2), columns + 2 if _keeps_a_line(site, op) else 0, None, depth)
    room = max(site.hole[1] if site.hole else 0, STACK_BYTES)
    if site.sweep is not Sweep.CHANNELS and site.shares(0):
        blocks = [(n, columns) for n in range(rows, 0, -1)] + [(1, n) for n in range(columns - 1, 0, -1)]
        made = [replace(plain, block=block) for block in blocks]
    else:
        is_free = site.inputs[0].window is None and site.output.window is None
        turned = replace(plain, axes=(2, 1), line=rows + 2 if plain.line else 0)
        made = [turned, plain] if rows > columns and is_free else [plain]
    return next((walk for walk in made if walk.scratch <= room), None)


def _keeps_a_line(site: Site, op: Conv2d) -> bool:
    """Whether the row above is kept aside: to be there in place, and in whole layers, which share that code."""
    return op.stride == (1, 1) and (site.sweep is Sweep.CHANNELS or site.most[1] > FEW_ROWS)


def _scratch(site: Site, c: Source, size: int) -> str:
    """Free arena or the stack."""
    if size == 0:
        return "0"
    if hole := site.free(size):
        return f"(int8_t *){hole}"
    c.line(f"int8_t scratch[{size}];")
    return "scratch"


def _bounds(site: Site, walk: _Walk) -> list[Expr]:
    return [bound for axis in walk.axes for bound in site.region[axis]]


def _fields(site: Site, op: Conv2d, factors: Factors, walk: _Walk) -> list[Expr]:
    x, y = site.inputs[0], site.output
    note = site.layer.name
    weights = site.network.constants[site.inputs[1].tensor.name][..., 0]
    if walk.axes == (2, 1):
        weights = np.ascontiguousarray(weights.transpose(0, 2, 1))
    return [
        image(x, walk.axes),
        image(y, walk.axes),
        site.unit.constants.add(weights, f"{note}: weights"),
        site.unit.constants.add(factors.table, f"{note}: multipliers, offsets"),
        *(x.tensor.shape[axis] for axis in walk.axes),
        y.tensor.shape[3] // x.tensor.shape[3],
        *(factors.sums.zero, factors.sums.rule.low, factors.sums.rule.high),
        op.stride[0],
        *(op.pads[axis - 1] for axis in walk.axes),
        factors.left + LEAST_LEFT,
        factors.shift,
        factors.table.shape[1],
        f"ew_direct_{'kept' if walk.line else 'full' if op.stride == (1, 1) else 'half'}",
    ]
