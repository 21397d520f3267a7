"""Element by element along lines, and means over images, with vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...network import Arithmetic
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_scales import activation_range, scale, zero
from ...network.operators import Activation, BatchNorm, Binary, BinaryKind, Reduce, ReduceKind
from ..call import Call as Site
from ..printing.constants import number
from ..printing.images import image
from ..printing.nest import joined_axes, loops
from ..printing.source import Expr, Source, moved, offset, times
from ..printing.tensor import CTensor as Place
from .sites import Ending, ending, finish, is_image, is_ours

_KINDS = {
    BinaryKind.ADD: "EW_SIMD_ADD",
    BinaryKind.SUB: "EW_SIMD_SUB",
    BinaryKind.MUL: "EW_SIMD_MUL",
    BinaryKind.DIV: "EW_SIMD_DIV",
}


def activation(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Activation)
    end = ending(op)
    return end.rest is None and _mapped(site, c, "EW_SIMD_ONE", end)


def batch_norm(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, BatchNorm)
    return _mapped(site, c, "EW_SIMD_SCALE", ending(op.activation))


def binary(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Binary)
    if op.kind in _KINDS and _mapped(site, c, _KINDS[op.kind], ending(op.activation)):
        return True
    return op.kind in (BinaryKind.ADD, BinaryKind.SUB) and _add8(site, c, op)


def _mapped(site: Site, c: Source, what: str, end: Ending) -> bool:
    tensors = [place.tensor for place in site.inputs]
    if not is_ours(site, "float32") or any(tensor.dtype.value != "float32" for tensor in tensors):
        return False
    steps = _steps(site)
    if steps is None:
        return False
    site.use("simd_lines")
    filled = (*steps[:-1], *[0] * (4 - len(steps)))
    fields = (what, f"{{{', '.join(map(str, filled))}}}", int(site.is_backward), *end.function)
    table = site.unit.table("ew_simd_map", fields)
    with _lines(site, c) as (pointers, count):
        *read, y = pointers
        read += ["NULL"] * (3 - len(read))
        c.line(f"ew_simd_map_run(&{table}, {', '.join(read)}, {y}, {count});")
    finish(site, c, end)
    return True


def _add8(site: Site, c: Source, op: Binary) -> bool:
    """int8 or uint8 in TFLite's arithmetic, both operands of the output's shape."""
    tensors = [place.tensor for place in site.inputs]
    if site.arithmetic is not Arithmetic.TFLITE or not site.is_quantised or not is_ours(site, "int8", "uint8"):
        return False
    is_even = all(tensor.shape == site.result.shape and tensor.dtype is site.result.dtype for tensor in tensors)
    if not is_even or _steps(site) != (1, 1, 1):
        return False
    site.use("simd_lines")
    twice = 2.0 * float(max(scale(tensor) for tensor in tensors))
    factors = [quantize_multiplier(float(scale(tensor)) / twice) for tensor in tensors]
    signs = [int(tensor.dtype.value == "int8") for tensor in tensors]
    pairs = (signs, [zero(t) for t in tensors], [f for f, _ in factors], [s for _, s in factors])
    last = quantize_multiplier(twice / (float(1 << 20) * float(scale(site.result))))
    limits = (zero(site.result), *activation_range(op.activation, site.result))
    sign = 1 if op.kind is BinaryKind.ADD else -1
    both = [f"{{{a}, {b}}}" for a, b in pairs]
    fields: tuple[Expr, ...] = (*both, sign, *last, *limits, int(site.is_backward))
    table = site.unit.table("ew_simd_add8", fields)
    with _lines(site, c) as (pointers, count):
        c.line(f"ew_simd_add8_run(&{table}, {', '.join(pointers)}, {count});")
    return True


def _places(site: Site) -> list[Place]:
    rank = len(site.region)
    return [*(site.place(i).spread(rank) for i in range(len(site.inputs))), site.output.spread(rank)]


def _steps(site: Site) -> tuple[int, ...] | None:
    """From element to element along the innermost axis, in each place; None unless all move by one or stay."""
    rank = len(site.region)
    places = [place.spread(rank) for place in (*site.inputs, site.output)]
    if not rank or site.output.tensor.size == 1:
        return None
    _, strides, windows = joined_axes(list(site.region), places)
    axes = len(strides[0])
    steps = tuple(stride[-1] for stride in strides)
    rolls = any(window is not None and window[0] == axes - 1 for window in windows)
    return None if rolls or steps[-1] != 1 or any(step not in (0, 1) for step in steps) else steps


@contextmanager
def _lines(site: Site, c: Source) -> Iterator[tuple[list[str], Expr]]:
    """Loops over all axes but the innermost joined one; gives a pointer to each place's line, and its length."""
    places = _places(site)
    spans, strides, windows = joined_axes(list(site.region), places)
    with loops(c, spans[:-1], backward=site.is_backward) as indices:
        low, high = spans[-1]
        pointers = [
            moved(place.pointer, offset((*indices, low), steps, window))
            for place, steps, window in zip(places, strides, windows, strict=True)
        ]
        count: Expr = high - low if isinstance(low, int) and isinstance(high, int) else f"{high} - ({low})"
        yield pointers, count


def reduce(site: Site, c: Source) -> bool:
    """Sums and means over rows and columns of whole images."""
    op = site.op
    assert isinstance(op, Reduce)
    x = site.inputs[0]
    if not is_ours(site, "float32") or len(x.tensor.shape) != 4 or {a % 4 for a in op.axes} != {1, 2}:
        return False
    if op.kind not in (ReduceKind.MEAN, ReduceKind.SUM) or not site.is_whole or not site.output.is_dense:
        return False
    if not is_image(x) or site.shares(0):
        return False
    site.use("simd_lines")
    batch, height, width, channels = x.tensor.shape
    share = number(1.0 / (height * width) if op.kind is ReduceKind.MEAN else 1.0)
    with c.block():
        c.line(f"const ew_image in = {image(x)};")
        with loops(c, [(0, batch)], "picture") as (picture,):
            read = moved(x.pointer, times(picture, x.strides[0]))
            write = moved(site.output.pointer, times(picture, channels))
            c.line(f"ew_simd_mean({read}, in, {height}, {width}, {channels}, {share}, {write});")
    return True
