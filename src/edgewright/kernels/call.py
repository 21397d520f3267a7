"""A kernel call as it is printed: the site together with its C expressions for region, tensors and scratch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ..network import Array
from ..network.operators import Conv2d
from .module import Module
from .printing.constants import ALIGNMENT, C_TYPES, WeightRows, pitch_of
from .printing.source import CWriter, Expr, Fields, advanced, designated, offset, struct_fields
from .site import ChannelRange, Site
from .strided_tensor import StridedTensor


@dataclass(frozen=True, slots=True)
class CTensor(StridedTensor):
    """A tensor in memory. Element (i, j, ...) lies at pointer[i * strides[0] + j * strides[1] + ...]."""

    pointer: str = ""  # C expression of type `ctype *` (const for constants and inputs) to element (0, ..., 0)

    @property
    def ctype(self) -> str:
        return C_TYPES[self.tensor.dtype.value]

    def offset(self, at: Sequence[Expr]) -> Expr:
        """Elements from `pointer` to the element at these indices."""
        return offset(at, self.strides, self.window)

    def address(self, at: Sequence[Expr]) -> str:
        """C of a pointer to the element at these indices."""
        by = self.offset(at)
        return self.pointer if by == 0 else f"({advanced(self.pointer, by)})"


@dataclass(frozen=True)
class CCall(Site):
    """A call at a site, while it is printed into a module."""

    module: Module
    region: tuple[tuple[Expr, Expr], ...]  # of the output: half-open, already clipped; may be empty at run time
    inputs: tuple[CTensor, ...]  # constants too, which are in flash only once `place` was asked for them
    output: CTensor
    which: Expr = 0  # of the ranges of channels
    partial: tuple[tuple[Expr, Expr], ...] | None = None  # part of input 0 that is added to running sums
    # C of those sums (int32_t *, or float *: the output), in the order of the whole output
    sums: str | None = None
    arena_scratch: str | None = None  # C (uint8_t *, 8-aligned) of the scratch in an arena; None: on the stack
    plane_at: str | None = None  # C (uint8_t *) of the plane that the plan reserves

    @classmethod
    def of(cls, site: Site, **given: Any) -> CCall:
        """The call for a site, with the C expressions that printing it takes."""
        return cls(**{field.name: getattr(site, field.name) for field in fields(Site)} | given)

    def use(self, *kernels: str) -> None:
        """Takes kernel files (`c/NAME.h`, and `NAME.c` where there is one) into the library."""
        self.module.kernels.update(kernels)

    def table(self, ctype: str, fields: Callable[[ChannelRange], Fields]) -> str:
        """C of a `static const` struct with these fields for the channels of the call."""
        return self.module.one_table(ctype, [fields(channels) for channels in self.ranges], self.which)

    def pointer(self, name: Callable[[ChannelRange], str]) -> str:
        """C of the constant that belongs to the channels of the call."""
        return self.module.one_pointer([name(channels) for channels in self.ranges], self.which)

    def number(self, value: Callable[[ChannelRange], int]) -> Expr:
        """The number that belongs to the channels of the call."""
        return self.module.one_number([value(channels) for channels in self.ranges], self.which)

    def add(self, values: Array, note: str, alignment: int = ALIGNMENT, unsigned: Array | None = None) -> str:
        """The name of a constant in flash; with others in its place where the processor multiplies `unsigned` bytes."""
        return self.module.constants.add(values, f"{self.layer.name}: {note}", alignment, unsigned)

    def add_rows(self, values: Array, note: str, rows: WeightRows) -> tuple[str, Fields]:
        """The name of weights in rows, and the table's field for their pitch, in libraries where tables have one."""
        name = self.module.constants.add(values, f"{self.layer.name}: {note}", rows=rows)
        return name, self.pitch_field(pitch_of(name))

    def pitch_field(self, pitch: Expr) -> Fields:
        """The pitch of weights, in libraries where tables have one (EW_HAS_VIEWS)."""
        return {"pitch": pitch} if self.module.constants.has_views else {}

    def split_field(self, is_split: bool) -> Fields:
        """Whether windows are split, in libraries where tables say so (EW_HAS_SPLIT)."""
        nesting = self.facts.nesting
        return {"is_split": int(is_split)} if nesting is not None and nesting.split else {}

    def scratch(self, c: CWriter, ctype: str, count: int, name: str = "scratch") -> str:
        """C of a pointer (`ctype *`) to the scratch: in an arena, or declared here as a local array of so many."""
        if self.module.arena:
            c.line(f"{ctype} {name}[{1 if self.arena_scratch else count}];")
            at = self.arena_scratch or f"({self.module.arena} + 0)"
            return f"({int(bool(self.arena_scratch))} ? ({ctype} *)(void *){at} : {name})"
        if self.arena_scratch is None:
            c.line(f"{ctype} {name}[{count}];")
            return name
        return self.arena_scratch if ctype == "uint8_t" else f"({ctype} *)(void *){self.arena_scratch}"

    def constant(self, which: int) -> CTensor:
        """Input `which`, a constant, as it lies in flash in its own layout."""
        place = self.inputs[which]
        values = self.network.constants[place.tensor.name]
        name = self.module.constants.add(values, f"{self.layer.name}: {place.tensor.name}")
        return replace(place, pointer=name)

    def place(self, which: int) -> CTensor:
        """Input `which` wherever it lies; a constant is put into flash as it is."""
        return self.constant(which) if self.inputs[which].is_constant else self.inputs[which]


def is_image(place: StridedTensor) -> bool:
    """Whether kernels can walk it pixel by pixel, and its sizes fit 16 bits."""
    return place.lies_by_pixels and max(place.tensor.shape) < 1 << 15


def image(place: StridedTensor, axes: tuple[int, int] = (-3, -2), size: int = 1) -> Fields:
    """An ew_image: steps from row to row and from pixel to pixel along these axes, rows of a rolling buffer.

    Steps count elements, or the bytes of elements of this `size`.
    """
    row, pixel = (place.strides[axis] for axis in axes)
    return image_of(row * size, pixel * size, place.window[1] if place.window else 0)


def image_of(row: int, pixel: int, rows: int = 0) -> Fields:
    """An ew_image of these steps."""
    return {"row": row, "pixel": pixel, "rows": rows}


WINDOW = (  # names of what `window_sizes` gives, in most structs
    *("height", "width", "depth", "kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w"),
    *("pad_h", "pad_w"),
)


def window_sizes(site: Site, depth: int) -> tuple[int, ...]:
    """What kernels are told of a convolution: x (height, width, `depth`), kernel, strides, dilations, pads before."""
    op, (x, w) = site.op_as(Conv2d), site.shapes[:2]
    return (*x[1:3], depth, *w[1:3], *op.stride, *op.dilation, *op.pads[:2])


def part_of(bounds: Sequence[Expr]) -> Fields:
    """An ew_part between these rows and these columns."""
    return struct_fields(("top", "bottom", "left", "right"), bounds)


def part_pointer(call: CCall, c: CWriter, bounds: Sequence[Expr]) -> str:
    """C of a pointer to an ew_part: a table where it is the same each time, else a variable of the current block."""
    if all(isinstance(bound, int) for bound in bounds):
        return f"&{call.module.table('ew_part', part_of(bounds))}"
    c.line(f"const ew_part part = {designated(part_of(bounds))};")
    return "&part"
