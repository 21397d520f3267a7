"""Inputs quantised to eight bits at run time, and products of them: each item of the batch has a scale of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ...network import Array, Interval
from ...network import operators as ops
from ..call import CCall, is_image, part_pointer
from ..kernel import SMALL, Kernel, Offer, anywhere, where
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, Fields, plus, struct_fields
from ..site import ChannelRange, Site
from . import products, windows
from .accumulator import can_accumulate
from .float32 import BLOCK, ConvGeometry, conv_geometry, limits, row_geometry
from .values import ComputeType, named, reader, walk, writer

SiteOrCall = TypeVar("SiteOrCall", bound=Site)


def write_range(call: CCall, _: Offer, c: CWriter) -> None:
    op, x = call.op_as(ops.DynamicRange), call.inputs[0]
    call.use("dynamic")
    kind = "even" if op.even else "asymmetric" if op.asymmetric else "symmetric"
    first, last = call.region[-1]
    rest = [(0, size) for size in x.tensor.shape[op.lead :]]
    numbers = reader(call, 0, ComputeType.REAL)
    with c.block():
        c.line(f"const {x.ctype} *const px = {call.place(0).pointer};")
        source = numbers.at(replace(numbers.place, pointer="px"))
        with loops(c, call.region[: op.lead], "n") as item, c.block():
            c.line(f"float low = {source.value((x.offset((*item, *(0 for _ in rest))),))}, high = low, found[3];")
            with loops(c, rest, "k") as inner, c.block():
                c.line(f"const float v = {source.value((x.offset((*item, *inner)),))};")
                c.line("low = v < low ? v : low;")
                c.line("high = v > high ? v : high;")
            c.line(f"ew_range_{kind}(low, high, found);")
            with loops(c, [(first, last)], "k") as (k,):
                c.line(f"{call.output.pointer}[{call.output.offset((*item, k))}] = found[{k}];")


def write_quantize(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(ops.DynamicQuantize)
    call.use("fixed")
    limits = (-128 if op.asymmetric else -127, 127)
    wanted = ("scale", "zero") if op.even else ("inverse", "zero") if op.asymmetric else ("inverse",)
    with _items(call, c, 1, wanted) as item:
        bounds = (*item, *call.region[len(item) :])
        operands = [reader(call, 0, ComputeType.REAL), writer(call, ComputeType.RAW)]
        with named(c, operands) as (x, y), walk(call, c, bounds, [x, y]) as (a, b):
            if op.even:
                ends = "(float)(-128 - zero), (float)(127 - zero)"
                y.store(c, f"({y.place.ctype})(ew_round_even({x.value(a)} / scale, {ends}) + zero)", b)
                return
            steps = f"ew_round_away_float({x.value(a)} * inverse)" + (" + zero" if op.asymmetric else "")
            y.store(c, f"({y.place.ctype})ew_between({limits[0]}, {steps}, {limits[1]})", b)


def _product(site: SiteOrCall) -> SiteOrCall:
    """The site of the product itself, as if one item were the whole batch."""
    op, lead = site.op_as(ops.DynamicProduct), len(site.inputs[4].strides) - 1
    layer = replace(site.layer, op=op.product)
    facts = site.facts.once("product", lambda: replace(site.facts, layer=layer, known={}))
    most = (*(1 for _ in range(lead)), *site.most[lead:])
    bounds = (*map(_one, site.bounds[:lead]), *site.bounds[lead:])
    return replace(site, facts=facts, most=most, bounds=bounds, dynamic=op)


def _one(bound: Interval | None) -> Interval | None:
    """The bounds of each item, where there is one only."""
    return bound if bound is not None and bound[1] - bound[0] == 1 else None


@contextmanager
def _products(call: CCall, c: CWriter) -> Iterator[tuple[CCall, ops.DynamicProduct]]:
    """Loops over the items; gives the call of the product of each."""
    op = call.op_as(ops.DynamicProduct)
    with _items(call, c, 4, ("scale", "zero") if op.asymmetric else ("scale",)) as item:
        yield replace(_product(call), region=(*item, *call.region[len(item) :])), op


def suits_product(site: Site) -> bool:
    """Wherever the product has plain loops."""
    inner = _product(site)
    return (products.suits_dense if isinstance(inner.op, ops.Dense) else can_accumulate)(inner)


def write_product(call: CCall, offer: Offer, c: CWriter) -> None:
    with _products(call, c) as (inner, _):
        (products.write_dense if isinstance(inner.op, ops.Dense) else windows.write)(inner, offer, c)


def suits_conv(site: Site) -> bool:
    """Pixels in the order of the sweep, four channels at a time, so that memory may be shared."""
    op, x, y = site.op_as(ops.DynamicProduct), site.inputs[0], site.output
    is_constant = all(place.is_constant for place in site.inputs[1:4])
    if not site.ranges or not is_constant or not isinstance(op.product.activation, ops.Clamp | None):
        return False
    match op.product:
        case ops.Conv2d():
            fits = site.bounds[0] == (0, 1) and is_image(x) and is_image(y)
        case ops.Dense():
            fits = x.strides[-1] == y.strides[-1] == 1 and not x.window and not y.window
        case _:
            fits = False
    return fits


def write_conv(call: CCall, _: Offer, c: CWriter) -> None:
    call.use("dynamic_conv")
    with _products(call, c) as (inner, op):
        product, x, y, region = inner.op, call.inputs[0], call.output, inner.region
        first = region[-1][0]
        if isinstance(product, ops.Conv2d):
            geometry, part = conv_geometry(inner), (*region[1], *region[2])
            read, write = x.pointer, y.address((0, 0, 0, first))
            per_group = inner.shapes[1][0] // product.groups if product.groups > 1 else 0
        else:
            row = tuple(index for index, _ in region[:-1])
            geometry, part = row_geometry(1, x.tensor.shape[-1], 0), (0, 1, 0, 1)
            read, write, per_group = x.address((*row, 0)), y.address((*row, first)), 0
        skipped = inner.number(lambda r: (r.channels[0] // per_group) * inner.shapes[1][3]) if per_group else 0
        if skipped:
            read = f"{read} + {skipped}"
        table = inner.table("ew_dynamic_conv", lambda r: _fields(inner, op, geometry, per_group, r))
        with c.block():
            where = part_pointer(inner, c, part)
            zero = "zero" if op.asymmetric else "0"
            given = f"&{table}, {read}, {write}, {where}, {int(call.is_backward)}, scale, {zero}"
            c.line(f"ew_dynamic_conv_run({given});")


def _fields(
    call: CCall, op: ops.DynamicProduct, geometry: ConvGeometry, per_group: int, channels: ChannelRange
) -> Fields:
    """The fields of an ew_dynamic_conv."""
    before = channels.channels[0] % per_group if per_group else 0
    groups = {"per_group": per_group, "first": before, "in_turn": int(op.in_turn)}
    packed = struct_fields(("weights", "scales", "bias"), _packed(call, channels, per_group))
    return {**packed, **geometry.fields, "channels": channels.count, **groups, **limits(op.product.activation)}


def _packed(call: CCall, channels: ChannelRange, per_group: int) -> tuple[Expr, ...]:
    """Weights, in fours unless there are groups; scales and bias."""
    first, last = channels.channels
    w, scales, bias = (call.network.constants[place.tensor.name][first:last] for place in call.inputs[1:4])
    rows: Array = w.reshape(channels.count, -1)
    if not per_group:
        filled = np.pad(rows, ((0, -len(rows) % BLOCK), (0, 0)))
        rows = filled.reshape(-1, BLOCK, rows.shape[1]).transpose(0, 2, 1)
    return call.add(rows, "weights"), call.add(scales, "scales"), call.add(bias, "bias")


_NUMBERS = {"scale": ("float", 0), "inverse": ("float", 1), "zero": ("int32_t", 2)}


@contextmanager
def _items(call: CCall, c: CWriter, which: int, wanted: tuple[str, ...]) -> Iterator[tuple[tuple[Expr, Expr], ...]]:
    """Loops over the items of the region in the step's order, with `wanted` as C variables; gives their bounds."""
    place = call.place(which)
    lead = len(place.strides) - 1
    with c.block(), loops(c, call.region[:lead], "n", backward=call.is_backward) as item, c.block():
        for name in wanted:
            ctype, at = _NUMBERS[name]
            element = f"{place.pointer}[{place.offset((*item, at))}]"
            c.line(f"const {ctype} {name} = {'' if ctype == 'float' else f'({ctype})'}{element};")
        yield tuple((index, plus(index, 1)) for index in item)


RANGE = Kernel("dynamic_range", (ops.DynamicRange,), anywhere, write_range)
QUANTIZE = Kernel("dynamic_quantize", (ops.DynamicQuantize,), anywhere, write_quantize)
CONV = Kernel("dynamic_conv", (ops.DynamicProduct,), where(suits_conv), write_conv, SMALL)
PRODUCT = Kernel("loops_dynamic_product", (ops.DynamicProduct,), where(suits_product), write_product)
