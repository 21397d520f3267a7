"""float32 convolutions and dense layers on small cores: four channels of a pixel at a time."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

import numpy as np

from ...network.operators import Activation, Clamp, Conv2d, Dense
from ...network.tensor import DType
from ...platform.target import Family
from ...program import Sweep
from ..call import Call as Site
from ..portable.blocked import is_image
from ..printing.constants import number
from ..printing.images import image, part_pointer
from ..printing.source import Expr, Source, braced

BLOCK = 4  # channels


def conv2d(site: Site, c: Source) -> bool:
    """Pixel by pixel in the order of the sweep, so that memory may be shared."""
    op = site.op
    assert isinstance(op, Conv2d)
    x, w = site.shapes[:2]
    if op.groups != 1 or site.region[0] != (0, 1) or not _fits(site, op.activation):
        return False
    if not is_image(site.inputs[0]) or not is_image(site.output):
        return False
    window = (*x[1:], w[1], w[2], *op.stride, *op.dilation, *op.pads[:2])
    images = (image(site.inputs[0]), image(site.output))
    return _write(site, c, op.activation, window, images, (*site.region[1], *site.region[2]))


def dense(site: Site, c: Source) -> bool:
    """A row of pixels under a 1x1 convolution."""
    op = site.op
    assert isinstance(op, Dense)
    x, y = site.inputs[0], site.output
    if not _fits(site, op.activation) or not site.is_whole or not x.is_dense or not y.is_dense:
        return False
    depth, channels = x.tensor.shape[-1], y.tensor.shape[-1]
    rows = x.tensor.size // depth
    window = (1, rows, depth, 1, 1, 1, 1, 1, 1, 0, 0)
    return _write(
        site, c, op.activation, window, (braced((0, depth, 0)), braced((0, channels, 0))), (0, 1, 0, rows)
    )


def _fits(site: Site, activation: Activation | None) -> bool:
    places = (*site.inputs, site.output)
    return (
        site.target.family is not Family.SIMD
        and site.sweep is not Sweep.CHANNELS
        and all(place.tensor.dtype is DType.FLOAT32 for place in places)
        and all(place.is_constant for place in site.inputs[1:])
        and isinstance(activation, Clamp | None)
        and all(isinstance(bound, int) for bound in site.region[-1])
    )


def _write(
    site: Site,
    c: Source,
    activation: Activation | None,
    window: Sequence[int],
    images: Sequence[str],
    part: Sequence[Expr],
) -> bool:
    first, last = site.region[-1]
    assert isinstance(first, int) and isinstance(last, int)
    tables = _tables(site, first, last)
    fields: tuple[Expr, ...] = (*tables, *images, *window)
    site.use("real_conv")
    table = site.unit.table("ew_real_conv", (*fields, last - first, *limits(activation)))
    x, y = site.inputs[0], site.output
    target = y.address((*(0 for _ in y.strides[:-1]), first))
    with c.block():
        where = part_pointer(site, c, part)
        c.line(f"ew_real_conv_run(&{table}, {x.pointer}, {target}, {where}, {int(site.is_backward)});")
    return True


def _tables(site: Site, first: int, last: int) -> tuple[Expr, Expr]:
    """Weights (blocks, depth, 4) and bias, with zeros for the channels that a last block lacks."""
    add, name = site.unit.constants.add, site.layer.name
    constants = [np.asarray(site.network.constants[place.tensor.name][first:last]) for place in site.inputs[1:]]
    weights = constants[0].reshape(last - first, -1)
    more = -len(weights) % BLOCK
    blocks = np.pad(weights, ((0, more), (0, 0))).reshape(-1, BLOCK, weights.shape[1]).transpose(0, 2, 1)
    bias = add(np.pad(constants[1], (0, more)), f"{name}: bias") if len(constants) > 1 else 0
    return add(blocks, f"{name}: weights in fours"), bias


def limits(activation: Activation | None) -> tuple[Expr, ...]:
    """The fields limits, low and high."""
    if not isinstance(activation, Clamp):
        return 0, "0.0f", "0.0f"
    low, high = ("0.0f" if isinf(end) else number(end) for end in (activation.low, activation.high))
    return (not isinf(activation.low)) + 2 * (not isinf(activation.high)), low, high
