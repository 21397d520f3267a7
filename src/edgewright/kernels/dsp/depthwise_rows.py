"""int8 depthwise convolutions of 3x3 kernels a row at a time, for cores with pairs of 16-bit products."""

from __future__ import annotations

import numpy as np

from ...network import Array, DType, Region
from ...network.operators import Conv2d
from ...platform.target import Family
from ...program import Sweep
from ..call import CCall, image, part_pointer
from ..cost.work import KernelWork
from ..kernel import Kernel, Offer, where
from ..portable.depthwise import fits_depthwise
from ..portable.depthwise_work import depthwise_rows
from ..printing.source import CWriter, Fields, struct_fields
from ..requantise.depthwise_factors import Factors, factors_shifted_by
from ..requantise.sums import flip
from ..site import Site, unwrap

FILE = "depthwise_rows"
LEFT = 13  # bits that sums are shifted: EW_ROWS_LEFT, and 8 of the weights
ORDER = [0, 1, 3, 4, 2, 6, 5, 7]  # of the weights: each two become the upper bytes of halves of a word


def suits(site: Site) -> bool:
    op = site.op_as(Conv2d)
    return fits_depthwise(site, op) and _fits(site, op) and _pays(site, op) and _factors(site) is not None


def _factors(site: Site) -> Factors | None:
    return site.facts.once(FILE, lambda: factors_shifted_by(site, LEFT))


def _fits(site: Site, op: Conv2d) -> bool:
    x, y = site.inputs[0], site.output
    return (
        x.tensor.dtype is DType.INT8
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
    """Whether few rows are computed at once. With a stride of 2, where the kernel is linked already, any number."""
    return site.most[1] <= 2 or (op.stride == (2, 2) and FILE in site.linked_kernels)


def write(call: CCall, _: Offer, c: CWriter) -> None:
    call.use(FILE)
    table = call.module.table("ew_rows", _fields(call))
    x, y = f"(const int8_t *){call.inputs[0].pointer}", f"(uint8_t *){call.output.pointer}"
    (first, last), bounds = call.region[3], [bound for axis in (1, 2) for bound in call.region[axis]]
    with c.block():
        c.line(f"ew_rows_run(&{table}, {x}, {y}, {part_pointer(call, c, bounds)}, {first}, {last});")


def _fields(call: CCall) -> Fields:
    op, x, y, factors = call.op_as(Conv2d), call.inputs[0], call.output, unwrap(_factors(call))
    rule, up = factors.sums.rule, flip(y.tensor)
    return {
        "x": image(x),
        "y": image(y),
        "channels": call.add(_channels(call, factors), "weights, multiplier and offset of each channel"),
        "line": "ew_rows_full" if op.stride == (1, 1) else "ew_rows_half",
        **struct_fields(("height", "width"), x.tensor.shape[1:3]),
        "stride": op.stride[0],
        **struct_fields(("pad_h", "pad_w"), op.pads[:2]),
        "zero": factors.sums.zero,
        "low": rule.low - up,
        "high": rule.high - up,
        "flip": up,
        "shift": factors.shift,
        "own_shifts": int(_has_own_shifts(factors)),
    }


def _channels(site: Site, factors: Factors) -> Array:
    """(channels, 5) int32: what the kernel knows of each channel, see EW_ROWS_NUMBERS."""
    weights = site.weights.reshape(-1, 9)
    table = factors.table.astype(np.int64)
    shift = table[:, 2] if _has_own_shifts(factors) else 0 * table[:, 0]
    bytes_ = weights[:, ORDER].view(np.uint8).astype(np.int64).reshape(-1, 2, 4)
    words = (bytes_ << np.array([0, 8, 16, 24])).sum(axis=2)
    last = (shift << 16) + ((weights[:, 8].astype(np.int64) << 8) & 0xFFFF)
    numbers = np.column_stack([words, last, table[:, :2]])
    return (numbers & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def _has_own_shifts(factors: Factors) -> bool:
    return factors.table.shape[1] == 3


def _work(site: Site, offer: Offer, region: Region, _: Region | None) -> KernelWork:
    factors = _factors(site)
    return depthwise_rows(site, offer, region, has_own_shifts=factors is not None and _has_own_shifts(factors))


DEPTHWISE_ROWS = Kernel(
    "depthwise_rows", (Conv2d,), where(suits), write, frozenset({Family.DSP, Family.HELIUM}), work=_work
)
