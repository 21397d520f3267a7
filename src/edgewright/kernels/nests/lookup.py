"""Functions of one eight-bit number: a table of 256 answers, or a clamp where the table says no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...network import Array, Region, Tensor
from ...network.kernels import Operand, compute
from ...network.operators import ACTIVATIONS, Quantize
from ..call import CCall
from ..cost.elements import lookup_work
from ..kernel import Kernel, Offer, of_region, where
from ..printing.source import CWriter, plus
from ..site import Site
from .values import ComputeType, is_byte, write_each


def suits(site: Site) -> bool:
    return is_byte(site.inputs[0].tensor) and is_byte(site.result)


def write(call: CCall, _: Offer, c: CWriter) -> None:
    answers = _answers(call)
    write_each(call, c, ComputeType.RAW, lambda v: answer(call, 0, v[0], answers))


def every_byte(tensor: Tensor) -> Array:
    """All values of the tensor's type, from the least to the largest."""
    info = np.iinfo(tensor.dtype.numpy)
    return np.arange(int(info.min), int(info.max) + 1).astype(tensor.dtype.numpy)


def _answers(site: Site) -> Array:
    """What the layer makes of every byte."""
    values = every_byte(site.inputs[0].tensor)
    line = Region.whole(values.shape)
    x, y = (replace(tensor, shape=values.shape) for tensor in (site.inputs[0].tensor, site.result))
    return compute(site.op, line, [Operand(values, line, x)], y, site.arithmetic)


def answer(call: CCall, which: int, element: str, answers: Array) -> str:
    """The answer to one element of input `which`, as C; `answers` are those to all values, from the least on."""
    x, ctype = call.inputs[which].tensor, call.output.ctype
    values, found = every_byte(x).astype(np.int32), answers.astype(np.int32)
    low, high = int(found.min()), int(found.max())
    zeros = [t.quant.zero[0] if t.quant else 0 for t in (call.result, x)]
    for shift in (0, zeros[0] - zeros[1]):
        if np.array_equal(found, np.clip(values + shift, low, high)):
            return f"({ctype})ew_between({low}, {plus(element, shift)}, {high})"
    # Indexed by the byte as it is stored.
    table = np.roll(answers, len(answers) // 2) if values[0] < 0 else answers
    return f"{call.add(table, 'what becomes of every byte')}[{'(uint8_t)' if values[0] < 0 else ''}{element}]"


LOOKUP = Kernel("byte_lookup", (*ACTIVATIONS, Quantize), where(suits), write, work=of_region(lookup_work))
