"""Images, and parts of them, as kernels are told of them: initialisers of the structs in base.h."""

from __future__ import annotations

from collections.abc import Sequence

from ..call import CCall
from ..strided_tensor import StridedTensor
from .source import CWriter, Expr, braced


def is_image(place: StridedTensor) -> bool:
    """Whether kernels can walk it pixel by pixel, and its sizes fit 16 bits."""
    return place.lies_by_pixels and max(place.tensor.shape) < 1 << 15


def image(place: StridedTensor, axes: tuple[int, int] = (-3, -2)) -> str:
    """An ew_image: steps from row to row and from pixel to pixel along these axes, rows of a rolling buffer."""
    row, pixel = (place.strides[axis] for axis in axes)
    return braced((row, pixel, place.window[1] if place.window else 0))


def part_pointer(call: CCall, c: CWriter, bounds: Sequence[Expr]) -> str:
    """C of a pointer to an ew_part: a table where it is the same each time, else a variable of the current block."""
    if all(isinstance(bound, int) for bound in bounds):
        return f"&{call.module.table('ew_part', bounds)}"
    c.line(f"const ew_part part = {braced(bounds)};")
    return "&part"
