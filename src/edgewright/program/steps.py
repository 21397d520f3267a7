"""What is executed, as data: stages, each a schedule of layers, and the steps over regions that they come to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..network import Region


class Sweep(Enum):
    """In which order a kernel works through its region. Part of the contract that shared memory relies on."""

    FORWARD = "forward"  # row-major
    BACKWARD = "backward"  # row-major, from the last to the first
    CHANNELS = "channels"  # one channel plane after the other, each computed in scratch before it is written


@dataclass(frozen=True, slots=True)
class Step:
    """Compute one region of one layer's output from the regions of its inputs that it needs."""

    layer: str
    region: Region
    sweep: Sweep = Sweep.FORWARD
    # The part of the first input that is added to the layer's running sums; they become output when the stage ends.
    share: Region | None = None
