"""Element-wise operators in real numbers or plain integers; quantised elements are scaled when read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from ...network import operators as ops
from ..call import CCall
from ..kernel import Kernel, Offer, anywhere, where
from ..printing.constants import number
from ..printing.source import CWriter
from ..site import Site
from .activations import activated
from .values import (
    ComputeType,
    Formula,
    LoopOperand,
    compute_type,
    computes_plainly,
    reader,
    write_each,
    write_elements,
    writer,
)

_SIGNS: Mapping[ops.BinaryKind, str] = {
    ops.BinaryKind.ADD: "+",
    ops.BinaryKind.SUB: "-",
    ops.BinaryKind.MUL: "*",
    ops.BinaryKind.DIV: "/",
}
_CALLS: Mapping[ops.BinaryKind, tuple[str, str]] = {
    ops.BinaryKind.MIN: ("ew_minimum", "real"),
    ops.BinaryKind.MAX: ("ew_maximum", "real"),
    ops.BinaryKind.POW: ("powf", "math_functions"),
    ops.BinaryKind.SQUARED_DIFFERENCE: ("ew_squared_difference", "real"),
}
_WHOLE_UNARY: Mapping[ops.UnaryKind, str | None] = {  # None: an integer stays what it is
    ops.UnaryKind.ABS: "ew_whole_abs",
    ops.UnaryKind.CEIL: None,
    ops.UnaryKind.FLOOR: None,
    ops.UnaryKind.NEG: "ew_whole_neg",
    ops.UnaryKind.ROUND: None,
    ops.UnaryKind.SIGN: "ew_whole_sign",
    ops.UnaryKind.SQUARE: "ew_whole_square",
}


_COMPARISONS: Mapping[ops.CompareKind, str] = {
    ops.CompareKind.AND: "&&",
    ops.CompareKind.EQUAL: "==",
    ops.CompareKind.GREATER: ">",
    ops.CompareKind.GREATER_EQUAL: ">=",
    ops.CompareKind.LESS: "<",
    ops.CompareKind.LESS_EQUAL: "<=",
    ops.CompareKind.NOT_EQUAL: "!=",
    ops.CompareKind.OR: "||",
}


def write_activation(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op
    assert isinstance(op, ops.Activation)
    compute = _world(call, op)
    write_each(call, c, compute, lambda v: _folded(call, compute, op, v[0]))


def write_prelu(call: CCall, _: Offer, c: CWriter) -> None:
    call.use("real")
    write_each(call, c, ComputeType.REAL, lambda v: f"ew_leaky_relu({v[0]}, {v[1]})")


def write_batch_norm(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(ops.BatchNorm)
    _write_computed(call, c, ComputeType.REAL, op.activation, lambda v: f"{v[0]} * {v[1]} + {v[2]}")


def write_binary(call: CCall, _: Offer, c: CWriter) -> None:
    op = call.op_as(ops.Binary)
    compute = _world(call, op.activation)
    _write_computed(call, c, compute, op.activation, lambda v: _combined(call, compute, op.kind, v))


def write_cast(call: CCall, _: Offer, c: CWriter) -> None:
    """Casts stored values: scales and zero points play no part."""
    x, y = reader(call, 0, ComputeType.WHOLE), writer(call, ComputeType.WHOLE)
    if call.result.dtype.is_float or call.inputs[0].tensor.dtype.is_float:
        x, y = _bare(x), _bare(y)
    write_elements(call, c, [x, y], lambda v: v[0])


def write_compare(call: CCall, _: Offer, c: CWriter) -> None:
    """Integers are compared as stored: those of one scale are in the order of what they stand for."""
    op = call.op_as(ops.Compare)
    compute = ComputeType.REAL if call.inputs[0].tensor.dtype.is_float else ComputeType.RAW
    operands = [reader(call, 0, compute), reader(call, 1, compute), writer(call, ComputeType.RAW)]
    write_elements(call, c, operands, lambda v: f"({call.output.ctype})({v[0]} {_COMPARISONS[op.kind]} {v[1]})")


def write_select(call: CCall, _: Offer, c: CWriter) -> None:
    write_each(call, c, ComputeType.RAW, lambda v: f"{v[0]} ? {v[1]} : {v[2]}")


def write_quantize(call: CCall, _: Offer, c: CWriter) -> None:
    write_each(call, c, ComputeType.REAL, lambda v: v[0])


def _bare(operand: LoopOperand) -> LoopOperand:
    """The operand as plain numbers, whatever its scale, computed in float."""
    place = replace(operand.place, tensor=replace(operand.tensor, quant=None))
    return LoopOperand(operand.call, ComputeType.REAL, (place,))


def _world(site: Site, op: ops.Activation | None) -> ComputeType:
    """The type to compute in: float where the activation maps integers to anything but integers."""
    compute = compute_type(site)
    assert compute is not None
    return ComputeType.REAL if compute is ComputeType.WHOLE and op is not None and not _is_whole(op) else compute


def _is_whole(op: ops.Activation) -> bool:
    """Whether integers stay integers."""
    return isinstance(op, ops.Clamp) or (isinstance(op, ops.Unary) and op.kind in _WHOLE_UNARY)


def _write_computed(
    call: CCall, c: CWriter, compute: ComputeType, folded: ops.Activation | None, formula: Formula
) -> None:
    """Writes the formula followed by the activation. A clamp of a quantised result is applied to the stored value."""
    if isinstance(folded, ops.Clamp) and call.result.quant is not None and not call.result.dtype.is_float:
        operands = [reader(call, i, compute) for i in range(len(call.inputs))]
        write_elements(call, c, [*operands, writer(call, compute, folded)], formula)
    elif compute is ComputeType.WHOLE and folded is not None:
        # What the type cannot hold wraps before the activation.
        ctype = call.output.ctype
        write_each(call, c, compute, lambda v: _folded(call, compute, folded, f"(int64_t)({ctype})({formula(v)})"))
    else:
        write_each(call, c, compute, lambda v: _folded(call, compute, folded, formula(v)))


def _folded(call: CCall, compute: ComputeType, op: ops.Activation | None, value: str) -> str:
    if compute is ComputeType.REAL or op is None:
        return activated(call, op, value)
    call.use("whole")
    if isinstance(op, ops.Clamp):
        return _whole_clamp(op, value)
    assert isinstance(op, ops.Unary)
    function = _WHOLE_UNARY[op.kind]
    return f"{function}({value})" if function else value


def _whole_clamp(op: ops.Clamp, value: str) -> str:
    """Limits are cut towards zero, as numpy kernels cut them."""
    if op.low > -inf:
        value = f"ew_whole_max({value}, {number(max(int(op.low), -(2**63)), 'int64')})"
    if op.high < inf:
        value = f"ew_whole_min({value}, {number(min(int(op.high), 2**63 - 1), 'int64')})"
    return value


def _combined(call: CCall, compute: ComputeType, kind: ops.BinaryKind, v: Sequence[str]) -> str:
    a, b = v
    if compute is ComputeType.WHOLE:
        call.use("whole")
        return f"ew_whole_{kind.value}({a}, {b})"
    if kind in _SIGNS:
        return f"{a} {_SIGNS[kind]} {b}"
    function, file = _CALLS[kind]
    call.use(file)
    return f"{function}({a}, {b})"


ACTIVATION = Kernel("loops_activation", ops.ACTIVATIONS, where(computes_plainly), write_activation)
PRELU = Kernel("loops_prelu", (ops.PRelu,), where(computes_plainly), write_prelu)
BATCH_NORM = Kernel("loops_batch_norm", (ops.BatchNorm,), where(computes_plainly), write_batch_norm)
BINARY = Kernel("loops_binary", (ops.Binary,), where(computes_plainly), write_binary)
CAST = Kernel("cast", (ops.Cast,), anywhere, write_cast)
COMPARE = Kernel("compare", (ops.Compare,), anywhere, write_compare)
SELECT = Kernel("select", (ops.Select,), anywhere, write_select)
QUANTIZE = Kernel("loops_quantize", (ops.Quantize, ops.Dequantize), where(computes_plainly), write_quantize)
