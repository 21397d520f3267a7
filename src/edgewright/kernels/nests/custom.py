"""Calls of custom operators: the C function of the user's file gets images as kernels see them, and dense tensors.

It computes a part of an output image, or all of another output.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...network.operators import Custom
from ..call import CCall, CTensor, image, image_of, is_image, part_pointer
from ..kernel import Kernel, Offer
from ..printing.constants import C_TYPES, number
from ..printing.nest import loops
from ..printing.source import CWriter, Expr, designated, plus, times
from ..site import Site
from ..strided_tensor import StridedTensor

ALIGNED = 8  # bytes


def _suits(place: StridedTensor) -> bool:
    """An image is one at a time."""
    shape = place.tensor.shape
    return place.is_constant or len(shape) != 4 or (shape[0] == 1 and is_image(place))


def offers(site: Site) -> Iterator[Offer]:
    """With scratch for copies of tensors that are no images and have gaps, and of an output of which channels are
    asked for."""
    if all(map(_suits, (*site.inputs, site.output))):
        copied = (place for place in (*site.inputs, site.output) if _is_copied(place, site))
        yield Offer(sum(map(_room, copied)))


def _is_copied(place: StridedTensor, site: Site) -> bool:
    if place.is_constant:
        return False
    is_output = place is site.output
    if len(place.tensor.shape) == 4:
        return is_output and site.most[3] != place.tensor.shape[3]
    return not place.is_dense or (is_output and site.most != place.tensor.shape)


def _room(place: StridedTensor) -> int:
    return -(-place.tensor.bytes // ALIGNED) * ALIGNED


def write(call: CCall, offer: Offer, c: CWriter) -> None:
    definition = call.op_as(Custom).definition
    call.use(str(definition.code_path()))
    arguments: list[Expr] = []
    with c.block():
        scratch = call.scratch(c, "uint8_t", offer.scratch, "copies") if offer.scratch else ""
        used = 0
        for which, place in enumerate(call.inputs):
            pointer = call.place(which).pointer
            if _is_copied(place, call):
                pointer, used = _copy(c, place, scratch, used, f"x{which}"), used + _room(place)
                with loops(c, [(0, size) for size in place.tensor.shape], f"a{which}") as at:
                    c.line(f"{pointer}[{_dense(place, at)}] = {place.pointer}[{place.offset(at)}];")
            arguments.append(pointer)
            if not place.is_constant and len(place.tensor.shape) == 4:
                c.line(f"const ew_image i{which} = {designated(image(place))};")
                arguments.append(f"&i{which}")
        y = call.output
        is_copied = _is_copied(y, call)
        result = _copy(c, y, scratch, used, "y") if is_copied else y.pointer
        arguments.append(result)
        if len(y.tensor.shape) == 4:
            width, depth = y.tensor.shape[2:]
            steps = image_of(width * depth, depth) if is_copied else image(y)
            c.line(f"const ew_image iy = {designated(steps)};")
            (top, bottom), (left, right) = call.region[1:3]
            arguments += ["&iy", part_pointer(call, c, (top, bottom, left, right))]
        arguments += [number(value) if isinstance(value, float) else value for value in definition.numbers(call.shapes)]
        c.line(f"{definition.function}({', '.join(map(str, arguments))});")
        if is_copied:
            with loops(c, call.region, "b") as at:
                c.line(f"{y.pointer}[{y.offset(at)}] = {result}[{_dense(y, at)}];")


def _copy(c: CWriter, place: CTensor, scratch: str, used: int, name: str) -> str:
    """C of a pointer to room for the whole tensor."""
    ctype = C_TYPES[place.tensor.dtype.value]
    c.line(f"{ctype} *const {name} = ({ctype} *)(void *)({scratch} + {used});")
    return name


def _dense(place: CTensor, at: tuple[Expr, ...]) -> Expr:
    terms: list[Expr] = []
    step = 1
    for size, index in zip(reversed(place.tensor.shape), reversed(at), strict=True):
        terms.append(times(index, step))
        step *= size
    return plus(*terms)


CUSTOM = Kernel("custom", (Custom,), offers, write, stack=1 << 14)
