"""What the vector kernels share: conditions on the layout of tensors, sizes of scratch, and the C around calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np

from ...platform.target import Family
from ..call import CCall, image, image_of, part_of, window_sizes
from ..kernel import Offer
from ..printing.source import CWriter, Expr, Fields, advanced, designated, plus, struct_fields, times
from ..site import Site
from ..strided_tensor import StridedTensor

SIMD = frozenset({Family.SIMD})
ROOM = 64 << 10  # bytes of stack where the arena has no room


def has_types(site: Site, *dtypes: str) -> bool:
    """Whether the activations and the output have one of these types."""
    return all(place.tensor.dtype.value in dtypes for place in (site.inputs[0], site.output))


def is_real(site: Site) -> bool:
    """Whether all is float32, and weights and bias are constants."""
    constants = [site.network.constants.get(place.tensor.name) for place in site.inputs[1:]]
    return has_types(site, "float32") and all(v is not None and v.dtype == np.float32 for v in constants)


def is_image(place: StridedTensor) -> bool:
    """Whether channels, if there are several, lie side by side, and nothing but rows rolls."""
    has_pixels = len(place.strides) == 4 and (place.strides[3] == 1 or place.tensor.shape[3] == 1)
    return has_pixels and (place.window is None or place.window[0] == 1)


def is_image_of_ranges(site: Site) -> bool:
    """Whether input and output are images, of which known ranges of channels are computed pixel by pixel."""
    is_known = bool(site.ranges) and site.bounds[0] is not None
    return is_image(site.inputs[0]) and is_image(site.output) and is_known


def is_of_all_channels(site: Site) -> bool:
    """Whether every call computes all channels."""
    return site.bounds[-1] == (0, site.result.shape[-1])


def first_channel(call: CCall, pointer: str) -> str:
    """The pointer to a pixel, or a line, moved to the first of the channels that the call computes."""
    return advanced(pointer, call.number(lambda channels: channels.channels[0]))


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines that a dense layer multiplies, evenly spaced: pixels of an image with one row."""

    first: int
    count: int
    steps: tuple[int, int]  # elements from line to line in input and output

    @property
    def end(self) -> int:
        return self.first + self.count

    def window(self, site: Site, channels: int) -> Fields:
        """Fields of a kernel's table from the input's size to the output's place, as `window_fields`."""
        read, write = (image_of(0, step) for step in self.steps)
        return one_tap(self.end, site.shapes[0][-1], channels, read, write)


def dense_lines(site: Site) -> Lines | None:
    """The lines of a dense layer, where known channels of known lines are computed."""
    *lead, _ = site.bounds
    known = [bounds for bounds in lead if bounds is not None]
    if not site.ranges or len(known) < len(lead):
        return None
    x, y = site.inputs[0], site.output
    if any(place.window or (place.strides[-1] != 1 and place.tensor.shape[-1] != 1) for place in (x, y)):
        return None
    if not known:
        return Lines(0, 1, (0, 0))
    if not all(_is_even(place.strides[:-1], place.tensor.shape[:-1]) for place in (x, y)):
        return None
    if any(bounds != (0, size) for bounds, size in zip(known[1:], site.result.shape[1:-1], strict=True)):
        return None
    inner = prod(site.result.shape[1:-1])
    first, last = (bound * inner for bound in known[0])
    return Lines(first, last - first, (x.strides[-2], y.strides[-2]))


def _is_even(strides: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether the lines of all leading axes follow each other at one distance."""
    step = strides[-1]
    for stride, size in zip(reversed(strides), reversed(shape), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


# Fields of tables: a window that slides over an image.
WINDOW = ("kernel_y", "kernel_x", "stride_y", "stride_x", "dilation_y", "dilation_x", "top", "left")
SIZES = ("height", "width", "depth", *WINDOW)


def window_fields(site: Site, channels: int, groups: int = 1) -> Fields:
    """Fields of a kernel's table from the input's size to the output's place, for so many channels of all groups."""
    sizes = struct_fields(SIZES, window_sizes(site, site.shapes[0][3] // groups))
    return {**sizes, "channels": channels // groups, "in": image(site.inputs[0]), "out": image(site.output)}


def one_tap(pixels: int, depth: int, channels: int, read: Fields, write: Fields) -> Fields:
    """The same for a row of pixels under a window of one tap."""
    sizes = struct_fields(SIZES, (1, pixels, depth, 1, 1, 1, 1, 1, 1, 0, 0))
    return {**sizes, "channels": channels, "in": read, "out": write}


def tiles(row: int, most: int) -> Iterator[Offer]:
    """Offers of tiles of `most` pixels, of `row` bytes each, or of fewer."""
    for size, rows in rooms(row, most):
        yield Offer.of(size, rows=rows)


def rooms(each: int, most: int, least: int = 1) -> Iterator[tuple[int, int]]:
    """(bytes, how many it holds) of room for `most` things of so many bytes, down to `least`.

    Where not all fit the stack, as many as do may have all of it.
    """
    for count in range(most, least - 1, -1):
        is_stack = count < most and each * count <= ROOM < each * (count + 1)
        yield (ROOM if is_stack else each * count), count


def working_room(call: CCall, offer: Offer, c: CWriter, ctype: str) -> str:
    """C of the scratch as `ctype *`; declares it where it is on the stack."""
    if call.arena_scratch is not None:
        return call.arena_scratch if ctype == "uint8_t" else f"({ctype} *)(void *){call.arena_scratch}"
    width = 4 if ctype == "float" else 1
    c.line(f"EW_ALIGNED(64) {ctype} room[{-(-offer.scratch // width)}];")
    return "room"


@contextmanager
def batch_items(call: CCall, c: CWriter) -> Iterator[tuple[str, str]]:
    """A block for each picture of the batch with its part of the output; gives pointers to input and output."""
    low, high = call.region[0]
    assert isinstance(low, int) and isinstance(high, int)
    (top, bottom), (left, right) = call.region[1:3]
    count = high - low
    at: Expr = low
    with c.block("" if count == 1 else f"for (int32_t picture = 0; picture < {count}; picture++)"):
        if count > 1:
            at = f"{high - 1} - picture" if call.is_backward else plus("picture", low)
        c.line(f"const ew_part part = {designated(part_of((top, bottom, left, right)))};")
        x, y = (advanced(place.pointer, times(at, place.strides[0])) for place in (call.inputs[0], call.output))
        yield x, y
