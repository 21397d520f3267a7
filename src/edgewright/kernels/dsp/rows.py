"""Rows of pointwise convolutions on cores with pairs of 16-bit products: of odd ones the last three pixels at once."""

from __future__ import annotations

from ..call import Call as Site
from .packing import Packed

STACK = 576  # bytes of columns that may lie on the stack when the arena has no room for them
KINDS = ("plain", "general")  # of kernels that there are for three pixels


def row(site: Site, made: Packed, columns: int) -> tuple[str, str, int]:
    """The function for a row, C of the kernel for three pixels if it takes one, and the bytes of columns.

    Two pixels need `columns` bytes.
    """
    size = columns * 3 // 2
    has_room = size <= STACK or site.free(size) is not None
    if made.kind not in KINDS or made.count % 2 or not has_room or not _may_be_odd(site):
        site.use("dsp_row")
        return "ew_dsp_row", "", columns
    kernel = f"dsp_threes_{made.kind}"
    site.use("dsp_odd_row", kernel)
    return "ew_dsp_odd_row", f"ew_{kernel}", size


def _may_be_odd(site: Site) -> bool:
    """Whether the row, or some part of it, has an odd number of pixels: all parts of a row are written alike."""
    width, whole = site.most[2], site.result.shape[2]
    return max(width % 2, whole % 2) == 1 and whole > 2
