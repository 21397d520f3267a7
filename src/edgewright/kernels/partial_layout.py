"""How the running sums of a layer lie in memory while partial sums are added to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from ..network import Array
from ..network.operators import Conv2d, Dense
from ..network.operators.partial_sums import reduction_axes
from ..platform.target import Family
from .call import CCall, CTensor
from .dsp.packing import LARGEST, grouped
from .printing.nest import loops
from .printing.source import CWriter, Expr, summand
from .requantise.sums import Requantised, requantised
from .site import Site
from .strided_tensor import dense_strides

DUAL = (Family.DSP, Family.HELIUM)  # families with pairs of 16-bit products
MOST = 1 << 23  # of the sum of the second channel of a pair, which has 24 bits


@dataclass(frozen=True)
class PartialLayout:
    """How running sums lie: all calls of a layer agree on it, whichever kernels they are."""

    is_paired: bool = False  # channels lie in pairs, as the kernels of `dsp` sum them: a, then 256 * b + a
    is_raw: bool = False  # x keeps its zero point

    def put(self, call: CCall, c: CWriter, place: CTensor, at: tuple[Expr, ...]) -> None:
        """Adds `sum` to the running sum at these indices of the output."""
        if self.is_paired:
            c.line(f"ew_share_put({self._pixel(call, place, at)}, {call.result.shape[-1]}, sum);")
        else:
            c.line(f"{place.pointer}[{place.offset(at)}] += sum;")

    def sum(self, call: CCall, place: CTensor, at: tuple[Expr, ...]) -> str:
        """C of the running sum at these indices of the output."""
        if self.is_paired:
            return f"ew_share_sum({self._pixel(call, place, at)})"
        return f"{place.pointer}[{place.offset(at)}]"

    def _pixel(self, call: CCall, place: CTensor, at: tuple[Expr, ...]) -> str:
        call.use("share")
        return f"{place.address((*at[:-1], 0))}, {at[-1]}"


def partial_layout(site: Site) -> PartialLayout:
    """How a layer's running sums lie: the same for every step of it, found once."""
    return site.facts.once(("partial layout", site.output.strides[-1:]), lambda: _found(site))


def _found(site: Site) -> PartialLayout:
    op = site.op
    if not isinstance(op, Conv2d | Dense) or site.target.family not in DUAL or site.output.strides[-1] != 1:
        return PartialLayout()
    sums, is_raw = requantised(site), isinstance(op, Dense)
    if sums is None or len(sums.weights) > LARGEST or grouped(sums.weights[:, None], 2) is None:
        return PartialLayout()
    return PartialLayout(True, is_raw) if _largest(sums, is_raw) < MOST else PartialLayout()


def missing(sums: Requantised, is_raw: bool) -> Array:
    """(channels,): what running sums lack: the bias, and the zero point of x where it is not taken off before."""
    return sums.bias - (sums.zero * sums.weights.sum(axis=1, dtype=np.int64) if is_raw else 0)


def _largest(sums: Requantised, is_raw: bool) -> int:
    """No complete sum is larger than this."""
    ends = np.stack([sums.rule.first, sums.rule.last]) - missing(sums, is_raw)
    return int(np.abs(ends).max())


def sums_place(call: CCall, pointer: str | None = None) -> CTensor:
    """The running sums as a tensor of the output's shape; those of real numbers lie in the output."""
    if call.result.dtype.is_float:
        return call.output if pointer is None else replace(call.output, pointer=pointer)
    assert call.sums is not None
    return CTensor(call.result, dense_strides(call.result), pointer=pointer or call.sums)


def summed_type(site: Site) -> str:
    return "float" if site.result.dtype.is_float else "int32_t"


def summed(site: Site) -> Collection[int]:
    """The axes of the first input that are summed over."""
    return reduction_axes(site.op, site.shapes).keys()


def partial_range(call: CCall, axis: int) -> tuple[Expr, Expr]:
    """The part of the input along an axis that is summed over."""
    assert call.partial is not None
    return call.partial[axis]


def difference(low: Expr, high: Expr) -> Expr:
    """How many indices there are from `low` on, before `high`."""
    if isinstance(high, int) and isinstance(low, int):
        return high - low
    return high if low == 0 else f"{high} - {summand(low)}"


def write_lines(call: CCall, c: CWriter, begun: str) -> None:
    """Prints the call that begins with `begun`: once for all pixels, or per line where lines are not contiguous."""
    place, y = sums_place(call), call.output
    if y.is_dense:
        channels = call.result.shape[-1]
        c.line(f"{begun}, {place.pointer}, {y.pointer}, {call.result.size // channels}, {channels});")
        return
    with loops(c, call.region[:-2], "n") as at:
        pointers = f"{place.address((*at, 0, 0))}, {y.address((*at, 0, 0))}"
        c.line(f"{begun}, {pointers}, {call.result.shape[-2]}, {y.strides[-2]});")
