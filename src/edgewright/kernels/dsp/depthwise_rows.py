"""int8 depthwise convolutions of 3x3 kernels a row at a time, for cores with pairs of 16-bit products."""

from __future__ import annotations

import numpy as np

from ...network import Array, DType
from ...network.operators import Conv2d
from ...platform.target import Family
from ...program import Sweep
from ..call import Call as Site
from ..printing.images import image, part_pointer
from ..printing.source import Expr, Source
from ..requantise.depthwise_factors import Factors, factors_shifted_by, flip

KERNEL = "depthwise_rows"
LEFT = 13  # bits that sums are shifted: EW_ROWS_LEFT, and 8 of the weights
ORDER = [0, 1, 3, 4, 2, 6, 5, 7]  # of the weights: each two become the upper bytes of halves of a word


def write(site: Site, c: Source) -> bool:
    """Writes the step, or says False and writes nothing."""
    op = site.op
    assert isinstance(op, Conv2d)
    factors = factors_shifted_by(site, LEFT) if _fits(site, op) and _pays(site, op) else None
    if factors is None:
        return False
    site.use(KERNEL)
    table = site.unit.table("ew_rows", _fields(site, op, factors))
    x, y = f"(const int8_t *){site.inputs[0].pointer}", f"(uint8_t *){site.output.pointer}"
    (first, last), bounds = site.region[3], [bound for axis in (1, 2) for bound in site.region[axis]]
    with c.block():
        c.line(f"ew_rows_run(&{table}, {x}, {y}, {part_pointer(site, c, bounds)}, {first}, {last});")
    return True


def _fits(site: Site, op: Conv2d) -> bool:
    x, y = site.inputs[0], site.output
    return (
        site.target.family in (Family.DSP, Family.HELIUM)
        and x.tensor.dtype is DType.INT8
        and site.shapes[1][1:3] == (3, 3)
        and op.stride in ((1, 1), (2, 2))
        and op.dilation == (1, 1)
        and all(-8 <= pad <= 1 for pad in op.pads)
        and x.tensor.shape[3] == y.tensor.shape[3]
        and x.strides[2] == y.strides[2]
        and site.sweep is not Sweep.CHANNELS
        and not site.shares(0)
    )


def _pays(site: Site, op: Conv2d) -> bool:
    """Whether few rows are computed at once; strided ones gain anyway where the kernel is there already."""
    return site.most[1] <= 2 or (op.stride == (2, 2) and KERNEL in site.unit.kernels)


def _fields(site: Site, op: Conv2d, factors: Factors) -> list[Expr]:
    x, y = site.inputs[0], site.output
    note, rule, up = site.layer.name, factors.sums.rule, flip(y.tensor.dtype)
    return [
        image(x),
        image(y),
        site.unit.constants.add(
            _channels(site, factors), f"{note}: weights, multiplier and offset of each channel"
        ),
        "ew_rows_full" if op.stride == (1, 1) else "ew_rows_half",
        *x.tensor.shape[1:3],
        op.stride[0],
        *op.pads[:2],
        *(factors.sums.zero, rule.low - up, rule.high - up, up),
        *(factors.shift, int(_has_own_shifts(factors))),
    ]


def _channels(site: Site, factors: Factors) -> Array:
    """(channels, 5) int32: what the kernel knows of each channel, see EW_ROWS_NUMBERS."""
    weights = site.network.constants[site.inputs[1].tensor.name].reshape(-1, 9)
    table = factors.table.astype(np.int64)
    shift = table[:, 2] if _has_own_shifts(factors) else 0 * table[:, 0]
    bytes_ = weights[:, ORDER].view(np.uint8).astype(np.int64).reshape(-1, 2, 4)
    words = (bytes_ << np.array([0, 8, 16, 24])).sum(axis=2)
    last = (shift << 16) + ((weights[:, 8].astype(np.int64) << 8) & 0xFFFF)
    numbers = np.column_stack([words, last, table[:, :2]])
    return (numbers & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def _has_own_shifts(factors: Factors) -> bool:
    return factors.table.shape[1] == 3
