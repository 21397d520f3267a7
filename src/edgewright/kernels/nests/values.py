"""Elements on their way through a loop nest: read as a number, computed with, stored as the tensor wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from ...network import Arithmetic, Array, DType, Tensor
from ...network.operators import Clamp
from ..call import CCall, CTensor
from ..printing.constants import number
from ..printing.nest import Bounds, elements
from ..printing.source import CWriter, Expr, operand
from ..site import Site, unwrap
from .finish import stored_range, zero_of

Formula = Callable[[Sequence[str]], str]  # C expressions of the inputs -> that of the output


class ComputeType(Enum):
    """What numbers an element is computed in."""

    REAL = "real"  # float; stored integers are scaled on the way in and out, as onnxruntime does it
    WHOLE = "whole"  # int64_t: plain integers
    RAW = "raw"  # what is stored passes through


@dataclass(frozen=True)
class LoopOperand:
    """A tensor that a nest reads or writes: its place, and the tables of its scales where there are several."""

    call: CCall
    compute: ComputeType
    places: tuple[CTensor, ...]  # the tensor; then scales and zero points, broadcast along it
    clamp: Clamp | None = None  # on what is stored

    @property
    def place(self) -> CTensor:
        return self.places[0]

    @property
    def tensor(self) -> Tensor:
        return self.place.tensor

    def at(self, place: CTensor) -> LoopOperand:
        """The same tensor, found through another place."""
        return replace(self, places=(place, *self.places[1:]))

    def value(self, offsets: Sequence[Expr]) -> str:
        """The element as a C expression: float, int64_t, or as stored."""
        element = f"{self.place.pointer}[{offsets[0]}]"
        if self.compute is ComputeType.RAW or self.tensor.dtype is DType.FLOAT32:
            return element
        if self.tensor.dtype is DType.FLOAT16:
            self.call.use("half")
            return f"ew_from_half({element})"
        if self.compute is ComputeType.WHOLE:
            return f"(int64_t){element}"
        if self.tensor.quant is None:
            return f"(float){element}"
        scale, zero = self._scale(offsets), self._zero(offsets)
        return f"((float)({element} - {zero}) * {scale})" if zero != "0" else f"((float){element} * {scale})"

    def stored(self, value: str, offsets: Sequence[Expr] = (0,)) -> str:
        """A C expression of the type computed in, as an element of the tensor."""
        dtype, ctype = self.tensor.dtype, self.place.ctype
        if self.compute is ComputeType.RAW or dtype is DType.FLOAT32:
            return value
        if dtype is DType.FLOAT16:
            self.call.use("half")
            return f"ew_to_half({value})"
        if self.compute is ComputeType.WHOLE:
            return f"({ctype})(({value}) != 0)" if dtype is DType.BOOL else f"({ctype})({value})"
        if self.tensor.quant is not None:
            return self.rounded(f"({value}) / {self._scale(offsets)}", offsets)
        self.call.use("real")
        if dtype is DType.BOOL:
            return f"({ctype})(({value}) != 0.0f)"
        return f"ew_whole64({value})" if dtype is DType.INT64 else f"({ctype})ew_whole({value})"

    def rounded(self, steps: str, offsets: Sequence[Expr] = (0,)) -> str:
        """A float in steps of the scale: rounded half to even, zero point added, kept in range."""
        low, high = stored_range(self.tensor, self.clamp)
        zero = self._zero(offsets)
        limits = [f"(float)({limit} - {zero})" for limit in (low, high)]
        if not self.places[1:]:
            limits = [number(limit - zero_of(self.tensor)) for limit in (low, high)]
        self.call.use("fixed")
        whole = f"ew_round_even({steps}, {limits[0]}, {limits[1]})"
        return f"({self.place.ctype})({whole if zero == '0' else f'{whole} + {zero}'})"

    def store(self, c: CWriter, value: str, offsets: Sequence[Expr]) -> None:
        c.line(f"{self.place.pointer}[{offsets[0]}] = {self.stored(value, offsets)};")
        if any(clashes(self.call, which) for which in range(len(self.call.inputs))):
            c.line("EW_FENCE();")

    def _scale(self, offsets: Sequence[Expr]) -> str:
        if self.places[1:]:
            return f"{self.places[1].pointer}[{offsets[1]}]"
        return number(unwrap(self.tensor.quant).scale[0])

    def _zero(self, offsets: Sequence[Expr]) -> str:
        if self.places[1:]:
            return f"{self.places[2].pointer}[{offsets[2]}]"
        return operand(zero_of(self.tensor))


def clashes(call: CCall, which: int) -> bool:
    """Whether the compiler might take shared elements for different ones, since their types differ.

    Character types are never mistaken.
    """
    types = {call.inputs[which].ctype, call.output.ctype}
    return call.shares(which) and len(types) == 2 and not types & {"int8_t", "uint8_t"}


def is_byte(tensor: Tensor) -> bool:
    """Whether eight bits stand for a number with the one scale that the tensor has."""
    return tensor.dtype.bytes == 1 and tensor.quant is not None and not tensor.quant.is_per_channel


def has_scales(tensor: Tensor) -> bool:
    """Whether stored integers have a scale for each channel."""
    return tensor.quant is not None and tensor.quant.is_per_channel and not tensor.dtype.is_float


def compute_type(site: Site) -> ComputeType | None:
    """How elements are computed unless the operator only moves them; None where TFLite's own rules apply."""
    if site.is_quantised:
        return None if site.arithmetic is Arithmetic.TFLITE else ComputeType.REAL
    return ComputeType.REAL if any(t.dtype.is_float for t in site.tensors) else ComputeType.WHOLE


def computes_plainly(site: Site) -> bool:
    """Whether what is computed is real numbers or plain integers, and no rules of TFLite apply."""
    return compute_type(site) is not None


def reader(call: CCall, which: int, compute: ComputeType) -> LoopOperand:
    place = call.place(which)
    return LoopOperand(call, compute, (place, *_tables(call, place, compute)))


def writer(call: CCall, compute: ComputeType, clamp: Clamp | None = None) -> LoopOperand:
    return LoopOperand(call, compute, (call.output, *_tables(call, call.output, compute)), clamp)


def _tables(call: CCall, place: CTensor, compute: ComputeType) -> tuple[CTensor, ...]:
    """The scales and zero points of a tensor that has several, as tensors that broadcast against it."""
    quant, shape = place.tensor.quant, place.tensor.shape
    if quant is None or compute is not ComputeType.REAL or not has_scales(place.tensor):
        return ()
    axis = (quant.axis or 0) % len(shape)
    tables = (np.array(quant.scale, np.float32), np.array(quant.zero, np.int32))
    return tuple(_table(call, values, axis, len(shape)) for values in tables)


def _table(call: CCall, values: Array, axis: int, rank: int) -> CTensor:
    name = call.add(values, "scales")
    shape = tuple(values.size if i == axis else 1 for i in range(rank))
    return CTensor(
        Tensor(name, shape, DType(values.dtype.name)), tuple(int(i == axis) for i in range(rank)), pointer=name
    )


def pointed(c: CWriter, operand: LoopOperand, name: str, written: bool = False) -> LoopOperand:
    """The operand behind a local pointer of this name, so that what follows reads well."""
    if operand.place.is_constant:
        return operand
    c.line(f"{'' if written else 'const '}{operand.place.ctype} *{name} = {operand.place.pointer};")
    return operand.at(replace(operand.place, pointer=name))


@contextmanager
def walk(
    call: CCall, c: CWriter, bounds: Bounds, operands: Sequence[LoopOperand]
) -> Iterator[tuple[tuple[Expr, ...], ...]]:
    """Loops over the bounds in the step's order; gives the offsets of each operand's places.

    The last operand is written, the others are read.
    """
    places = [place for operand in operands for place in operand.places]
    with elements(c, bounds, places, backward=call.is_backward) as (offsets, _):
        found, at = [], 0
        for operand in operands:
            found.append(tuple(offsets[at : at + len(operand.places)]))
            at += len(operand.places)
        yield tuple(found)


def write_each(call: CCall, c: CWriter, compute: ComputeType, formula: Formula) -> None:
    """The formula of every element of all inputs, in the step's order."""
    operands = [*(reader(call, i, compute) for i in range(len(call.inputs))), writer(call, compute)]
    write_elements(call, c, operands, formula)


def write_elements(call: CCall, c: CWriter, operands: Sequence[LoopOperand], formula: Formula) -> None:
    """The formula of every element of these operands; the last one is written."""
    with named(c, operands) as (*read, y), walk(call, c, call.region, [*read, y]) as offsets:
        y.store(c, formula([x.value(at) for x, at in zip(read, offsets, strict=False)]), offsets[-1])


@contextmanager
def named(c: CWriter, operands: Sequence[LoopOperand]) -> Iterator[list[LoopOperand]]:
    """A block with a local pointer for each operand: px or pa, pb, pc for what is read, py for the last."""
    letters = ["px"] if len(operands) == 2 else [f"p{chr(ord('a') + i)}" for i in range(len(operands) - 1)]
    with c.block():
        yield [
            pointed(c, operand, name, written=name == "py")
            for operand, name in zip(operands, [*letters, "py"], strict=True)
        ]
