"""Importers of Resize, Upsample and GridSample: height and width only.

Cubic ones are products with tap weights; for a grid, positions are computed and pixels gathered.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, isfinite

import numpy as np

from .. import operators as ops
from ..decompositions import times_matrix
from ..operators import Coordinates, NearestMode, Resize, ResizeMode
from ..region import Shape
from ..tensor import Array, DType
from .context import Value
from .elementwise import pairwise
from .node import OnnxNode
from .tensors import check_shape
from .windows import image_in, image_out

_MODES = {"nearest": ResizeMode.NEAREST, "linear": ResizeMode.LINEAR, "bilinear": ResizeMode.LINEAR}

# Rounding modes for positions half a pixel further on than those of half_pixel, in terms of the latter.
_HALF_A_PIXEL_ON = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}


def upsample(node: OnnxNode) -> Value:
    """Upsample, and Resize of opset 10: scales only, with asymmetric coordinates.

    The standard does not define the nearest neighbour here; onnxruntime takes the lower one or, if the image shrinks,
    the upper one.
    """
    x = node.input(0)
    scales = node.reals("scales") if node.op_type == "Upsample" and node.opset < 9 else None
    if scales is None:
        scales = _scales(node, node.input(1))
    mode = _mode(node, "nearest")
    shrinks = {scale < 1 for scale in scales if scale != 1}
    if mode is ResizeMode.NEAREST and len(shrinks) == 2:
        raise node.unsupported("shrinks one axis and widens the other")
    rounding = NearestMode.CEIL if True in shrinks else NearestMode.FLOOR
    return _resize(node, x, scales, None, mode, Coordinates.ASYMMETRIC, rounding)


def resize(node: OnnxNode) -> Value:
    if node.opset < 11:
        return upsample(node)
    x = node.input(0)
    shape = node.shape(x)
    is_cubic = node.text("mode", "nearest") == "cubic"
    mode = ResizeMode.LINEAR if is_cubic else _mode(node, "nearest")
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    nearest = node.text("nearest_mode", "round_prefer_floor")
    if coordinates == "tf_half_pixel_for_nn" and mode is ResizeMode.NEAREST and nearest in _HALF_A_PIXEL_ON:
        coordinates, nearest = "half_pixel", _HALF_A_PIXEL_ON[nearest]
    if coordinates not in {choice.value for choice in Coordinates}:
        raise node.unsupported(f"coordinate_transformation_mode '{coordinates}' is not supported")
    if nearest not in {choice.value for choice in NearestMode}:
        raise node.error(f"nearest_mode '{nearest}' is not known")
    if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise node.unsupported("keep_aspect_ratio_policy is not supported")
    axes = node.axes(node.integers("axes") or tuple(range(len(shape))), len(shape))
    scales, sizes = _stated(node, 2), _stated(node, 3)
    if (scales is None) == (sizes is None):
        raise node.error("needs either scales or sizes")
    factors = [1.0] * len(shape)
    wanted: list[int] | None = None
    if scales is not None:
        given = _scales(node, scales)
        _require_fit(node, len(given), axes)
        for axis, scale in zip(axes, given, strict=True):
            factors[axis] = scale
    if sizes is not None:
        ints = node.array_ints(sizes, "sizes")
        _require_fit(node, len(ints), axes)
        wanted = list(shape)
        for axis, size in zip(axes, ints, strict=True):
            wanted[axis] = size
    places, sizes_wanted = Coordinates(coordinates), tuple(wanted) if wanted else None
    if is_cubic:
        return _cubic(node, x, tuple(factors), sizes_wanted, places)
    return _resize(node, x, tuple(factors), sizes_wanted, mode, places, NearestMode(nearest))


def _cubic(node: OnnxNode, x: Value, scales: tuple[float, ...], sizes: Shape | None, coordinates: Coordinates) -> Value:
    """Lines, then columns; each output is the sum of four neighbours."""
    shape = node.shape(x)
    target = _target(node, shape, scales, sizes)
    if node.flag("antialias") and any(a < b for a, b in zip(target, shape, strict=True)):
        raise node.unsupported("antialias is not supported")
    a, excludes = node.real("cubic_coeff_a", -0.75), node.flag("exclude_outside")
    for axis in (2, 3)[: len(shape) - 2]:
        if target[axis] != shape[axis] or scales[axis] != 1.0:
            scale = None if sizes is not None else (1.0, scales[axis])
            line = Resize((1, target[axis]), coordinates=coordinates, scale=scale)
            places = [line.place(1, index, shape[axis]) for index in range(target[axis])]
            weights = _cubic_weights(places, shape[axis], a, excludes)
            x = node.layer(*times_matrix(node, x, axis, weights, f"axis{axis}"), f"axis{axis}/back")
    return x


def _cubic_weights(places: list[float], extent: int, a: float, excludes: bool) -> Array:
    """One row for each position: Keys' weights of the four inputs around it; inputs beyond the border are clamped or
    left out."""
    matrix = np.zeros((len(places), extent))
    for row, place in zip(matrix, places, strict=True):
        first = floor(place) - 1
        for tap in range(first, first + 4):
            d = abs(place - tap)
            near = (a + 2) * d**3 - (a + 3) * d**2 + 1
            weight = near if d <= 1 else a * (d**3 - 5 * d**2 + 8 * d - 4)
            if 0 <= tap < extent or not excludes:
                row[min(max(tap, 0), extent - 1)] += weight
    if excludes:
        matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix.astype(np.float32)


def _mode(node: OnnxNode, default: str) -> ResizeMode:
    mode = node.text("mode", default)
    if mode not in _MODES:
        raise node.unsupported(f"mode '{mode}' is not supported")
    return _MODES[mode]


def _stated(node: OnnxNode, index: int) -> Value | None:
    """An optional input; some files omit it with an empty tensor."""
    value = node.optional(index)
    return None if value is None or node.shape(value) == (0,) else value


def _scales(node: OnnxNode, value: Value) -> tuple[float, ...]:
    return tuple(float(scale) for scale in node.array(value, "scales").reshape(-1))


def _scaled(size: int, scale: float) -> int:
    """size * scale rounded down, in float32 as in onnxruntime."""
    return int(np.float32(size) * np.float32(scale))


def _require_fit(node: OnnxNode, count: int, axes: Shape) -> None:
    if count != len(axes):
        raise node.error(f"{count} scales or sizes for {len(axes)} axes")


def _resize(
    node: OnnxNode,
    x: Value,
    scales: tuple[float, ...],
    sizes: Shape | None,
    mode: ResizeMode,
    coordinates: Coordinates,
    rounding: NearestMode,
) -> Value:
    shape = node.shape(x)
    target = _target(node, shape, scales, sizes)
    if node.flag("antialias") and mode is ResizeMode.LINEAR and any(a < b for a, b in zip(target, shape, strict=True)):
        raise node.unsupported("antialias is not supported")
    image = image_in(node, x)
    lines = len(shape) == 3
    size = (1, target[2]) if lines else (target[2], target[3])
    scale = None
    if sizes is None:
        scale = (1.0, scales[2]) if lines else (scales[2], scales[3])
    y = node.layer(Resize(size, mode, coordinates, rounding, scale), [image])
    return image_out(node, y, len(shape))


def _target(node: OnnxNode, shape: Shape, scales: tuple[float, ...], sizes: Shape | None) -> Shape:
    """The shape of the result; an error if other axes than height and width change."""
    if len(scales) != len(shape):
        raise node.error(f"{len(scales)} scales for a tensor of rank {len(shape)}")
    if not all(isfinite(scale) and 0 < scale < 2**31 for scale in scales):
        raise node.error(f"scales {list(scales)} must be positive")
    target = sizes or tuple(_scaled(size, scale) for size, scale in zip(shape, scales, strict=True))
    check_shape(target, str(node))
    if len(shape) not in (3, 4) or target[:2] != shape[:2] or scales[:2] != (1.0, 1.0):
        raise node.unsupported(f"only height and width can be resized, not {list(shape)} to {list(target)}")
    if min(target) < 1:
        raise node.error(f"gives an empty image {list(target)}")
    return target


def grid_sample(node: OnnxNode) -> Value:
    """Samples the image at each position of the grid (1, H, W, 2: x and y from -1 to 1): one pixel, or four
    interpolated."""
    x, grid = node.input(0), node.input(1)
    shape, places = node.shape(x), node.shape(grid)
    mode, padding = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    aligned = node.flag("align_corners")
    if len(shape) != 4 or len(places) != 4 or shape[0] != 1 or places[0] != 1 or places[3] != 2:
        raise node.unsupported(f"a grid {list(places)} for {list(shape)}; one image at a time")
    if mode not in ("linear", "bilinear", "nearest") or padding not in ("zeros", "border"):
        raise node.unsupported(f"mode '{mode}' with padding_mode '{padding}'")
    _, depth, height, width = shape
    count = places[1] * places[2]
    pixels = node.reshaped(node.transposed(x, (0, 2, 3, 1), "last"), (height * width, depth), "pixels")
    extent = np.array([width, height], np.float32)
    sampler = _GridSampler(node, pixels, extent, padding == "border")
    half = node.constant("half", (extent - aligned) / np.float32(2))
    moved = sampler.pair("MUL", node.reshaped(grid, (count, 2), "grid"), half, "scaled")
    place = sampler.pair("ADD", moved, node.constant("middle", (extent - 1) / np.float32(2)), "place")
    if mode == "nearest":
        place = node.layer(ops.Unary(ops.UnaryKind.ROUND), [sampler.inside(place, "nearest")], "rounded")
        total = sampler.picked(place, None, "pixel")
    else:
        place = sampler.inside(place, "place")
        low = node.layer(ops.Unary(ops.UnaryKind.FLOOR), [place], "low")
        share = sampler.pair("SUB", place, low, "share")
        corners = []
        for name, step in (("a", (0, 0)), ("b", (1, 0)), ("c", (0, 1)), ("d", (1, 1))):
            there = sampler.pair("ADD", low, node.constant(f"{name}/step", np.array(step, np.float32)), f"{name}/there")
            rest = node.constant(f"{name}/rest", 1 - np.array(step, np.float32))
            weight = node.layer(
                ops.Unary(ops.UnaryKind.ABS), [sampler.pair("SUB", rest, share, f"{name}/left")], f"{name}/weight"
            )
            corners.append(sampler.picked(there, weight, name))
        total = corners[0]
        for i, corner in enumerate(corners[1:]):
            total = sampler.pair("ADD", total, corner, f"sum{i}")
    image = node.reshaped(total, (1, places[1], places[2], depth), "image")
    return node.transposed(image, (0, 3, 1, 2), "first")


@dataclass(frozen=True, slots=True)
class _GridSampler:
    """Pixels (height * width, depth), and how to gather them at positions (count, 2: x, y)."""

    node: OnnxNode
    pixels: Value
    extent: Array
    borders: bool  # whether positions outside are clamped to the border; otherwise pixels there are zero

    def pair(self, kind: str, a: Value, b: Value, tag: str) -> Value:
        return pairwise(self.node, ops.BinaryKind[kind], a, b, tag)

    def inside(self, place: Value, tag: str) -> Value:
        return self._limited(place, tag) if self.borders else place

    def _limited(self, place: Value, tag: str) -> Value:
        most = self.node.constant(f"{tag}/most", self.extent - 1)
        return self.pair(
            "MIN", self.pair("MAX", place, self.node.number("zero", 0.0), f"{tag}/not_less"), most, f"{tag}/in"
        )

    def picked(self, place: Value, weight: Value | None, tag: str) -> Value:
        """The pixels at integer positions, times their weights along both axes."""
        node, count = self.node, self.node.shape(place)[0]
        near = self._limited(place, tag)
        steps = node.constant(f"{tag}/steps", np.array([1, self.extent[0]], np.float32))
        flat = node.layer(
            ops.Reduce((1,), False, ops.ReduceKind.SUM), [self.pair("MUL", near, steps, f"{tag}/by")], f"{tag}/flat"
        )
        index = node.layer(ops.Cast(DType.INT32), [flat], f"{tag}/index", dtype=DType.INT32)
        pixels: Value = node.layer(ops.Gather(0), [self.pixels, index], f"{tag}/pixels")
        if not self.borders:
            is_in = node.layer(ops.Compare(ops.CompareKind.EQUAL), [near, place], f"{tag}/is_in", dtype=DType.BOOL)
            factor: Value = node.layer(ops.Cast(DType.FLOAT32), [is_in], f"{tag}/there", dtype=DType.FLOAT32)
            weight = factor if weight is None else self.pair("MUL", factor, weight, f"{tag}/weighed")
        if weight is None:
            return pixels
        x, y = (node.layer(ops.Slice((0, i), (count, 1), (1, 1)), [weight], f"{tag}/w{i}") for i in range(2))
        return self.pair("MUL", pixels, self.pair("MUL", x, y, f"{tag}/both"), tag)
