"""Numbers stored in eight bits as they come, and their products, item by item: each has a scale of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ...network import Array
from ...network.operators import (
    Clamp,
    Conv2d,
    ConvTranspose2d,
    Dense,
    DynamicProduct,
    DynamicQuantize,
    DynamicRange,
)
from ...platform.target import Family
from ..call import Call as Site
from ..portable.blocked import is_image
from ..printing.images import image, part_pointer
from ..printing.nest import loops
from ..printing.source import Expr, Source, braced, plus
from .products import dense
from .reals import BLOCK, limits
from .values import World, named, reader, walk, writer
from .windows import conv2d, conv_transpose2d


def dynamic_range(site: Site, c: Source) -> bool:
    op, x = site.op, site.inputs[0]
    assert isinstance(op, DynamicRange)
    site.use("dynamic")
    kind = "asymmetric" if op.asymmetric else "symmetric"
    first, last = site.region[-1]
    rest = [(0, size) for size in x.tensor.shape[op.lead :]]
    numbers = reader(site, 0, World.REAL)
    with c.block():
        c.line(f"const {x.ctype} *const px = {site.place(0).pointer};")
        source = numbers.at(replace(numbers.place, pointer="px"))
        with loops(c, site.region[: op.lead], "n") as item, c.block():
            c.line(f"float low = {source.value((x.offset((*item, *(0 for _ in rest))),))}, high = low, found[3];")
            with loops(c, rest, "k") as inner, c.block():
                c.line(f"const float v = {source.value((x.offset((*item, *inner)),))};")
                c.line("low = v < low ? v : low;")
                c.line("high = v > high ? v : high;")
            c.line(f"ew_range_{kind}(low, high, found);")
            with loops(c, [(first, last)], "k") as (k,):
                c.line(f"{site.output.pointer}[{site.output.offset((*item, k))}] = found[{k}];")
    return True


def dynamic_quantize(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, DynamicQuantize)
    site.use("fixed")
    limits = (-128 if op.asymmetric else -127, 127)
    with _items(site, c, 1, ("inverse", "zero") if op.asymmetric else ("inverse",)) as item:
        bounds = (*item, *site.region[len(item) :])
        streams = [reader(site, 0, World.REAL), writer(site, World.RAW)]
        with named(site, c, streams) as (x, y), walk(site, c, bounds, [x, y]) as (a, b):
            steps = f"ew_round_away_float({x.value(a)} * inverse)" + (" + zero" if op.asymmetric else "")
            y.store(c, f"({y.place.ctype})ew_between({limits[0]}, {steps}, {limits[1]})", b)
    return True


def dynamic_product(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, DynamicProduct)
    with _items(site, c, 4, ("scale", "zero") if op.asymmetric else ("scale",)) as item:
        region = (*item, *site.region[len(item) :])
        inner = replace(
            site,
            facts=replace(site.facts, layer=replace(site.layer, op=op.product), known={}),
            region=region,
            dynamic=op,
        )
        if _by_kernel(inner, c, op):
            return True
        match op.product:
            case Conv2d():
                return conv2d(inner, c)
            case ConvTranspose2d():
                return conv_transpose2d(inner, c)
            case Dense():
                return dense(inner, c)


def _by_kernel(site: Site, c: Source, op: DynamicProduct) -> bool:
    """Small cores: pixels in the order of the sweep, four channels at a time, so that memory may be shared."""
    x, y, (first, last) = site.inputs[0], site.output, site.region[-1]
    known = isinstance(first, int) and isinstance(last, int) and isinstance(op.product.activation, Clamp | None)
    if site.target.family is Family.SIMD or not known or not all(p.is_constant for p in site.inputs[1:4]):
        return False
    assert isinstance(first, int) and isinstance(last, int)
    product, shape = op.product, site.shapes[1]
    match product:
        case Conv2d():
            if site.region[0] != (0, 1) or not is_image(x) or not is_image(y):
                return False
            window = (
                *x.tensor.shape[1:3],
                shape[3],
                *shape[1:3],
                *product.stride,
                *product.dilation,
                *product.pads[:2],
            )
            images, part = (image(x), image(y)), (*site.region[1], *site.region[2])
            read, write = x.pointer, y.address((0, 0, 0, first))
            per_group = shape[0] // product.groups if product.groups > 1 else 0
        case Dense():
            if x.strides[-1] != 1 or y.strides[-1] != 1 or x.window or y.window:
                return False
            row = tuple(index for index, _ in site.region[:-1])
            window = (1, 1, x.tensor.shape[-1], 1, 1, 1, 1, 1, 1, 0, 0)
            images, part = (braced((0, x.tensor.shape[-1], 0)), braced((0, 0, 0))), (0, 1, 0, 1)
            read, write, per_group = x.address((*row, 0)), y.address((*row, first)), 0
        case _:
            return False
    if per_group:
        group = first // per_group
        if group:
            read = f"{read} + {group * shape[3]}"
    site.use("dynamic_conv")
    tables = _tables(site, first, last, per_group)
    flags = (
        last - first,
        per_group,
        first % per_group if per_group else 0,
        int(op.in_turn),
        *limits(product.activation),
    )
    table = site.unit.table("ew_dynamic_conv", (*tables, *images, *window, *flags))
    with c.block():
        where = part_pointer(site, c, part)
        zero = "zero" if op.asymmetric else "0"
        c.line(f"ew_dynamic_conv_run(&{table}, {read}, {write}, {where}, {int(site.is_backward)}, scale, {zero});")
    return True


def _tables(site: Site, first: int, last: int, per_group: int) -> tuple[Expr, ...]:
    """Weights, in fours unless there are groups; scales and bias."""
    w, scales, bias = (site.network.constants[place.tensor.name][first:last] for place in site.inputs[1:4])
    rows: Array = w.reshape(last - first, -1)
    if not per_group:
        filled = np.pad(rows, ((0, -len(rows) % BLOCK), (0, 0)))
        rows = filled.reshape(-1, BLOCK, rows.shape[1]).transpose(0, 2, 1)
    add, name = site.unit.constants.add, site.layer.name
    return add(rows, f"{name}: weights"), add(scales, f"{name}: scales"), add(bias, f"{name}: bias")


_NUMBERS = {"scale": ("float", 0), "inverse": ("float", 1), "zero": ("int32_t", 2)}


@contextmanager
def _items(site: Site, c: Source, which: int, wanted: tuple[str, ...]) -> Iterator[tuple[tuple[Expr, Expr], ...]]:
    """Loops over the items of the region, in the step's order; gives the bounds of each, with its numbers at hand."""
    place = site.place(which)
    lead = len(place.strides) - 1
    with c.block(), loops(c, site.region[:lead], "n", backward=site.is_backward) as item, c.block():
        for name in wanted:
            ctype, at = _NUMBERS[name]
            element = f"{place.pointer}[{place.offset((*item, at))}]"
            c.line(f"const {ctype} {name} = {'' if ctype == 'float' else f'({ctype})'}{element};")
        yield tuple((index, plus(index, 1)) for index in item)
