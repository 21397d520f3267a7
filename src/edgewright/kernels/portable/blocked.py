"""What the kernels of plain and of vector C are given for a product layer: packed weights and proven multipliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...network import Arithmetic, Array, Interval
from ...program.nesting import split_channels
from ..call import WINDOW, CCall, image
from ..printing.constants import WeightRows
from ..printing.source import Expr, Fields, struct_fields
from ..requantise.multipliers import EvenRounding, Fixed, Rule, fit, fit_even
from ..requantise.sums import Requantised, flip, larger_layer, requantised
from ..site import ChannelRange, Site, is_split, unwrap
from ..strided_tensor import StridedTensor

WIDE, EVEN = 0xFF, 0xFE  # in place of a shift: see portable_wide.h and portable_even.h
Arrangement = Callable[[Array], tuple[Array, WeightRows]]  # of weights (channels, depth): as they lie in flash
STACK = 576  # bytes of a column buffer that may lie on the stack when the arena has no room for it


@dataclass(frozen=True)
class Scaling:
    """How the sums of a whole layer become stored values, by multipliers that are proven."""

    rule: Rule
    fixed: Fixed | EvenRounding
    bias: Array | None  # (channels,) added to the sums before; None: it is in the offsets
    zero: int = 0  # of the output, where the float product decides

    @property
    def kind(self) -> str:
        """How sums are stored: by offsets of 32 bits, by "wide" ones, or rounded to "even" numbers."""
        if isinstance(self.fixed, EvenRounding):
            return "even"
        return "wide" if self.fixed.is_wide else "narrow"

    def fields(self, call: CCall, channels: Interval, depth: int) -> Fields:
        """The fields of ew_products between the weights and their pitch."""
        first, last = channels

        def table(values: Array | None, what: str) -> Expr:
            return 0 if values is None else call.add(values[first:last].astype(np.int32).reshape(-1), what)

        fixed = self.fixed
        offsets: Expr
        drop: Array | None
        if isinstance(fixed, EvenRounding):
            call.use("portable_even")
            half = 1 << fixed.shift >> 1
            more = np.array([half + (self.zero << fixed.shift), fixed.margin, fixed.shift, self.zero], np.int32)
            offsets, drop, shift = call.add(more, "offset, margin, shift, zero point"), fixed.scale.view(np.int32), EVEN
        else:
            wide = fixed.is_wide
            if wide:
                call.use("portable_wide")
            offsets = table(_exact(fixed) if wide else fixed.offset, "offsets")
            drop, shift = fixed.drop, WIDE if wide else fixed.shift
        return {
            "bias": table(self.bias, "bias"),
            "multiplier": table(fixed.multiplier, "multipliers"),
            "offset": offsets,
            "drop": table(drop, "drops"),
            "depth": depth,
            "channels": last - first,
            "low": self.rule.low,
            "high": self.rule.high,
            "left": fixed.left,
            "shift": shift,
        }


def _exact(fixed: Fixed) -> Array:
    """(channels, 3): the halves of wide offsets, and shifts, as ew_fixed_wide reads them."""
    halves = (fixed.offset & 0xFFFFFFFF).astype(np.uint32).view(np.int32), fixed.offset >> 32
    return np.stack([*halves, fixed.shifts], axis=1)


def scaling_of(sums: Requantised, base: Array, is_wide: bool = False) -> Scaling | None:
    """For sums that lack `base`; None where no multipliers are exact."""
    if sums.drop_bits is None:
        fixed, bias = fit(sums.rule, bias=base, is_wide=is_wide), None
    else:
        fixed, bias = fit(sums.rule, drop_bits=sums.drop_bits, is_wide=is_wide), base
    return Scaling(sums.rule, fixed, bias) if fixed else None


@dataclass(frozen=True)
class Products:
    """The sums of some channels of a layer, for kernels that multiply stored x: zero points are in the bias."""

    weights: Array  # (channels, depth) int8
    channels: Interval
    scaling: Scaling

    def fields(self, call: CCall, arranged: Arrangement) -> Fields:
        """The fields of ew_products."""
        numbers = self.scaling.fields(call, self.channels, self.weights.shape[1])
        values, rows = arranged(self.weights)
        weights, pitch = call.add_rows(values, "weights", rows)
        return {"weights": weights, **numbers, **pitch}


def has_products(site: Site, allows_all: bool = False) -> bool:
    """Whether kernels of narrow offsets, or of all kinds, are exact here, and the channels of all calls are known."""
    if not site.facts.exact:
        return bool(site.ranges) and requantised(site) is not None
    return bool(site.ranges) and _layer_scaling(site) is not None and (allows_all or scaling_kind(site) == "narrow")


def scaling_kind(site: Site) -> str:
    """How its sums are stored, see `Scaling.kind`; narrow where that was not searched for."""
    scaling = _layer_scaling(site) if site.facts.exact else None
    return scaling.kind if scaling is not None else "narrow"


def products_of(site: Site, channels: Interval, step: int = 1) -> Products:
    """The products of these channels; weights of 0 pad their depth to a multiple of `step`."""
    weights = unwrap(requantised(site)).weights
    if is_split(site):
        weights = split_channels(site.weights).reshape(weights.shape)
    part = weights[slice(*channels)]
    padded = np.pad(part, ((0, 0), (0, -part.shape[1] % step)))
    return Products(padded, channels, unwrap(_layer_scaling(site)))


def _layer_scaling(site: Site) -> Scaling | None:
    sums = requantised(site)
    if sums is None:
        return None
    base = sums.bias - (sums.zero - flip(site.inputs[0].tensor)) * sums.weights.sum(axis=1, dtype=np.int64)
    if not _fits(sums, base):
        return None

    def found() -> Scaling | None:
        own = scaling_of(sums, base) or scaling_of(sums, base, is_wide=True) or _rounded_even(site, sums, base)
        return own and _shared(site, own)

    return site.facts.once("blocked", found)


def _shared(site: Site, own: Scaling) -> Scaling:
    """With the multipliers of the layer of which this one is a slice, which are stored already, if they hold here."""
    larger = larger_layer(site, counts_weights=own.bias is None)
    of_all = _layer_scaling(larger) if larger is not None else None
    if of_all is None or of_all.kind != own.kind or (of_all.bias is None) != (own.bias is None):
        return own
    return replace(own, fixed=of_all.fixed.first(own.rule.channels))


def _rounded_even(site: Site, sums: Requantised, base: Array) -> Scaling | None:
    """Of onnxruntime's float products ties round to even, which no line through all thresholds may follow."""
    even = fit_even(sums.rule) if site.arithmetic is not Arithmetic.TFLITE else None
    quant = site.result.quant
    return Scaling(sums.rule, even, base, quant.zero[0]) if even and quant else None


def _fits(sums: Requantised, base: Array) -> bool:
    """Whether no sum of stored x can leave 32 bits on the way, whatever the order of its terms."""
    reach = np.abs(base) + 128 * np.abs(sums.weights.astype(np.int64)).sum(axis=1)
    return int(reach.max()) < 1 << 31


def block_widths(count: int, widths: Sequence[int]) -> tuple[int, ...]:
    """The blocks that channels are divided into: as many of the first width as there are, ...

    >>> block_widths(21, (16, 4))
    (16, 4, 1)
    """
    blocks: list[int] = []
    for width in (*widths, 1):
        blocks += [width] * ((count - sum(blocks)) // width)
    return tuple(blocks)


def interleaved(widths: Sequence[int]) -> Arrangement:
    """Blocks of channels (see `block_widths`) with their weights side by side for each k."""

    def arranged(weights: Array) -> tuple[Array, WeightRows]:
        parts, at, rows = [], 0, WeightRows(block_widths(len(weights), widths), weights.shape[1])
        for width in rows.widths:
            parts.append(weights[at : at + width].T.reshape(-1))
            at += width
        return np.concatenate(parts), rows

    return arranged


def by_channels(weights: Array) -> tuple[Array, WeightRows]:
    """Channel by channel."""
    return weights, WeightRows((1,) * len(weights), weights.shape[1])


def by_taps(weights: Array) -> tuple[Array, WeightRows]:
    """The weights of all channels for a tap, then those for the next."""
    return by_channels(np.ascontiguousarray(weights.T))


@dataclass(frozen=True)
class Convolution:
    """An ew_convolution, but for its weights: images, window, and how many pixels are gathered at once."""

    places: tuple[StridedTensor, StridedTensor]  # x and the output
    # Height, width, depth of x; of the kernel, of strides, of dilations, of pads: two each.
    window: tuple[int, ...]
    pixels: int

    def table(self, call: CCall, arranged: Arrangement, step: int = 1) -> str:
        """C of the struct for the channels of the call, of which weights are packed so."""
        x, y = self.places
        _, _, depth, _, kernel_w, _, _, _, dilation_w, *_ = self.window
        split = is_split(call)
        has_runs = not split and (kernel_w == 1 or (dilation_w == 1 and x.strides[-2] == depth))
        x_flip = flip(call.inputs[0].tensor)

        def fields(channels: ChannelRange) -> Fields:
            return {
                "products": products_of(call, channels.channels, step).fields(call, arranged),
                "x": image(x),
                "y": image(y),
                **struct_fields(WINDOW, self.window),
                "zero": unwrap(requantised(call)).zero - x_flip,
                "flip": x_flip,
                "pixels": self.pixels,
                "is_backward": int(call.is_backward),
                "has_runs": int(has_runs),
                **call.split_field(split),
            }

        return call.table("ew_convolution", fields)
