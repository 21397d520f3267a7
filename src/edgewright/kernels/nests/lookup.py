"""Functions of one eight-bit number: a table of 256 answers, or a clamp where the table says no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...network import Array, Region, Tensor
from ...network.kernels import Operand, compute
from ..call import Call as Site
from ..printing.source import Source
from .values import World, named, reader, walk, writer


def lookup(site: Site, c: Source) -> bool:
    if not (is_byte(site.inputs[0].tensor) and is_byte(site.result)):
        return False
    return through_table(site, c, _answers(site))


def is_byte(tensor: Tensor) -> bool:
    """Whether eight bits stand for a number with the one scale that the tensor has."""
    return tensor.dtype.bytes == 1 and tensor.quant is not None and not tensor.quant.is_per_channel


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


def through_table(site: Site, c: Source, answers: Array) -> bool:
    """Every element replaced by its answer; `answers` follow the input's values from the least to the largest."""
    x, y = reader(site, 0, World.RAW), writer(site, World.RAW)
    with named(site, c, [x, y]) as (px, py), walk(site, c, site.region, [px, py]) as (a, b):
        py.store(c, answer(site, 0, px.value(a), answers), b)
    return True


def answer(site: Site, which: int, element: str, answers: Array) -> str:
    """The answer to one element of input `which`, as C."""
    x, ctype = site.inputs[which].tensor, site.output.ctype
    values, found = every_byte(x).astype(np.int32), answers.astype(np.int32)
    low, high = int(found.min()), int(found.max())
    zeros = [t.quant.zero[0] if t.quant else 0 for t in (site.result, x)]
    for shift in (0, zeros[0] - zeros[1]):
        if np.array_equal(found, np.clip(values + shift, low, high)):
            return _clamped(ctype, element, shift, low, high)
    # Indexed by the byte as it is stored.
    table = np.roll(answers, len(answers) // 2) if values[0] < 0 else answers
    name = site.unit.constants.add(table, f"{site.layer.name}: what becomes of every byte")
    return f"{name}[{'(uint8_t)' if values[0] < 0 else ''}{element}]"


def _clamped(ctype: str, element: str, shift: int, low: int, high: int) -> str:
    moved = element if shift == 0 else f"{element} {'+' if shift > 0 else '-'} {abs(shift)}"
    return f"({ctype})ew_between({low}, {moved}, {high})"
