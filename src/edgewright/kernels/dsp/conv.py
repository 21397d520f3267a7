"""int8 convolutions and dense layers on cores with pairs of 16-bit products (Cortex-M4, M7, M33)."""

from __future__ import annotations

from dataclasses import dataclass

from ...network import Array
from ...network.operators import Conv2d
from ...network.tensor import DType
from ...platform.target import Family
from ...program import Sweep
from ..call import Call as Site
from ..printing.images import image, lies_by_pixels, part_pointer
from ..printing.nest import loops
from ..printing.source import Expr, Source, braced, times
from . import windows as dsp_windows
from .packing import LARGEST, Packed, packed, packed_fours
from .rows import STACK, row

SMALL = 64  # a dense layer with less than this part of all products is small


@dataclass(frozen=True)
class Window:
    """A convolution over an image, which a dense layer is as well: one window, one tap."""

    op: Conv2d
    size: tuple[int, int, int]  # of x: height, width, depth
    kernel: tuple[int, int]
    runs: Array  # (channels, runs, taps of a run): what lies side by side in x
    images: tuple[str, str]  # the fields of ew_image for x and the output

    @property
    def columns(self) -> int:
        """Bytes of the columns of two pixels."""
        return 4 * self.runs.shape[1] * (-(-self.runs.shape[2] // 4) * 4)

    @property
    def fits_table(self) -> bool:
        """Whether all numbers fit the small types of ew_dsp_convolution."""
        bytes_ = (*self.kernel, *self.op.stride, *self.op.dilation)
        return max(self.size) <= LARGEST and max(bytes_) <= 255 and max(map(abs, self.op.pads)) <= 127


def conv2d(site: Site, c: Source) -> bool:
    op, x, y = site.op, site.inputs[0], site.output
    assert isinstance(op, Conv2d)
    if (
        not _is_ours(site)
        or op.groups != 1
        or site.sweep is Sweep.CHANNELS
        or not (lies_by_pixels(x) and lies_by_pixels(y))
    ):
        return False
    (_, *size), (_, *kernel, _) = site.shapes[:2]
    window = Window(op, (size[0], size[1], size[2]), (kernel[0], kernel[1]), _runs(site, op), (image(x), image(y)))
    if not _has_room(site, window):
        return _pixel_by_pixel(site, c) if _is_pointwise(site, op) else dsp_windows.write(site, c)
    batch, rows, columns, _ = site.region
    return _by_pairs(site, c, window, batch, (*rows, *columns))


def dense(site: Site, c: Source) -> bool:
    """Small ones after convolutions use their kernel: two pixels at once are a waste, but code is saved."""
    if not _is_ours(site):
        return False
    x, one = site.inputs[0], (0, 1)
    small = site.network.macs(site.layer) * SMALL < site.network.total_macs and "dsp_conv" in site.unit.kernels
    if small and x.strides[-1] == 1 and all(bound == one for bound in site.region[:-1]):
        depth = x.tensor.shape[-1]
        runs = site.network.constants[site.inputs[1].tensor.name].reshape(-1, 1, depth)
        window = Window(Conv2d(), (1, 1, depth), (1, 1), runs, ("{0, 0, 0}", "{0, 0, 0}"))
        if _has_room(site, window) and _by_pairs(site, c, window, one, (*one, *one)):
            return True
    return _pixel_by_pixel(site, c)


def _has_room(site: Site, window: Window) -> bool:
    """Whether there are two channels at least, and memory for the columns of two pixels."""
    first, last = site.region[-1]
    is_pair = isinstance(first, int) and isinstance(last, int) and last - first > 1
    return is_pair and (site.free(window.columns) is not None or window.columns <= STACK)


def _by_pairs(site: Site, c: Source, window: Window, batch: tuple[Expr, Expr], part: tuple[Expr, ...]) -> bool:
    """Two pixels and two channels at a time, from columns."""
    made = packed(site, window.runs, group=2, is_raw=False) if window.fits_table else None
    if made is None:
        return False
    kernel = f"dsp_odd_{made.kind}" if made.count % 2 else f"dsp_{made.kind}"
    site.use("dsp_conv", kernel)
    table = f"&{site.unit.table('ew_dsp_convolution', fields_of(site, window, made, kernel))}"
    run, given, size = "ew_dsp_conv_bent" if site.inputs[0].window else "ew_dsp_conv", table, window.columns
    if _is_row(site, window):
        run, threes, size = row(site, made, window.columns)
        given = ", ".join(filter(None, (table, threes)))
    rank, buffer = len(site.output.strides), site.free(size)
    with loops(c, [batch], "n", backward=site.is_backward) as (n,), c.block():
        where = part_pointer(site, c, part)
        if buffer is None:
            c.line(f"uint32_t columns[{size // 4}];")
        inner = (0,) * max(rank - 2, 0)
        x = site.inputs[0].address((n, *inner, 0)[-rank:])
        y = site.output.address((n, *inner, made.first)[-rank:])
        c.line(f"{run}({given}, {x}, {y}, {where}, {buffer or 'columns'});")
    return True


def _pixel_by_pixel(site: Site, c: Source) -> bool:
    """Pixels that are read as they lie, one after the other: needs no memory."""
    x, y = site.inputs[0], site.output
    depth = x.tensor.shape[-1]
    found = packed_fours(site, depth) if x.strides[-1] == y.strides[-1] == 1 else None
    if found is None:
        return False
    made, kernel = found
    site.use("dsp_dense", kernel)
    table = site.unit.table("ew_dsp_sums", made.fields)
    with loops(c, site.region[:-1], "n", backward=site.is_backward) as at:
        source = at
        if isinstance(site.op, Conv2d):
            source = tuple(times(i, s) for i, s in zip(at, (1, *site.op.stride), strict=True))
        pointers = f"{x.address((*source, 0))}, {y.address((*at, made.first))}"
        c.line(f"ew_dsp_dense(&{table}, ew_{kernel}, {pointers}, {depth});")
    return True


def _is_ours(site: Site) -> bool:
    return site.target.family is Family.DSP and site.inputs[1].is_constant


def _is_pointwise(site: Site, op: Conv2d) -> bool:
    return site.shapes[1][1:3] == (1, 1) and op.pads == (0, 0, 0, 0)


def _is_row(site: Site, window: Window) -> bool:
    """Whether the step is one row of several, and so one of many."""
    is_part = isinstance(site.op, Conv2d) and site.most[1] == 1 < site.result.shape[1]
    return is_part and _is_pointwise(site, window.op)


def _runs(site: Site, op: Conv2d) -> Array:
    """The weights (channels, runs, taps of a run): a run is what lies side by side in memory."""
    w = site.network.constants[site.inputs[1].tensor.name]
    channels, rows, columns, depth = w.shape
    is_joined = columns == 1 or (op.dilation[1] == 1 and site.inputs[0].strides[2] == depth)
    return w.reshape(channels, rows, columns * depth) if is_joined else w.reshape(channels, rows * columns, depth)


def fields_of(site: Site, window: Window, made: Packed, kernel: str) -> tuple[Expr, ...]:
    """The fields of ew_dsp_convolution."""
    op, rows, depth = window.op, window.kernel[0], window.size[2]
    _, runs, taps = window.runs.shape
    return (
        braced(made.fields),
        f"ew_{kernel}",
        *window.images,
        *(*window.size, rows, runs // rows, taps // depth),
        *(*op.stride, *op.dilation, *op.pads[:2]),
        *(made.zero, 128 if site.inputs[0].tensor.dtype is DType.UINT8 else 0, int(site.is_backward)),
    )
