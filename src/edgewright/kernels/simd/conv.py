"""float32 convolutions and dense layers as products of packed tiles with panels of weights."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...network import Array
from ...network.operators import Conv2d, Dense
from ...program import Sweep
from ..call import Call as Site
from ..printing.images import image
from ..printing.source import Expr, Source
from .sites import PANEL, Ending, ending, finish, is_ours, is_plain_image, pictures, room_for, working_room

DEPTH, PITCH, ROWS = 256, 272, 56  # EW_SIMD_DEPTH, EW_SIMD_PITCH, EW_SIMD_ROWS
MOST_JOINED = 8  # groups


def conv2d(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Conv2d)
    if not is_real(site) or not is_plain_image(site) or site.sweep is Sweep.CHANNELS:
        return False
    # One group after the other would write pixels before all of them are read.
    groups = 1 if site.shares(0) else op.groups
    w = site.network.constants[site.inputs[1].tensor.name]
    whole = w if groups == op.groups else joined_groups(w, op.groups)
    if whole is None or (groups > 1 and w.shape[3] == 1):
        return False
    tile = _tile(site, prod(whole.shape[1:]))
    if tile is None:
        return False
    (where, size, rows), end = tile, ending(op.activation)
    table = _table(site, window_fields(site, op, groups), rows, end, _groups(site, whole, groups))
    with pictures(site, c) as (x, y):
        room = working_room(c, where, size, "float")
        if groups == 1:
            c.line(f"ew_simd_conv_run(&{table}, {x}, {y}, part, {room});")
        else:
            _grouped(site, c, table, groups, (x, y, room))
    finish(site, c, end)
    return True


def joined_groups(w: Array, groups: int) -> Array | None:
    """Weights of one group that does the work of all, zero where groups do not meet; None where zeros are too many."""
    if groups > MOST_JOINED:
        return None
    channels, depth = w.shape[0] // groups, w.shape[3]
    whole = np.zeros((*w.shape[:3], depth * groups), w.dtype)
    for group in range(groups):
        rows = slice(group * channels, (group + 1) * channels)
        whole[rows, ..., group * depth : (group + 1) * depth] = w[rows]
    return whole


def is_real(site: Site) -> bool:
    """Whether weights and bias are float32 constants."""
    parameters = [place.tensor.name for place in site.inputs[1:]]
    constants = [site.network.constants.get(name) for name in parameters]
    return is_ours(site, "float32") and all(v is not None and v.dtype == np.float32 for v in constants)


def _tile(site: Site, depth: int) -> tuple[str | None, int, int] | None:
    """(where, bytes, pixels) of a tile, with its sums where they cannot wait in the output."""
    has_sums = site.shares(0) and depth > DEPTH
    row = 4 * (PITCH + (site.result.shape[-1] if has_sums else 0))
    where, size = room_for(site, row, row * ROWS)
    return (where, size, min(ROWS, size // row)) if size else None


def window_fields(site: Site, op: Conv2d, groups: int = 1) -> tuple[Expr, ...]:
    """Fields of the table from the input's size to the output's place, for one of the groups."""
    _, height, width, depth = site.shapes[0]
    channels, kernel_y, kernel_x, _ = site.shapes[1]
    images = (image(site.inputs[0]), image(site.output))
    sizes = (height, width, depth // groups, kernel_y, kernel_x, *op.stride, *op.dilation, *op.pads[:2])
    return (*sizes, channels // groups, *images)


def _table(site: Site, window: Sequence[Expr], rows: int, end: Ending, packed: tuple[Array, Array]) -> str:
    site.use("simd_conv")
    add = site.unit.constants.add
    weights = add(packed[0], f"{site.layer.name}: weights in panels", 64)
    bias = add(packed[1], f"{site.layer.name}: bias", 64)
    flags = (int(site.shares(0)), int(site.is_backward))
    return site.unit.table("ew_simd_conv", (weights, bias, *window, rows, *flags, *end.fields))


def _groups(site: Site, w: Array, groups: int) -> tuple[Array, Array]:
    """Weights and bias in panels, group after group."""
    matrices, bias = np.split(w.reshape(w.shape[0], -1), groups), np.split(real_bias(site), groups)
    return np.stack([panels(m) for m in matrices]), np.stack([padded(b) for b in bias])


def real_bias(site: Site) -> Array:
    if len(site.inputs) > 2:
        return site.network.constants[site.inputs[2].tensor.name]
    return np.zeros(site.shapes[1][0], np.float32)


def panels(matrix: Array) -> Array:
    """(channels, depth) as (panels, depth, PANEL), zero beyond the last channel."""
    whole = padded(matrix)
    return np.ascontiguousarray(whole.reshape(-1, PANEL, matrix.shape[1]).transpose(0, 2, 1))


def padded(values: Array) -> Array:
    """Whole panels along the first axis."""
    extra = -values.shape[0] % PANEL
    return np.pad(values, [(0, extra), *[(0, 0)] * (values.ndim - 1)])


def _grouped(site: Site, c: Source, table: str, groups: int, places: tuple[str, str, str]) -> None:
    channels, depth = site.shapes[1][0] // groups, prod(site.shapes[1][1:])
    size = -(-channels // PANEL) * PANEL
    x, y, room = places
    with c.block(f"for (int32_t group = 0; group < {groups}; group++)"):
        c.line(f"ew_simd_conv one = {table};")
        c.line(f"one.weights += group * {size * depth};")
        c.line(f"one.bias += group * {size};")
        read, write = f"{x} + group * {site.shapes[1][3]}", f"{y} + group * {channels}"
        c.line(f"ew_simd_conv_run(&one, {read}, {write}, part, {room});")


def dense(site: Site, c: Source) -> bool:
    """Lines are the pixels of an image with one row; a single one is multiplied where it lies."""
    op = site.op
    assert isinstance(op, Dense)
    lines = dense_lines(site)
    if not is_real(site) or lines is None:
        return False
    first, count, (step_in, step_out) = lines
    depth, channels = site.shapes[0][-1], site.shapes[1][0]
    end = ending(op.activation)
    tile = (None, 0, 1) if count == 1 else _tile(site, depth)
    if tile is None:
        return False
    where, size, rows = tile
    images = (f"{{0, {step_in}, 0}}", f"{{0, {step_out}, 0}}")
    window = (1, first + count, depth, 1, 1, 1, 1, 1, 1, 0, 0, channels, *images)
    weights = site.network.constants[site.inputs[1].tensor.name]
    table = _table(site, window, rows, end, _groups(site, weights, 1))
    x, y = site.inputs[0].pointer, site.output.pointer
    with c.block():
        if count == 1:
            c.line(f"ew_simd_conv_line(&{table}, {x} + {first * step_in}, {y} + {first * step_out});")
        else:
            c.line(f"const ew_part part = {{0, 1, {first}, {first + count}}};")
            c.line(f"ew_simd_conv_run(&{table}, {x}, {y}, part, {working_room(c, where, size, 'float')});")
    finish(site, c, end)
    return True


def dense_lines(site: Site) -> tuple[int, int, tuple[int, int]] | None:
    """(first, count, elements from line to line in input and output) where lines are evenly spaced."""
    *lead, (low, high) = site.region
    if (low, high) != (0, site.result.shape[-1]) or not all(isinstance(b, int) for pair in lead for b in pair):
        return None
    places = (site.inputs[0], site.output)
    if any(place.window or (place.strides[-1] != 1 and place.tensor.shape[-1] != 1) for place in places):
        return None
    if not lead:
        return 0, 1, (0, 0)
    if any(not _is_even(place.strides[:-1], place.tensor.shape[:-1]) for place in places):
        return None
    if any(pair != (0, n) for pair, n in zip(lead[1:], site.result.shape[1:-1], strict=True)):
        return None
    inner = prod(site.result.shape[1:-1])
    first, last = (int(bound) * inner for bound in lead[0])
    return first, last - first, (places[0].strides[-2], places[1].strides[-2])


def _is_even(strides: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether the lines of all leading axes follow each other at one distance."""
    step = strides[-1]
    for stride, size in zip(reversed(strides), reversed(shape), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True
