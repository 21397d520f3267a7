"""The loops in which plain nests go over windows: which there are, and which of them are clipped to the image."""

from __future__ import annotations

from dataclasses import dataclass

from ...network import Region
from ..site import Site
from ..window import WindowAxis

WRITTEN_OUT = 2  # rounds of a loop that all compilers write out, if their number is known


@dataclass(frozen=True, slots=True)
class AxisLoop:
    """The loop over a window's taps along one axis of the image."""

    rounds: int | None  # None where it is clipped to the image: the first and the last tap are computed
    is_there: bool = True  # a single tap has no loop


@dataclass(frozen=True, slots=True)
class WindowLoops:
    """The two loops over a window's taps.

    What bounds a clipped loop is kept in registers, of which the loops inside then have fewer.
    """

    rows: AxisLoop
    columns: AxisLoop

    @staticmethod
    def of(site: Site, window: tuple[WindowAxis, WindowAxis], region: Region) -> WindowLoops:
        return WindowLoops(*(_loop(site, axis, region, at) for at, axis in enumerate(window, 1)))

    @property
    def is_nested(self) -> bool:
        return self.rows.is_there and self.columns.is_there

    @property
    def is_clipped(self) -> bool:
        return None in (self.rows.rounds, self.columns.rounds)

    @property
    def is_written_out(self) -> bool:
        """Whether the innermost loop is none in what compilers make of it."""
        inner = self.columns if self.columns.is_there else self.rows
        return inner.rounds is not None and inner.rounds <= WRITTEN_OUT


def known_loop(rounds: int) -> AxisLoop:
    return AxisLoop(rounds, rounds > 1)


def _loop(site: Site, axis: WindowAxis, region: Region, at: int) -> AxisLoop:
    low, high = region.bounds[at]
    if site.bounds[at] is not None and high == low + 1:  # a place that is known when code is printed
        return known_loop(axis.taps((low, high)))
    return known_loop(axis.kernel) if axis.stays_inside(site.result.shape[at]) else AxisLoop(None)
