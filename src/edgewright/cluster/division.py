"""How a network is divided over devices, as plain data: segments of consecutive units, each split among a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from ..errors import Unsupported
from ..network import Region

ROW_AXIS = 1


class SegmentSplit(Enum):
    """What each device of a group computes."""

    WHOLE = "whole"  # all of it; the group is one device
    ROWS = "rows"  # a range of rows of the outputs, halos computed again (FFMT over devices, S 5.3.3)
    TILES = "tiles"  # a tile of a grid (DeepThings)
    CHANNELS = "channels"  # a range of output channels, from whole inputs (fan-out, S 5.3.4)
    SUMS = "sums"  # sums over a range of channels, added up afterwards (fan-in; after fan-out a fused pair, S 5.3.4)

    @property
    def words(self) -> str:
        return self.value if self is SegmentSplit.WHOLE else f"by {self.value}"


@dataclass(frozen=True, slots=True)
class DivisionSegment:
    """Consecutive units that a group of devices computes, one part each."""

    first: int  # of the units
    stop: int
    split: SegmentSplit
    devices: tuple[str, ...]
    begins_stage: bool = False  # a pipeline stage begins here even if the segment before is on the same devices


Division = tuple[DivisionSegment, ...]  # in the order of the units, of which each belongs to one segment


def pipeline_stages(division: Division) -> list[tuple[DivisionSegment, ...]]:
    """Runs of segments that have one frame at a time between them: on the same devices, unless a stage begins."""
    found: list[list[DivisionSegment]] = []
    for segment in division:
        if found and found[-1][-1].devices == segment.devices and not segment.begins_stage:
            found[-1].append(segment)
        else:
            found.append([segment])
    return [tuple(stage) for stage in found]


def row_regions(shape: Sequence[int], shares: Sequence[float]) -> list[Region]:
    return _ranges(shape, shares, ROW_AXIS if len(shape) > 2 else 0)


def channel_regions(shape: Sequence[int], shares: Sequence[float]) -> list[Region]:
    return _ranges(shape, shares, len(shape) - 1)


def tile_regions(shape: Sequence[int], count: int) -> list[Region]:
    """A grid of `count` tiles that is as square as possible (DeepThings)."""
    if len(shape) < 4:
        return row_regions(shape, [1 / count] * count)
    rows = max(n for n in range(1, int(count**0.5) + 1) if count % n == 0)
    bands = _ranges(shape, [1 / rows] * rows, 1)
    columns = _ranges(shape, [rows / count] * (count // rows), 2)
    return [band & column for band in bands for column in columns]


def _ranges(shape: Sequence[int], shares: Sequence[float], axis: int) -> list[Region]:
    """Ranges along an axis, as large as these shares of all; some may be empty."""
    if not shape:
        raise Unsupported("a single number cannot be divided")
    total, whole = sum(shares), Region.whole(shape)
    ends = [round(shape[axis] * done / total) for done in accumulate(shares)]
    return [whole.with_axis(axis, pair) for pair in zip([0, *ends], ends, strict=False)]
