"""Depthwise convolutions from rows that are kept as floats, float32 and eight-bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ...network import Array
from ...network.operators import Conv2d
from ...program import Sweep
from ..call import Call as Site
from ..printing.images import image
from ..printing.nest import loops
from ..printing.source import Source, braced
from .conv import is_real, padded, real_bias
from .finish import Whole, whole_layer
from .sites import PANEL, ending, finish, is_plain_image, pictures, room_for, working_room

MOST_TAPS = 32  # EW_SIMD_TAPS
COLUMNS = (32, 16, 8, 4, 2)  # of a row at a time where there is no room for more
MOST_SUM = 1 << 24  # whole numbers below it are exact as floats


def conv2d(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Conv2d)
    if not op.groups == site.shapes[0][3] == site.result.shape[3] or not is_plain_image(site):
        return False
    return _real(site, op, c) or _whole(site, op, c)


def _real(site: Site, op: Conv2d, c: Source) -> bool:
    room = _room(site, op, is_real=True)
    if not is_real(site) or room is None:
        return False
    weights = site.network.constants[site.inputs[1].tensor.name]
    bias = site.unit.constants.add(padded(real_bias(site)), f"{site.layer.name}: bias", 64)
    end = ending(op.activation)
    fields = (_windows(site, op, weights, room.group), bias, *end.fields)
    table = site.unit.table("ew_simd_depthwise", fields)
    _calls(site, c, room, "ew_simd_depthwise_run", table)
    finish(site, c, end)
    return True


def _whole(site: Site, op: Conv2d, c: Source) -> bool:
    whole, room = whole_layer(site), _room(site, op, is_real=False)
    if whole is None or room is None or not _is_exact(whole):
        return False
    windows = _windows(site, op, whole.weights.astype(np.float32), room.group)
    table = site.unit.table("ew_simd_depthwise8", (windows, whole.finish, int(whole.is_signed), whole.zero))
    _calls(site, c, room, "ew_simd_depthwise8_run", table)
    return True


def _is_exact(whole: Whole) -> bool:
    weights = np.abs(whole.weights.reshape(len(whole.weights), -1).astype(np.int64))
    return bool(weights.sum(axis=1).max() * 255 < MOST_SUM)


@dataclass(frozen=True, slots=True)
class _Room:
    """Where rows are kept: in the arena (a C expression) or on the stack (None); how many channels at a time."""

    where: str | None
    size: int  # bytes
    group: int  # 0: no rows are kept; -1: and no memory is shared
    columns: int = 0  # computed at a time; 0: all

    def expression(self, c: Source) -> str:
        return working_room(c, self.where, self.size, "float") if self.group > 0 else "NULL"


def _room(site: Site, op: Conv2d, is_real: bool) -> _Room | None:
    """Room for as many channels as fit; where memory is shared otherwise than in place, for all of them or none."""
    kernel = site.shapes[1][1:3]
    reach = [(k - 1) * d for k, d in zip(kernel, op.dilation, strict=True)]
    in_place = site.sweep is Sweep.CHANNELS
    if kernel[0] > MOST_TAPS or (in_place and not 0 <= op.pads[0] <= reach[0]):
        return None  # in place, a row is written only after it was kept
    if is_real and not site.shares(0):
        return _Room(None, 0, -1)
    panels = -(-site.result.shape[3] // PANEL)

    def panel(columns: int) -> int:
        return 4 * PANEL * (reach[0] + 1) * ((columns - 1) * op.stride[1] + reach[1] + 1)

    everything = panels * panel(site.most[2])
    least = everything if site.shares(0) and not in_place else panel(site.most[2])
    where, size = room_for(site, least, everything)
    if size:
        return _Room(where, size, min(panels, size // panel(site.most[2])) * PANEL)
    return None if in_place else _few_columns(site, panels, panel)


def _few_columns(site: Site, panels: int, panel: Callable[[int], int]) -> _Room:
    """Room for all channels of some columns of a row; if there is none, no rows are kept."""
    for columns in COLUMNS:
        where, size = room_for(site, panels * panel(columns), panels * panel(columns))
        if size:
            return _Room(where, size, panels * PANEL, columns)
    return _Room(None, 0, 0)


def _calls(site: Site, c: Source, room: _Room, kernel: str, table: str) -> None:
    """The kernel for the part that the step computes, or for a few columns of a row at a time."""
    with pictures(site, c) as (x, y):
        rows = room.expression(c)
        if not room.columns:
            c.line(f"{kernel}(&{table}, {x}, {y}, part, {rows});")
            return
        with _pieces(site, c, room.columns) as piece:
            c.line(f"const ew_part piece = {piece};")
            c.line(f"{kernel}(&{table}, {x}, {y}, piece, {rows});")


@contextmanager
def _pieces(site: Site, c: Source, columns: int) -> Iterator[str]:
    """Loops over pieces of `part`, row by row; gives an ew_part."""
    left, right = "part.left + done", f"ew_min(part.left + done + {columns}, part.right)"
    if site.is_backward:
        left, right = f"ew_max(part.left, part.right - done - {columns})", "part.right - done"
    with (
        loops(c, [("part.top", "part.bottom")], "row", backward=site.is_backward) as (row,),
        c.block(f"for (int32_t done = 0; done < part.right - part.left; done += {columns})"),
    ):
        yield braced((row, f"{row} + 1", left, right))


def _windows(site: Site, op: Conv2d, weights: Array, group: int) -> str:
    """The initialiser of an ew_simd_windows."""
    site.use("simd_depthwise")
    _, height, width, channels = site.shapes[0]
    _, kernel_y, kernel_x, _ = weights.shape
    taps = padded(weights.reshape(channels, -1)).T
    name = site.unit.constants.add(np.ascontiguousarray(taps), f"{site.layer.name}: weights by tap", 64)
    sizes = (height, width, channels, kernel_y, kernel_x, *op.stride, *op.dilation, *op.pads[:2])
    images = (image(site.inputs[0]), image(site.output))
    return braced((name, *sizes, *images, group, int(site.is_backward)))
