"""Calls to an installed CMSIS-NN (its API from version 4 on) instead of our kernels.

A layer is called whole, where its tensors lie densely and apart, and where the context buffer finds room in the arena;
other layers are left to our kernels. The arguments are tested against a stand-in for the library, written from its
published interface: numbers on the chip are those of the CMSIS-NN that is linked.
"""

from __future__ import annotations

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
from .call import Call as Site
from .options import Kernels, Rounding
from .printing.source import Source, braced
from .requantise.sums import requantised

LEFT = 20  # bits that TFLite shifts the operands of a sum to the left
MVE_CHANNELS = 124  # that CMSIS-NN's depthwise kernel gathers at once


def conv2d(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Conv2d)
    if not _is_ours(site) or min(op.pads) < 0 or requantised(site) is None:
        return False
    x, w = site.shapes[:2]
    is_depthwise = op.groups > 1 and op.groups == x[3] and w[3] == 1
    context = _context(site, _depthwise_bytes(site, w) if is_depthwise else _convolution_bytes(site, w))
    if context is None or not (is_depthwise or op.groups == 1):
        return False
    offsets = (-zero(site.inputs[0].tensor), zero(site.result))
    multiple = (w[0] // x[3],) if is_depthwise else ()
    tiles = [braced(pair[::-1]) for pair in (op.stride, op.pads[:2], op.dilation)]
    kind = "dw_conv" if is_depthwise else "conv"
    parameters = site.unit.table(f"cmsis_nn_{kind}_params", (*offsets, *multiple, *tiles, _range(site)))
    values = site.network.constants[site.inputs[1].tensor.name]
    weights = values.reshape(w[0], -1).T if is_depthwise else values
    filter_shape = (1, w[1], w[2], w[0]) if is_depthwise else w
    name = "arm_depthwise_conv_wrapper_s8" if is_depthwise else "arm_convolve_wrapper_s8"
    with c.block():
        c.line(f"const cmsis_nn_context context = {context};")
        _product(
            site, c, name, f"&{parameters}, &{_per_channel(site)}", (x, filter_shape, site.result.shape), weights
        )
    return True


def dense(site: Site, c: Source) -> bool:
    """Where TFLM's rounding is asked for. With vectors the context would hold sums, in a way that versions change."""
    op = site.op
    assert isinstance(op, Dense)
    w = site.inputs[1].tensor
    is_wanted = _is_ours(site) and site.options.rounding is Rounding.TFLM
    if not is_wanted or site.target.family is Family.HELIUM or requantised(site) is None:
        return False
    if w.quant is None or w.quant.is_per_channel:
        return False
    rows, depth, channels = prod(site.result.shape[:-1]), site.shapes[0][-1], w.shape[0]
    multipliers, shifts = _multipliers(site)
    offsets = (-zero(site.inputs[0].tensor), 0, zero(site.result))
    parameters = site.unit.table("cmsis_nn_fc_params", (*offsets, _range(site)))
    scaling = site.unit.table("cmsis_nn_per_tensor_quant_params", (int(multipliers[0]), int(shifts[0])))
    shapes = ((rows, 1, 1, depth), (depth, 1, 1, channels), (rows, 1, 1, channels))
    with c.block():
        c.line("const cmsis_nn_context context = {NULL, 0};")
        weights = site.network.constants[w.name]
        _product(site, c, "arm_fully_connected_s8", f"&{parameters}, &{scaling}", shapes, weights)
    return True


def avg_pool2d(site: Site, c: Source) -> bool:
    return _pool(site, c, "arm_avgpool_s8", 4 * site.result.shape[-1])


def max_pool2d(site: Site, c: Source) -> bool:
    return _pool(site, c, "arm_max_pool_s8", 0)


def binary(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Binary)
    if op.kind is not BinaryKind.ADD or not _is_ours(site) or len(set(site.shapes)) > 1:
        return False
    tensors = [place.tensor for place in site.inputs]
    twice = 2.0 * float(max(scale(tensor) for tensor in tensors))
    operands = [(-zero(t), *quantize_multiplier(float(scale(t)) / twice)) for t in tensors]
    final = quantize_multiplier(twice / (float(1 << LEFT) * float(scale(site.result))))
    numbers = [v for operand in operands for v in operand]
    low, high = activation_range(op.activation, site.result)
    tail = (zero(site.result), *final, low, high, site.result.size)
    site.use("cmsis")
    pointers = ", ".join(f"(const int8_t *){place.pointer}" for place in (site.place(0), site.place(1)))
    before, after = ", ".join(map(str, numbers)), ", ".join(map(str, tail))
    c.line(f"(void)arm_elementwise_add_s8({pointers}, {before}, {LEFT}, {site.output.pointer}, {after});")
    return True


def softmax(site: Site, c: Source) -> bool:
    op = site.op
    assert isinstance(op, Softmax)
    shape = site.result.shape
    if not _is_ours(site) or op.axis not in (-1, len(shape) - 1):
        return False
    factor, shift, least = difference_scale(op.beta, site.inputs[0].tensor)
    if shift < 0:
        return False
    site.use("cmsis")
    numbers = ", ".join(map(str, (prod(shape[:-1]), shape[-1], factor, shift, least)))
    c.line(f"arm_softmax_s8({site.place(0).pointer}, {numbers}, {site.output.pointer});")
    return True


def _is_ours(site: Site) -> bool:
    """Whether CMSIS-NN is asked for, and reads and writes the whole of int8 tensors that lie densely and apart."""
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


def _convolution_bytes(site: Site, w: Shape) -> int:
    """What arm_convolve_wrapper_s8 gathers columns into: four of int8 with vectors, two of int16 without."""
    block = 16 if site.target.family is Family.HELIUM else 4
    return 4 * -(-prod(w[1:]) // block) * block


def _depthwise_bytes(site: Site, w: Shape) -> int:
    channels = 2 * MVE_CHANNELS if site.target.family is Family.HELIUM else w[0]
    return 2 * w[1] * w[2] * channels


def _context(site: Site, size: int) -> str | None:
    if size == 0:
        return "{NULL, 0}"
    buffer = site.free(size)
    return None if buffer is None else f"{{{buffer}, {size}}}"


def _pool(site: Site, c: Source, name: str, size: int) -> bool:
    op = site.op
    assert isinstance(op, AvgPool2d | MaxPool2d)
    is_plain = op.dilation == (1, 1) and min(op.pads) >= 0 and site.result.shape[0] == 1
    is_plain = is_plain and not (isinstance(op, AvgPool2d) and (op.count_pads or op.uncounted != (0, 0)))
    context = _context(site, size) if is_plain and _is_ours(site) else None
    if context is None:
        return False
    site.use("cmsis")
    tiles = [braced(pair[::-1]) for pair in (op.stride, op.pads[:2])]
    parameters = site.unit.table("cmsis_nn_pool_params", (*tiles, _range(site)))
    x, window, y = (_dims(site, shape) for shape in (site.shapes[0], (1, *op.kernel, 1), site.result.shape))
    pointers = site.place(0).pointer, site.output.pointer
    with c.block():
        c.line(f"const cmsis_nn_context context = {context};")
        c.line(f"(void){name}(&context, &{parameters}, &{x}, {pointers[0]}, &{window}, &{y}, {pointers[1]});")
    return True


def _product(
    site: Site, c: Source, name: str, parameters: str, shapes: tuple[Shape, Shape, Shape], weights: Array
) -> None:
    """The call that convolutions and dense layers share."""
    site.use("cmsis")
    sums = requantised(site)
    assert sums is not None
    bias = site.unit.constants.add(sums.bias.astype(np.int32), f"{site.layer.name}: bias")
    values = site.unit.constants.add(weights, f"{site.layer.name}: weights as CMSIS-NN reads them")
    x, w, y = (_dims(site, shape) for shape in shapes)
    each = _dims(site, (1, 1, 1, shapes[2][3]))
    source, target = site.inputs[0].pointer, site.output.pointer
    c.line(f"(void){name}(&context, {parameters}, &{x}, {source},")
    c.line(f"            &{w}, {values}, &{each}, {bias}, &{y}, {target});")


def _dims(site: Site, shape: Shape) -> str:
    return site.unit.table("cmsis_nn_dims", shape)


def _range(site: Site) -> str:
    return braced(activation_range(getattr(site.op, "activation", None), site.result))


def _multipliers(site: Site) -> tuple[Array, Array]:
    w = site.inputs[1].tensor
    kernel = Operand(site.network.constants[w.name], Region.whole(w.shape), w)
    return channel_multipliers(site.inputs[0].tensor, kernel, site.result)


def _per_channel(site: Site) -> str:
    """Multipliers and shifts of each output channel. CMSIS-NN declares them without const, and only reads them."""
    each = np.ones(site.result.shape[-1], np.int32)
    names = [
        site.unit.constants.add((values * each).astype(np.int32), f"{site.layer.name}: {what}")
        for values, what in zip(_multipliers(site), ("multipliers", "shifts"), strict=True)
    ]
    fields = [f"(int32_t *){name}" for name in names]
    return site.unit.table("cmsis_nn_per_channel_quant_params", fields)
