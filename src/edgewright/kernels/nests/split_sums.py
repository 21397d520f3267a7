"""Integer sums of a layer that is split between parts of a network, as plain loops: one part sums, another finishes.

Both are halves of the loops that compute the whole layer. Facts about the whole layer come with the operators.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ...network import DType, Layer, Quant, Tensor
from ...network.operators import AvgPool2d, Conv2d, Dense, FinishSums, PartialSum, Reduce
from ..call import CCall, CTensor
from ..kernel import Kernel, Offer, where
from ..printing.nest import loops
from ..printing.source import CWriter, Expr
from ..site import Site
from ..strided_tensor import StridedTensor, dense_strides
from . import products, windows
from .accumulator import accumulator, can_accumulate, plain_sums
from .means import has_mean, stored_mean, summed_count
from .windows import channels, fence

Place = TypeVar("Place", bound=Site)


def suits_partial(site: Site) -> bool:
    op = site.op_as(PartialSum)
    return not isinstance(op.product, Dense) or site.inputs[1].is_dense


def write_partial(call: CCall, _: Offer, c: CWriter) -> None:
    whole = _summing(call)
    match whole.op:
        case Conv2d():
            windows.write_products(whole, c, plain_sums(whole))
        case Dense():
            products.write_products(whole, c, plain_sums(whole))
        case _:
            _write_raw(whole, c)


def _summing(call: CCall) -> CCall:
    """The call as one of the layer itself, over what there is of its input."""
    assert isinstance(call.op, PartialSum)
    layer = replace(call.layer, op=call.op.product)
    return replace(call, facts=replace(call.facts, layer=layer, known={}))


def _write_raw(call: CCall, c: CWriter) -> None:
    """Stored values added as they are, along the axes that are summed over."""
    op, x, shape = call.op, call.place(0), call.shapes[0]
    assert isinstance(op, Reduce | AvgPool2d)
    axes = {1, 2} if isinstance(op, AvgPool2d) else {axis % len(shape) for axis in op.axes}
    keeps = isinstance(op, AvgPool2d) or op.keep
    with c.block():
        c.line(f"const {x.ctype} *const px = {x.pointer};")
        c.line(f"int32_t *const py = {call.output.pointer};")
        with loops(c, call.region, backward=call.is_backward) as at, c.block():
            c.line("int32_t total = 0;")
            with loops(c, [(0, shape[axis]) for axis in sorted(axes)], "k") as inner:
                summed, kept = iter(inner), iter(at)
                index: list[Expr] = []
                for axis in range(len(shape)):
                    own = next(kept) if keeps or axis not in axes else 0
                    index.append(next(summed) if axis in axes else own)
                c.line(f"total += px[{x.offset(index)}];")
            c.line(f"py[{call.output.offset(at)}] = total;")
            fence(call, c)


def suits_finish(site: Site) -> bool:
    """Wherever the whole layer has loops."""
    whole = _finished(site)
    return can_accumulate(whole) if isinstance(whole.op, Conv2d | Dense) else has_mean(whole)


def write_finish(call: CCall, _: Offer, c: CWriter) -> None:
    """Sums added up element by element, then what becomes of the sums of the whole layer."""
    op, whole = call.op_as(FinishSums), _finished(call)
    sums = call.inputs[:-1] if op.biased else call.inputs
    with c.block():
        for i, place in enumerate(sums):
            c.line(f"const int32_t *const p{i} = {call.place(i).pointer};")
            assert place.tensor.dtype is DType.INT32
        c.line(f"{call.output.ctype} *const py = {call.output.pointer};")
        if isinstance(whole.op, Conv2d | Dense):
            acc = accumulator(whole)
            with loops(c, call.region[:-1], backward=call.is_backward) as lead, channels(call, c) as channel:
                total = _total(sums, (*lead, channel))
                c.line(f"const {acc.ctype} sum = {total} + {acc.start(channel)};")
                c.line(f"py[{call.output.offset((*lead, channel))}] = {acc.store('sum', channel)};")
                fence(call, c)
            return
        start, value = stored_mean(whole)
        with loops(c, call.region, backward=call.is_backward) as at, c.block():
            c.line(f"const int32_t total = {_total(sums, at)} + ({start});")
            if "count" in value:
                c.line(f"const int32_t count = {summed_count(whole)};")
            c.line(f"py[{call.output.offset(at)}] = {value};")
            fence(call, c)


def _total(sums: tuple[CTensor, ...], at: tuple[Expr, ...]) -> str:
    return " + ".join(f"p{i}[{place.offset(at)}]" for i, place in enumerate(sums))


def _finished(site: Place) -> Place:
    """The site as one of the whole layer: its input, and its weights, are nowhere, but what they are is known."""
    op, layer, network = site.op_as(FinishSums), site.layer, site.network
    tensors = [Tensor(f"{layer.name}:x", op.shapes[0], op.dtype, Quant.of(op.scale, op.zero))]
    if op.weight_scales:
        count = len(op.weight_scales)
        scales = Quant(op.weight_scales, (0,) * count, 0)
        tensors.append(Tensor(f"{layer.name}:w", op.shapes[1], DType.INT8, scales))
    bias = layer.inputs[-1:] if op.biased else ()
    product = Layer(layer.name, op.product, (*(tensor.name for tensor in tensors), *bias), layer.output)
    known = {**network.tensors, **{tensor.name: tensor for tensor in tensors}}
    facts = replace(site.facts, network=replace(network, tensors=known), layer=product, known={})
    kind = CTensor if isinstance(site, CCall) else StridedTensor
    places = tuple(kind(tensor, dense_strides(tensor), memory="nowhere") for tensor in tensors)
    return replace(site, facts=facts, inputs=(*places, *site.inputs[len(site.inputs) - len(bias) :]))


PARTIAL = Kernel("loops_partial_sum", (PartialSum,), where(suits_partial), write_partial)
FINISH = Kernel("loops_finish_sums", (FinishSums,), where(suits_finish), write_finish)
