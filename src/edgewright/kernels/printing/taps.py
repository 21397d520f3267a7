"""Which taps of a window lie inside the image: loop ranges that are clipped before the loops run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from ..window import WindowAxis
from .nest import loops
from .source import CWriter, Expr, plus, times


class TapLoop(Protocol):
    """The taps of one window along one axis."""

    def each(self, c: CWriter) -> AbstractContextManager[tuple[Expr, Expr]]:
        """A loop over the taps that meet the image; gives (the tap, the row or column of the image under it)."""


@dataclass(frozen=True)
class Taps:
    """The taps low..high (half-open) of one window; tap k lies at start + k * dilation."""

    start: Expr
    low: Expr
    high: Expr
    dilation: int
    name: str

    @property
    def count(self) -> Expr:
        if isinstance(self.low, int) and isinstance(self.high, int):
            return self.high - self.low
        return str(self.high) if self.low == 0 else f"({self.high} - {self.low})"

    def counted_to(self, end: int, kernel: int) -> Expr:
        """How many of all taps lie before row or column `end`."""
        if isinstance(self.start, int):
            return max(0, min(kernel, -((self.start - end) // self.dilation)))
        return f"ew_min({kernel}, {_rounded_up(f'{end} - {self.start}', self.dilation)})"

    @contextmanager
    def each(self, c: CWriter) -> Iterator[tuple[Expr, Expr]]:
        with loops(c, [(self.low, self.high)], self.name) as (tap,):
            yield tap, plus(self.start, times(tap, self.dilation))


def taps(c: CWriter, axis: WindowAxis, outputs: int, index: Expr, start: str, name: str) -> Taps:
    """The taps of the window at `index`, one of so many outputs.

    Where they must be computed, variables called by these names hold them.
    """
    first, d = plus(times(index, axis.stride), -axis.pad), axis.dilation
    if isinstance(first, int):
        low = -(first // d) if first < 0 else 0
        return Taps(first, low, max(low, min(axis.kernel, -((first - axis.size) // d))), d, name)
    if first != index:
        c.line(f"const int32_t {start} = {first};")
        first = start
    if axis.stays_inside(outputs):
        return Taps(first, 0, axis.kernel, d, name)
    low_name, high_name = f"{name}_low", f"{name}_high"
    if axis.pad > 0:
        c.line(f"const int32_t {low_name} = {first} < 0 ? {_rounded_up(f'-{first}', d)} : 0;")
    c.line(f"const int32_t {high_name} = ew_min({axis.kernel}, {_rounded_up(f'{axis.size} - {first}', d)});")
    return Taps(first, low_name if axis.pad > 0 else 0, high_name, d, name)


def _rounded_up(value: str, d: int) -> str:
    return value if d == 1 else f"({value} + {d - 1}) / {d}"


@dataclass(frozen=True)
class TransposedTaps:
    """The taps of a transposed window at one output: those whose distance from it is a multiple of the stride."""

    kernel: int
    stride: int
    dilation: int
    place: Expr  # of the output, pads included
    least: int  # that the place can be
    size: int  # of the image
    name: str

    @contextmanager
    def each(self, c: CWriter) -> Iterator[tuple[Expr, Expr]]:
        tap, at = f"{self.name}0", f"{self.name}_at"
        is_stepped = self.dilation == 1 and self.stride > 1  # from one multiple to the next
        above = plus(self.place, -(self.least // self.stride) * self.stride)  # as far from one, and never below zero
        first, step = (f"({above}) % {self.stride}", f" += {self.stride}") if is_stepped else (0, "++")
        with c.block(f"for (int32_t {tap} = {first}; {tap} < {self.kernel}; {tap}{step})"):
            c.line(f"const int32_t {at} = {self.place} - {times(tap, self.dilation)};")
            uneven = f" || {at} % {self.stride} != 0" if self.stride > 1 and not is_stepped else ""
            c.line(f"if ({at} < 0 || {at} >= {self.size * self.stride}{uneven})")
            c.line("    continue;")
            yield tap, at if self.stride == 1 else f"{at} / {self.stride}"
