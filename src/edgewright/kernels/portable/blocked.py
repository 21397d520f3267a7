"""What the kernels of plain and of vector C are given for a product layer: packed weights and proven multipliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...network import Array
from ...network.tensor import DType
from ..call import Call as Site
from ..printing.images import image, lies_by_pixels
from ..printing.source import Expr, braced
from ..printing.tensor import CTensor as Place
from ..requantise.multipliers import fit
from ..requantise.sums import Sums, requantised

STACK = 576  # bytes of a column buffer that may lie on the stack when the arena has no hole for it


@dataclass(frozen=True)
class Products:
    """The sums of some channels of a layer, for kernels that multiply stored x: zero points are in `bias`."""

    weights: Array  # (channels, depth) int8
    fields: tuple[Expr, ...]  # of ew_products after the weights
    zero: int  # of x as int8
    flip: int  # what turns a stored x into int8


def products_of(site: Site, step: int = 1) -> tuple[Products, int] | None:
    """The products of the step's channels and the first of these; None when our integer kernels do not fit.

    Weights of 0 make their depth a multiple of `step`.
    """
    first, last = site.region[-1]
    sums = requantised(site)
    if sums is None or not isinstance(first, int) or not isinstance(last, int):
        return None
    flip = 0x80 if site.inputs[0].tensor.dtype is DType.UINT8 else 0
    zero = sums.zero - flip
    base = sums.bias - zero * sums.weights.sum(axis=1, dtype=np.int64)
    weights = sums.weights[first:last]
    weights = np.pad(weights, ((0, 0), (0, -weights.shape[1] % step)))
    fields = product_fields(site, sums, base, (first, last), weights.shape[1]) if _fits(sums, base) else None
    return (Products(weights, fields, zero, flip), first) if fields else None


def product_fields(
    site: Site, sums: Sums, base: Array, channels: tuple[int, int], depth: int
) -> tuple[Expr, ...] | None:
    """The fields of ew_products after the weights, for sums that lack `base`; None where no multipliers are exact."""
    first, last = channels
    fixed = fit(sums.rule, bias=base) if sums.drop_bits is None else fit(sums.rule, drop_bits=sums.drop_bits)
    if fixed is None:
        return None

    def table(values: Array | None, what: str) -> Expr:
        if values is None:
            return 0
        return site.unit.constants.add(values[first:last].astype(np.int32), f"{site.layer.name}: {what}")

    bias = table(base if sums.drop_bits is not None else None, "bias")
    tables = (table(fixed.multiplier, "multipliers"), table(fixed.offset, "offsets"), table(fixed.drop, "drops"))
    return (bias, *tables, depth, last - first, sums.rule.low, sums.rule.high, fixed.left, fixed.shift)


def _fits(sums: Sums, base: Array) -> bool:
    """Whether no sum of stored x can leave 32 bits on the way, whatever the order of its terms."""
    reach = np.abs(base) + 128 * np.abs(sums.weights.astype(np.int64)).sum(axis=1)
    return int(reach.max()) < 1 << 31


def interleaved(weights: Array, widths: Sequence[int]) -> Array:
    """Blocks of channels with their weights side by side for each k: as many of the first width as there are, ..."""
    parts, at = [], 0
    for width in (*widths, 1):
        stop = at + (len(weights) - at) // width * width
        parts.append(weights[at:stop].reshape(-1, width, weights.shape[1]).transpose(0, 2, 1).reshape(-1))
        at = stop
    return np.concatenate(parts)


def is_image(place: Place) -> bool:
    """Whether kernels can walk it, and its sizes fit 16 bits."""
    return lies_by_pixels(place) and max(place.tensor.shape) < 1 << 15


def convolution(
    site: Site, products: Products, weights: Array, places: Sequence[Place], window: Sequence[int], pixels: int
) -> str:
    """The name of the table of an ew_convolution."""
    x, y = places
    note = f"{site.layer.name}: weights"
    fields = (site.unit.constants.add(weights, note), *products.fields)
    _, _, depth, _, kernel_w, _, _, _, dilation_w, *_ = window
    has_runs = kernel_w == 1 or (dilation_w == 1 and x.strides[-2] == depth)
    flags = (products.zero, products.flip, pixels, int(site.is_backward), int(has_runs))
    return site.unit.table("ew_convolution", (braced(fields), image(x), image(y), *window, *flags))


def column_buffer(site: Site, depth: int, most: int, stack: int = STACK) -> tuple[int, str | None] | None:
    """(pixels gathered at once, the buffer in the arena, or None for the stack); None if there is no room.

    On the stack, the buffer has at most `stack` bytes.
    """
    for pixels in (most, 1):
        hole = site.free(pixels * depth)
        if hole is not None or pixels * depth <= stack:
            return pixels, hole
    return None
