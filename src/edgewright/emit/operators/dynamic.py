"""Numbers stored in eight bits as they come, and their products, item by item: each has a scale of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...network.operators import Conv2d, ConvTranspose2d, Dense, DynamicProduct, DynamicQuantize, DynamicRange
from ..nest import loops
from ..site import Site
from ..source import Expr, Source, plus
from .products import dense
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
        inner = replace(site, layer=replace(site.layer, op=op.product), region=region, dynamic=op)
        match op.product:
            case Conv2d():
                return conv2d(inner, c)
            case ConvTranspose2d():
                return conv_transpose2d(inner, c)
            case Dense():
                return dense(inner, c)


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
