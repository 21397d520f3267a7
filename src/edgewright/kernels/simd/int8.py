"""Eight-bit convolutions and dense layers as products of packed tiles with panels of weights."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ...network import Array
from ...network.operators import Conv2d, Dense
from ...program import Sweep
from ..call import Call as Site
from ..printing.source import Expr, Source
from .conv import dense_lines, joined_groups, padded, window_fields
from .finish import Whole, whole_layer
from .sites import PANEL, is_plain_image, pictures, room_for, working_room

BYTES, STEP, ROWS = 1024, 1088, 56  # EW_SIMD_BYTES, EW_SIMD_STEP, EW_SIMD_LINES


def conv2d(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Conv2d)
    whole = whole_layer(site)
    if whole is None or not is_plain_image(site) or site.sweep is Sweep.CHANNELS:
        return False
    weights = joined_groups(whole.weights, op.groups)
    tile = None if weights is None else _tile(site, prod(weights.shape[1:]))
    if weights is None or tile is None:
        return False
    where, size, rows = tile
    table = _table(site, replace(whole, weights=weights), window_fields(site, op), rows)
    with pictures(site, c) as (x, y):
        c.line(f"ew_simd_int8_run(&{table}, {x}, {y}, part, {working_room(c, where, size, 'uint8_t')});")
    return True


def dense(site: Site, c: Source) -> bool:
    """Lines are the pixels of an image with one row."""
    assert isinstance(site.op, Dense)
    whole, lines = whole_layer(site), dense_lines(site)
    if whole is None or lines is None:
        return False
    first, count, (step_in, step_out) = lines
    depth, channels = site.shapes[0][-1], site.shapes[1][0]
    tile = _tile(site, depth, count)
    if tile is None:
        return False
    where, size, rows = tile
    images = (f"{{0, {step_in}, 0}}", f"{{0, {step_out}, 0}}")
    window = (1, first + count, depth, 1, 1, 1, 1, 1, 1, 0, 0, channels, *images)
    table = _table(site, whole, window, rows)
    x, y = site.inputs[0].pointer, site.output.pointer
    with c.block():
        c.line(f"const ew_part part = {{0, 1, {first}, {first + count}}};")
        c.line(f"ew_simd_int8_run(&{table}, {x}, {y}, part, {working_room(c, where, size, 'uint8_t')});")
    return True


def _tile(site: Site, depth: int, most: int = ROWS) -> tuple[str | None, int, int] | None:
    """(where, bytes, pixels) of a tile that holds all its pixels read."""
    row, most = STEP * -(-depth // BYTES), min(ROWS, most)
    where, size = room_for(site, row, row * most)
    return (where, size, min(most, size // row)) if size else None


def _table(site: Site, whole: Whole, window: tuple[Expr, ...], rows: int) -> str:
    site.use("simd_int8")
    matrix = whole.weights.reshape(len(whole.weights), -1)
    totals = padded(matrix.astype(np.int32).sum(axis=1, dtype=np.int32))
    add = site.unit.constants.add
    weights = add(byte_panels(matrix), f"{site.layer.name}: weights in panels", 64)
    sums = add(totals, f"{site.layer.name}: sums of weights", 64)
    fields = (weights, sums, whole.finish, *window, rows, int(site.is_backward), int(whole.is_signed), whole.zero)
    return site.unit.table("ew_simd_int8", fields)


def byte_panels(matrix: Array) -> Array:
    """(channels, depth) as (panels, depth / 4, PANEL, 4), zero beyond the last channel and the last byte."""
    whole = padded(np.pad(matrix, [(0, 0), (0, -matrix.shape[1] % 4)]))
    return np.ascontiguousarray(whole.reshape(-1, PANEL, whole.shape[1] // 4, 4).transpose(0, 2, 1, 3))
