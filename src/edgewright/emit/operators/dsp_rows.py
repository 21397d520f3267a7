"""Rows of pointwise convolutions on cores with pairs of 16-bit products: of odd rows three pixels at once."""

from __future__ import annotations

from ...network.operators import Conv2d
from ..site import Site
from .dsp_packing import Packed

STACK = 576  # bytes of columns that may lie on the stack when the arena has no room for them
KINDS = ("plain", "general")  # of kernels that there are for three pixels


def is_row(site: Site, op: Conv2d, kernel: tuple[int, int]) -> bool:
    """Whether the step is a row of an image, and takes ew_dsp_row into the library."""
    row = isinstance(site.op, Conv2d) and site.most[1] == 1 and kernel == (1, 1) and op.pads == (0, 0, 0, 0)
    if row:
        site.use("dsp_row")
    return row


def threes_of(site: Site, made: Packed, columns: int) -> tuple[str, int]:
    """C of the kernel for three pixels, NULL if there is none or no use for it, and the bytes of columns.

    Two pixels need `columns` bytes.
    """
    size = columns * 3 // 2
    has_room = size <= STACK or site.scratch(size) is not None
    if made.kind not in KINDS or made.count % 2 or not has_room or not _may_be_odd(site):
        return "NULL", columns
    site.use(f"dsp_threes_{made.kind}")
    return f"ew_dsp_threes_{made.kind}", size


def _may_be_odd(site: Site) -> bool:
    """Whether the row, or some of the parts it is cut into, has an odd number of pixels, three at least."""
    first, last = site.region[2]
    if isinstance(first, int) and isinstance(last, int):
        return last - first > 2 and (last - first) % 2 == 1
    return site.most[2] > 2 and (site.most[2] % 2 == 1 or site.result.shape[2] % 2 == 1)
