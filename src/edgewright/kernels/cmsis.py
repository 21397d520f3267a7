"""Calls of an installed CMSIS-NN (its API from version 4 on) instead of our kernels.

A layer is called whole, where its tensors are dense and do not overlap, and where its context buffer fits into the
arena. All other layers use our kernels. The arguments are tested against a stand-in written from the published
interface; the results on the chip are those of the CMSIS-NN that is linked.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..network import Arithmetic, Array
from ..network.kernels.operand import Operand
from ..network.kernels.tflite_fixed import quantize_multiplier
from ..network.kernels.tflite_lines import difference_scale
from ..network.kernels.tflite_scales import activation_range, channel_multipliers, scale, zero
from ..network.operators import AvgPool2d, Binary, BinaryKind, Conv2d, Dense, MaxPool2d, Softmax
from ..network.region import Region, Shape
from ..network.tensor import DType
from ..platform.target import Architecture, Family
from ..program.options import Kernels, Rounding
from .call import CCall
from .kernel import SMALL, Kernel, Offer, where
from .printing.source import CWriter, Fields, designated, struct_fields
from .requantise.sums import requantised
from .site import Site, unwrap
from .window import round_up

LEFT = 20  # bits that TFLite shifts the operands of a sum to the left
MVE_CHANNELS = 124  # that CMSIS-NN's depthwise kernel gathers at once


def offers_conv(site: Site) -> Iterator[Offer]:
    op = site.op_as(Conv2d)
    if not _is_ours(site) or min(op.pads) < 0 or requantised(site) is None:
        return
    if _is_depthwise(site, op):
        yield Offer.of(_depthwise_bytes(site))
    elif op.groups == 1:
        yield Offer.of(_convolution_bytes(site))


def _is_depthwise(site: Site, op: Conv2d) -> bool:
    x, w = site.shapes[:2]
    return op.groups > 1 and op.groups == x[3] and w[3] == 1


def _convolution_bytes(site: Site) -> int:
    """What arm_convolve_wrapper_s8 gathers columns into: four of int8 with vectors, two of int16 without."""
    block = 16 if site.target.family is Family.HELIUM else 4
    return 4 * round_up(prod(site.shapes[1][1:]), block)


def _depthwise_bytes(site: Site) -> int:
    w = site.shapes[1]
    channels = 2 * MVE_CHANNELS if site.target.family is Family.HELIUM else w[0]
    return 2 * w[1] * w[2] * channels


def write_conv(call: CCall, offer: Offer, c: CWriter) -> None:
    op, (x, w) = call.op_as(Conv2d), call.shapes[:2]
    is_depthwise = _is_depthwise(call, op)
    multiple = {"ch_mult": w[0] // x[3]} if is_depthwise else {}
    fields: Fields = {
        "input_offset": -zero(call.inputs[0].tensor),
        "output_offset": zero(call.result),
        **multiple,
        "stride": _tile(op.stride),
        "padding": _tile(op.pads[:2]),
        "dilation": _tile(op.dilation),
        "activation": _range(call),
    }
    parameters = call.module.table(f"cmsis_nn_{'dw_conv' if is_depthwise else 'conv'}_params", fields)
    values = call.weights
    weights = values.reshape(w[0], -1).T if is_depthwise else values
    shapes = (x, (1, w[1], w[2], w[0]) if is_depthwise else w, call.result.shape)
    name = "arm_depthwise_conv_wrapper_s8" if is_depthwise else "arm_convolve_wrapper_s8"
    with c.block():
        _write_context(call, offer, c)
        _write_product(call, c, name, f"&{parameters}, &{_per_channel(call)}", shapes, weights)


def suits_dense(site: Site) -> bool:
    """Where TFLM's rounding is asked for. With vectors the context would hold sums, in a way that versions change."""
    w = site.inputs[1].tensor
    is_wanted = _is_ours(site) and site.options.rounding is Rounding.TFLM
    is_scaled_once = w.quant is not None and not w.quant.is_per_channel
    return is_wanted and is_scaled_once and site.target.family is not Family.HELIUM and requantised(site) is not None


def write_dense(call: CCall, offer: Offer, c: CWriter) -> None:
    w = call.inputs[1].tensor
    rows, depth, channels = prod(call.result.shape[:-1]), call.shapes[0][-1], w.shape[0]
    multipliers, shifts = _multipliers(call)
    offsets = (-zero(call.inputs[0].tensor), 0, zero(call.result))
    fields: Fields = {
        **struct_fields(("input_offset", "filter_offset", "output_offset"), offsets),
        "activation": _range(call),
    }
    parameters = call.module.table("cmsis_nn_fc_params", fields)
    scale_of_all = {"multiplier": int(multipliers[0]), "shift": int(shifts[0])}
    scaling = call.module.table("cmsis_nn_per_tensor_quant_params", scale_of_all)
    shapes = ((rows, 1, 1, depth), (depth, 1, 1, channels), (rows, 1, 1, channels))
    with c.block():
        _write_context(call, offer, c)
        weights = call.network.constants[w.name]
        _write_product(call, c, "arm_fully_connected_s8", f"&{parameters}, &{scaling}", shapes, weights)


def offers_pool(site: Site) -> Iterator[Offer]:
    op = site.op
    assert isinstance(op, AvgPool2d | MaxPool2d)
    is_plain = op.dilation == (1, 1) and min(op.pads) >= 0 and site.result.shape[0] == 1
    if not is_plain or not _is_ours(site):
        return
    if isinstance(op, MaxPool2d):
        yield Offer()
    elif not op.count_pads and op.uncounted == (0, 0):
        yield Offer.of(4 * site.result.shape[-1])


def write_pool(call: CCall, offer: Offer, c: CWriter) -> None:
    op = call.op
    assert isinstance(op, AvgPool2d | MaxPool2d)
    call.use("cmsis")
    name = "arm_avgpool_s8" if isinstance(op, AvgPool2d) else "arm_max_pool_s8"
    fields: Fields = {"stride": _tile(op.stride), "padding": _tile(op.pads[:2]), "activation": _range(call)}
    parameters = call.module.table("cmsis_nn_pool_params", fields)
    x, window, y = (_dims(call, shape) for shape in (call.shapes[0], (1, *op.kernel, 1), call.result.shape))
    source, target = call.place(0).pointer, call.output.pointer
    with c.block():
        _write_context(call, offer, c)
        c.line(f"(void){name}(&context, &{parameters}, &{x}, {source}, &{window}, &{y}, {target});")


def suits_add(site: Site) -> bool:
    op = site.op_as(Binary)
    return op.kind is BinaryKind.ADD and _is_ours(site) and len(set(site.shapes)) == 1


def write_add(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(Binary)
    tensors = [place.tensor for place in call.inputs]
    twice = 2.0 * float(max(scale(tensor) for tensor in tensors))
    operands = [(-zero(t), *quantize_multiplier(float(scale(t)) / twice)) for t in tensors]
    final = quantize_multiplier(twice / (float(1 << LEFT) * float(scale(call.result))))
    numbers = [v for operand in operands for v in operand]
    low, high = activation_range(op.activation, call.result)
    tail = (zero(call.result), *final, low, high, call.result.size)
    call.use("cmsis")
    pointers = ", ".join(f"(const int8_t *){place.pointer}" for place in (call.place(0), call.place(1)))
    before, after = ", ".join(map(str, numbers)), ", ".join(map(str, tail))
    c.line(f"(void)arm_elementwise_add_s8({pointers}, {before}, {LEFT}, {call.output.pointer}, {after});")


def suits_softmax(site: Site) -> bool:
    op = site.op_as(Softmax)
    is_last = op.axis in (-1, len(site.result.shape) - 1)
    return is_last and _is_ours(site)


def write_softmax(call: CCall, _: Offer, c: CWriter) -> None:
    op, shape = call.op_as(Softmax), call.result.shape
    call.use("cmsis")
    rows, size = prod(shape[:-1]), shape[-1]
    numbers = ", ".join(map(str, (rows, size, *difference_scale(op.beta, call.inputs[0].tensor))))
    c.line(f"arm_softmax_s8({call.place(0).pointer}, {numbers}, {call.output.pointer});")


def _is_ours(site: Site) -> bool:
    """Whether CMSIS-NN is asked for, and reads and writes whole int8 tensors that are dense and do not overlap."""
    computed = [i for i, place in enumerate(site.inputs) if not place.is_constant]
    places = (*(site.inputs[i] for i in computed), site.output)
    return (
        site.options.kernels is Kernels.CMSIS_NN
        and site.target.architecture is Architecture.CORTEX_M
        and site.arithmetic is Arithmetic.TFLITE
        and site.is_whole
        and bool(computed)
        and computed[0] == 0
        and all(place.is_dense and place.tensor.dtype is DType.INT8 for place in places)
        and all(place.tensor.quant and not place.tensor.quant.is_per_channel for place in places)
        and not any(site.shares(i) for i in computed)
    )


def _write_context(call: CCall, offer: Offer, c: CWriter) -> None:
    """The buffer that CMSIS-NN works in."""
    buffer = call.arena_scratch or "NULL"
    context = designated({"buf": buffer, "size": offer.scratch})
    c.line(f"const cmsis_nn_context context = {context};")


def _write_product(
    call: CCall, c: CWriter, name: str, parameters: str, shapes: tuple[Shape, Shape, Shape], weights: Array
) -> None:
    """The call that convolutions and dense layers share."""
    call.use("cmsis")
    bias = call.add(unwrap(requantised(call)).bias.astype(np.int32), "bias")
    values = call.add(weights, "weights as CMSIS-NN reads them")
    x, w, y = (_dims(call, shape) for shape in shapes)
    each = _dims(call, (1, 1, 1, shapes[2][3]))
    source, target = call.inputs[0].pointer, call.output.pointer
    c.line(f"(void){name}(&context, {parameters}, &{x}, {source},")
    c.line(f"            &{w}, {values}, &{each}, {bias}, &{y}, {target});")


def _dims(call: CCall, shape: Shape) -> str:
    return call.module.table("cmsis_nn_dims", struct_fields(("n", "h", "w", "c"), shape))


def _tile(sizes: tuple[int, ...]) -> Fields:
    """A cmsis_nn_tile of (rows, columns)."""
    return {"w": sizes[1], "h": sizes[0]}


def _range(call: CCall) -> Fields:
    return struct_fields(("min", "max"), activation_range(call.activation, call.result))


def _multipliers(call: CCall) -> tuple[Array, Array]:
    w = call.inputs[1].tensor
    kernel = Operand(call.network.constants[w.name], Region.whole(w.shape), w)
    return channel_multipliers(call.inputs[0].tensor, kernel, call.result)


def _per_channel(call: CCall) -> str:
    """Multipliers and shifts of each output channel. CMSIS-NN declares them without const, and only reads them."""
    each = np.ones(call.result.shape[-1], np.int32)
    names = [
        call.add((values * each).astype(np.int32), what)
        for values, what in zip(_multipliers(call), ("multipliers", "shifts"), strict=True)
    ]
    fields = [f"(int32_t *){name}" for name in names]
    return call.module.table("cmsis_nn_per_channel_quant_params", struct_fields(("multiplier", "shift"), fields))


CONV = Kernel("cmsis_conv", (Conv2d,), offers_conv, write_conv, SMALL)
DENSE = Kernel("cmsis_dense", (Dense,), where(suits_dense), write_dense, SMALL)
POOL = Kernel("cmsis_pool", (AvgPool2d, MaxPool2d), offers_pool, write_pool, SMALL)
ADD = Kernel("cmsis_add", (Binary,), where(suits_add), write_add, SMALL)
SOFTMAX = Kernel("cmsis_softmax", (Softmax,), where(suits_softmax), write_softmax, SMALL)
