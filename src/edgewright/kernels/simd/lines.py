"""Element by element along lines, means over images and normalised pixels, with vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...network import Arithmetic
from ...network import operators as ops
from ...network.kernels.tflite_fixed import quantize_multiplier
from ...network.kernels.tflite_scales import activation_range, scale, zero
from ..call import CCall, image
from ..kernel import Kernel, Offer, where
from ..printing.constants import number
from ..printing.nest import joined_axes, loops
from ..printing.source import CWriter, Expr, Fields, advanced, braced, designated, offset, times
from ..site import Site, unwrap
from .epilogue import Epilogue, epilogue_of, write_second_pass
from .sites import SIMD, batch_items, has_types, is_image, is_image_of_ranges, is_of_all_channels

_KINDS = {
    ops.BinaryKind.ADD: "EW_SIMD_ADD",
    ops.BinaryKind.SUB: "EW_SIMD_SUB",
    ops.BinaryKind.MUL: "EW_SIMD_MUL",
    ops.BinaryKind.DIV: "EW_SIMD_DIV",
}


def suits_map(site: Site) -> bool:
    """For functions of one float32, or of two or three that are combined."""
    is_float = all(place.tensor.dtype.value == "float32" for place in (*site.inputs, site.output))
    return is_float and _function(site) is not None and _steps(site) is not None


def _function(site: Site) -> tuple[str, Epilogue] | None:
    """How inputs are combined, and what follows; None where the kernel does not know it."""
    op = site.op
    if isinstance(op, ops.BatchNorm):
        return "EW_SIMD_SCALE", epilogue_of(op.activation)
    if isinstance(op, ops.Binary):
        return (_KINDS[op.kind], epilogue_of(op.activation)) if op.kind in _KINDS else None
    assert isinstance(op, ops.Activation)
    end = epilogue_of(op)
    return ("EW_SIMD_ONE", end) if end.rest is None else None


def write_map(call: CCall, _: Offer, c: CWriter) -> None:
    (what, end), steps = unwrap(_function(call)), unwrap(_steps(call))
    call.use("simd_lines")
    filled = (*steps[:-1], *[0] * (4 - len(steps)))
    backward = int(call.is_backward)
    fields: Fields = {"what": what, "steps": braced(filled), "is_backward": backward, **end.function}
    table = call.module.table("ew_simd_map", fields)
    with _lines(call, c) as (pointers, count):
        *read, y = pointers
        read += ["NULL"] * (3 - len(read))
        c.line(f"ew_simd_map_run(&{table}, {', '.join(read)}, {y}, {count});")
    write_second_pass(call, c, end)


def suits_add(site: Site) -> bool:
    """int8 or uint8 in TFLite's arithmetic, both operands of the output's shape."""
    op, tensors = site.op_as(ops.Binary), [place.tensor for place in site.inputs]
    if op.kind not in (ops.BinaryKind.ADD, ops.BinaryKind.SUB) or site.arithmetic is not Arithmetic.TFLITE:
        return False
    is_even = all(tensor.shape == site.result.shape and tensor.dtype is site.result.dtype for tensor in tensors)
    is_ours = site.is_quantised and has_types(site, "int8", "uint8")
    return is_ours and is_even and _steps(site) == (1, 1, 1)


def write_add(call: CCall, _: Offer, c: CWriter) -> None:
    op, tensors = call.op_as(ops.Binary), [place.tensor for place in call.inputs]
    call.use("simd_lines")
    twice = 2.0 * float(max(scale(tensor) for tensor in tensors))
    factors = [quantize_multiplier(float(scale(tensor)) / twice) for tensor in tensors]
    signs = [int(tensor.dtype.value == "int8") for tensor in tensors]
    multiplier, shift = quantize_multiplier(twice / (float(1 << 20) * float(scale(call.result))))
    low, high = activation_range(op.activation, call.result)
    fields: Fields = {
        "is_signed": braced(signs),
        "zero": braced(map(zero, tensors)),
        "multiplier": braced(factor for factor, _ in factors),
        "shift": braced(by for _, by in factors),
        "sign": 1 if op.kind is ops.BinaryKind.ADD else -1,
        "out_multiplier": multiplier,
        "out_shift": shift,
        "out_zero": zero(call.result),
        "low": low,
        "high": high,
        "is_backward": int(call.is_backward),
    }
    table = call.module.table("ew_simd_add8", fields)
    with _lines(call, c) as (pointers, count):
        c.line(f"ew_simd_add8_run(&{table}, {', '.join(pointers)}, {count});")


def _steps(site: Site) -> tuple[int, ...] | None:
    """From element to element along the innermost axis, in each place; None unless all move by one or stay."""
    rank = len(site.bounds)
    places = [place.broadcast(rank) for place in (*site.inputs, site.output)]
    if not rank or site.output.tensor.size == 1:
        return None
    bounds: list[tuple[Expr, Expr]] = [known or ("first", "last") for known in site.bounds]
    _, strides, windows = joined_axes(bounds, places)
    axes = len(strides[0])
    steps = tuple(stride[-1] for stride in strides)
    rolls = any(window is not None and window[0] == axes - 1 for window in windows)
    return None if rolls or steps[-1] != 1 or any(step not in (0, 1) for step in steps) else steps


@contextmanager
def _lines(call: CCall, c: CWriter) -> Iterator[tuple[list[str], Expr]]:
    """Loops over all axes but the innermost joined one; gives a pointer to each place's line, and its length."""
    rank = len(call.region)
    places = [*(call.place(i).broadcast(rank) for i in range(len(call.inputs))), call.output.broadcast(rank)]
    spans, strides, windows = joined_axes(list(call.region), places)
    with loops(c, spans[:-1], backward=call.is_backward) as indices:
        low, high = spans[-1]
        pointers = [
            advanced(place.pointer, offset((*indices, low), steps, window))
            for place, steps, window in zip(places, strides, windows, strict=True)
        ]
        count: Expr = high - low if isinstance(low, int) and isinstance(high, int) else f"{high} - ({low})"
        yield pointers, count


def suits_mean(site: Site) -> bool:
    """Sums and means over rows and columns of whole images."""
    op, x = site.op_as(ops.Reduce), site.inputs[0]
    if not has_types(site, "float32") or len(x.tensor.shape) != 4 or {a % 4 for a in op.axes} != {1, 2}:
        return False
    is_known = op.kind in (ops.ReduceKind.MEAN, ops.ReduceKind.SUM)
    return is_known and site.is_whole and site.output.is_dense and is_image(x) and not site.shares(0)


def write_mean(call: CCall, _: Offer, c: CWriter) -> None:
    op, x = call.op_as(ops.Reduce), call.inputs[0]
    call.use("simd_lines")
    batch, height, width, channels = x.tensor.shape
    share = number(1.0 / (height * width) if op.kind is ops.ReduceKind.MEAN else 1.0)
    with c.block():
        c.line(f"const ew_image in = {designated(image(x))};")
        with loops(c, [(0, batch)], "picture") as (picture,):
            read = advanced(x.pointer, times(picture, x.strides[0]))
            write = advanced(call.output.pointer, times(picture, channels))
            c.line(f"ew_simd_mean({read}, in, {height}, {width}, {channels}, {share}, {write});")


def suits_lrn(site: Site) -> bool:
    """Whole pixels, with the exponent of all networks: 3/4 is two square roots."""
    op = site.op_as(ops.Lrn)
    is_ours = has_types(site, "float32") and op.beta == 0.75
    return is_ours and is_image_of_ranges(site) and is_of_all_channels(site)


def write_lrn(call: CCall, _: Offer, c: CWriter) -> None:
    op, channels = call.op_as(ops.Lrn), call.shapes[0][-1]
    call.use("simd_lrn")
    fields: Fields = {
        "channels": channels,
        "before": (op.size - 1) // 2,
        "after": op.size // 2,
        "in": image(call.inputs[0]),
        "out": image(call.output),
        "is_backward": int(call.is_backward),
        "bias": number(op.bias),
        "scale": number(op.alpha / op.size),
    }
    table = call.module.table("ew_simd_lrn", fields)
    with batch_items(call, c) as (x, y):
        c.line(f"ew_simd_lrn_run(&{table}, {x}, {y}, part);")


_MAPPED = (ops.Clamp, ops.LeakyRelu, ops.Elu, ops.HardSigmoid, ops.Unary, ops.BatchNorm, ops.Binary)
MAP = Kernel("simd_map", _MAPPED, where(suits_map), write_map, SIMD)
ADD_INT8 = Kernel("simd_add_int8", (ops.Binary,), where(suits_add), write_add, SIMD)
MEAN = Kernel("simd_mean", (ops.Reduce,), where(suits_mean), write_mean, SIMD)
LRN = Kernel("simd_lrn", (ops.Lrn,), where(suits_lrn), write_lrn, SIMD)
