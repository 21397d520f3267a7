"""Single elements in windows and products: how they are read, in which type they are summed, how a sum is stored."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ...network import Array, DType, Tensor
from ...network.kernels.scales import number as stored_as
from ...network.operators import Activation, Clamp, MatMul
from ..call import CCall
from ..printing.constants import C_TYPES, number
from ..printing.source import Expr, plus
from ..site import Site, unwrap
from .activations import activated

# (C expression of a stored element, output channel) -> its value in the sum
Element = Callable[[str, Expr], str]


def per_channel(call: CCall, values: Array, note: str) -> Callable[[Expr], str]:
    """One number, or a table in flash that the channel is looked up in."""
    if values.size == 1 or (values == values.flat[0]).all():
        text = number(values.flat[0].item(), values.dtype.name)
        return lambda _: f"({text})" if text.startswith("-") else text
    table: list[str] = []

    def at(channel: Expr) -> str:
        if not table:
            table.append(call.add(values, note))
        return f"{table[0]}[{channel}]"

    return at


def widened(call: CCall, tensor: Tensor, element: str) -> str:
    """A float or plain integer; float16 is stored as bits."""
    if tensor.dtype is not DType.FLOAT16:
        return element
    call.use("half")
    return f"ew_from_half({element})"


def narrowed(call: CCall, value: str) -> str:
    """A float expression as an element of a result without scale; integers are cut towards zero."""
    dtype = call.result.dtype
    if dtype is DType.FLOAT32:
        return value
    if dtype is DType.FLOAT16:
        call.use("half")
        return f"ew_to_half({value})"
    return f"({C_TYPES[dtype.value]})({value})"


def rounded_even(call: CCall, steps: str, clamp: Clamp | None = None) -> str:
    """A float in steps of the result's scale: rounded half to even, zero point added, kept in range."""
    call.use("fixed")
    zero, (low, high) = zero_of(call.result), stored_range(call.result, clamp)
    limits = f"{number(low - zero)}, {number(high - zero)}"
    total = f"ew_round_even({steps}, {limits})"
    return f"({call.output.ctype})({plus(total, zero)})"


def stored_even(call: CCall, value: str, activation: Activation | None) -> str:
    """A real number, activated, as the result stores it (onnxruntime's arithmetic: a clamp comes after rounding)."""
    if call.result.quant is None or call.result.dtype.is_float:
        return narrowed(call, activated(call, activation, value))
    clamp = activation if isinstance(activation, Clamp) else None
    real = value if clamp else activated(call, activation, value)
    return rounded_even(call, f"({real}) / {number(call.result.quant.scale[0])}", clamp)


def stored_range(result: Tensor, clamp: Clamp | None) -> tuple[int, int]:
    """The stored values between which the type, or a clamp, keeps a quantised result (onnxruntime's arithmetic)."""
    if clamp is not None:
        return int(stored_as(clamp.low, result)), int(stored_as(clamp.high, result))
    info = np.iinfo(result.dtype.numpy)
    return int(info.min), int(info.max)


def real_element(call: CCall, which: int) -> Element:
    tensor = call.inputs[which].tensor
    if tensor.quant is None or tensor.dtype.is_float:
        return lambda e, _: widened(call, tensor, e)
    scales = per_channel(call, np.array(tensor.quant.scale, np.float32), "scales")
    zeros = per_channel(call, np.array(tensor.quant.zero, np.int32), "zero points")
    if not any(tensor.quant.zero):
        return lambda e, ch: f"((float){e} * {scales(ch)})"
    return lambda e, ch: f"((float)({e} - {zeros(ch)}) * {scales(ch)})"


def sum_type(site: Site) -> str:
    """int32_t where no input makes a sum overflow: proven from the weights, or from the range of their type."""
    return site.facts.once("sum type", lambda: _proven_type(site))


def _proven_type(site: Site) -> str:
    x, w = site.inputs[0].tensor, site.inputs[1].tensor
    info = np.iinfo(x.dtype.numpy)
    most = max(abs(int(info.min) - zero_of(x)), abs(int(info.max) - zero_of(x)))
    bias = site.network.constants.get(site.inputs[2].tensor.name) if len(site.inputs) > 2 else None
    beside = int(np.abs(bias.astype(np.int64)).max()) if bias is not None else 1 << 30 if len(site.inputs) > 2 else 0
    return "int32_t" if most * _reach(site, w) + beside < 1 << 31 else "int64_t"


def _reach(site: Site, w: Tensor) -> int:
    """The largest sum of the absolute weights of one output channel."""
    values = site.network.constants.get(w.name)
    if values is None or isinstance(site.op, MatMul):
        info = np.iinfo(w.dtype.numpy)
        depth = max(place.tensor.size for place in site.inputs)
        return depth * max(abs(int(info.min) - z) + abs(int(info.max) - z) for z in (w.quant.zero if w.quant else (0,)))
    zeros = np.array(w.quant.zero if w.quant else (0,), np.int64).reshape(-1, 1)
    return int(np.abs(values.reshape(len(values), -1).astype(np.int64) - zeros).sum(axis=1).max())


def zero_of(tensor: Tensor) -> int:
    """The zero point of a tensor that has one scale; 0 without."""
    return tensor.quant.zero[0] if tensor.quant else 0


def image_mean(call: CCall) -> tuple[int, np.float32]:
    """Of an integer sum over a whole image: what is added to it, and what it is multiplied by, to be a mean."""
    x, y = unwrap(call.inputs[0].tensor.quant), unwrap(call.result.quant)
    count = prod(call.shapes[0][1:3])
    return -count * x.zero[0], np.float32(x.scale[0]) / (np.float32(y.scale[0]) * np.float32(count))


def less_zero(element: str, zero: int) -> str:
    """A stored integer less its zero point."""
    return element if zero == 0 else f"({plus(element, -zero)})"
