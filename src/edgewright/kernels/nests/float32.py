"""float32 convolutions and dense layers on small cores, four channels of a pixel at a time.

Clamps are part of the kernel; other activations are a second pass over the stored output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf

import numpy as np

from ...network.operators import Activation, Clamp, Conv2d, Dense
from ...network.tensor import DType
from ...program import Sweep
from ..call import WINDOW, CCall, image, image_of, is_image, part_pointer, window_sizes
from ..cost.products import real_work
from ..kernel import SMALL, Kernel, Offer, of_region, where
from ..printing.constants import number
from ..printing.nest import elements
from ..printing.source import CWriter, Expr, Fields, struct_fields
from ..site import ChannelRange, Site
from .activations import activated

BLOCK = 4  # channels


@dataclass(frozen=True)
class ConvGeometry:
    """What the kernels are told of a convolution, but for weights and channels."""

    images: tuple[Fields, Fields]  # ew_image of x and of the output
    sizes: tuple[int, ...]  # see `window_sizes`

    @property
    def fields(self) -> Fields:
        x, y = self.images
        return {"x": x, "y": y, **struct_fields(WINDOW, self.sizes)}


def conv_geometry(site: Site) -> ConvGeometry:
    return ConvGeometry((image(site.inputs[0]), image(site.output)), window_sizes(site, site.shapes[1][3]))


def row_geometry(pixels: int, depth: int, channels: int) -> ConvGeometry:
    """A row of pixels under a 1x1 convolution: what a dense layer is."""
    images = (image_of(0, depth), image_of(0, channels))
    return ConvGeometry(images, (1, pixels, depth, 1, 1, 1, 1, 1, 1, 0, 0))


def suits_conv(site: Site) -> bool:
    """Pixel by pixel in the order of the sweep, so that memory may be shared."""
    op = site.op_as(Conv2d)
    is_one_image = site.bounds[0] == (0, 1) and is_image(site.inputs[0]) and is_image(site.output)
    return op.groups == 1 and is_one_image and _fits(site)


def write_conv(call: CCall, _: Offer, c: CWriter) -> None:
    rows, columns = call.region[1:3]
    _write(call, c, conv_geometry(call), (*rows, *columns))


def suits_dense(site: Site) -> bool:
    return _fits(site) and site.is_whole and site.inputs[0].is_dense and site.output.is_dense


def write_dense(call: CCall, _: Offer, c: CWriter) -> None:
    x = call.inputs[0].tensor
    depth, channels = x.shape[-1], call.result.shape[-1]
    rows = x.size // depth
    _write(call, c, row_geometry(rows, depth, channels), (0, 1, 0, rows))


def _fits(site: Site) -> bool:
    places = (*site.inputs, site.output)
    return (
        site.sweep is not Sweep.CHANNELS
        and all(place.tensor.dtype is DType.FLOAT32 for place in places)
        and all(place.is_constant for place in site.inputs[1:])
        and bool(site.ranges)
    )


def _write(call: CCall, c: CWriter, geometry: ConvGeometry, part: Sequence[Expr]) -> None:
    def fields(channels: ChannelRange) -> Fields:
        weights, bias = _packed(call, channels)
        sizes = {**geometry.fields, "channels": channels.count}
        return {"weights": weights, "bias": bias, **sizes, **limits(call.activation)}

    call.use("real_conv")
    table = call.table("ew_real_conv", fields)
    x, y = call.inputs[0], call.output
    target = y.address((*(0 for _ in y.strides[:-1]), call.region[-1][0]))
    with c.block():
        where = part_pointer(call, c, part)
        c.line(f"ew_real_conv_run(&{table}, {x.pointer}, {target}, {where}, {int(call.is_backward)});")
    activation = call.activation
    if not isinstance(activation, Clamp | None):
        with elements(c, call.region, [y]) as ((at,), _):
            c.line(f"{y.pointer}[{at}] = {activated(call, activation, f'{y.pointer}[{at}]')};")


def _packed(call: CCall, channels: ChannelRange) -> tuple[Expr, Expr]:
    """Weights (blocks, depth, 4) and bias, with zeros for the channels that a last block lacks."""
    first, last = channels.channels
    constants = [np.asarray(call.network.constants[place.tensor.name][first:last]) for place in call.inputs[1:]]
    weights = constants[0].reshape(channels.count, -1)
    more = -len(weights) % BLOCK
    blocks = np.pad(weights, ((0, more), (0, 0))).reshape(-1, BLOCK, weights.shape[1]).transpose(0, 2, 1)
    bias = call.add(np.pad(constants[1], (0, more)), "bias") if len(constants) > 1 else 0
    return call.add(blocks, "weights in fours"), bias


def limits(activation: Activation | None) -> Fields:
    """The fields of what keeps outputs in a range."""
    if not isinstance(activation, Clamp):
        return {"limits": 0, "low": "0.0f", "high": "0.0f"}
    low, high = ("0.0f" if isinf(end) else number(end) for end in (activation.low, activation.high))
    which = (not isinf(activation.low)) + 2 * (not isinf(activation.high))
    return {"limits": which, "low": low, "high": high}


CONV = Kernel("real_conv", (Conv2d,), where(suits_conv), write_conv, SMALL, work=of_region(real_work))
DENSE = Kernel("real_dense", (Dense,), where(suits_dense), write_dense, SMALL, work=of_region(real_work))
