"""Bytes with one scale each in onnxruntime's arithmetic: sums and products of what is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...network import Arithmetic, DType, Quant, Region
from ...network.operators import Binary, BinaryKind, Clamp
from ..call import CCall
from ..cost.elements import plain_work
from ..cost.work import KernelWork
from ..kernel import Kernel, Offer, where
from ..printing.constants import number
from ..printing.source import CWriter, operand
from ..requantise.pairs import PairRule, pair_rule
from ..site import Site, unwrap
from .finish import stored_range
from .values import ComputeType, compute_type, is_byte, write_each


def _are_bytes(site: Site) -> bool:
    """Whether inputs and output are bytes with one scale each, for which TFLite has no rules of its own."""
    return compute_type(site) is not None and all(map(is_byte, site.tensors))


def suits_pairs(site: Site) -> bool:
    return _rule(site) is not None


def _rule(site: Site) -> PairRule | None:
    """Integer arithmetic with the same answers, found once."""
    return site.facts.once("pair rule", lambda: _found_rule(site))


def _found_rule(site: Site) -> PairRule | None:
    op = site.op_as(Binary)
    if not _are_bytes(site) or not isinstance(op.activation, Clamp | None):
        return None
    a, b, result = _storages(site)
    return pair_rule(op, a, b, result, site.arithmetic)


def _storages(site: Site) -> list[tuple[DType, Quant]]:
    """Types and scales of a, b and the result."""
    return [(tensor.dtype, unwrap(tensor.quant)) for tensor in site.tensors]


def write_pairs(call: CCall, _: Offer, c: CWriter) -> None:
    rule = unwrap(_rule(call))

    def stored(v: Sequence[str]) -> str:
        return f"({call.output.ctype})ew_between({rule.low}, {_steps(call, rule, v)}, {rule.high})"

    write_each(call, c, ComputeType.RAW, stored)


def _steps(call: CCall, rule: PairRule, v: Sequence[str]) -> str:
    """What the rule makes of two stored numbers, before it is kept in range."""
    if rule.second:
        value = f"{v[0]} * {rule.first} + {v[1]} * {operand(rule.second)}"
    else:
        (_, za), (_, zb), _ = _quants(call)
        value = f"({v[0]} - {operand(za)}) * ({v[1]} - {operand(zb)})"
    if not rule.second and rule.first > 1:
        start = number(rule.start, "int64")
        return f"(int32_t)(((int64_t)({value}) * {rule.first} + {operand(start)}) >> {rule.shift})"
    if rule.to_even:
        call.use("fixed")
        return f"ew_shift_even({value} + {operand(rule.start)}, {rule.shift}, {rule.odd})"
    return f"({value} + {operand(rule.start)}) >> {rule.shift}"


def work_pairs(site: Site, _: Offer, region: Region, __: Region | None) -> KernelWork:
    """As of other layers element by element, in integers: those of 64 bits cost about what rounding to even does."""
    work, rule = plain_work(site, region), _rule(site)
    how = "even" if rule and (rule.to_even or not rule.second) else "integer"
    sums = "add" if rule and rule.second else "mul"  # a difference costs what a sum does
    return KernelWork(f"{how}-{sums} {work.kind.split()[-1]}", work.amounts)


def suits_binary(site: Site) -> bool:
    """Where the file asks for QLinearAdd or QLinearMul, which compute in steps of the scales."""
    op = site.op_as(Binary)
    is_ours = op.kind in _STEPS and isinstance(op.activation, Clamp | None)
    return site.arithmetic is Arithmetic.QLINEAR and is_ours and _are_bytes(site)


def write_binary(call: CCall, _: Offer, c: CWriter) -> None:
    """The zero point is part of the number that is rounded."""
    op, ctype = call.op_as(Binary), call.output.ctype
    assert isinstance(op.activation, Clamp | None)
    steps, (low, high) = _STEPS[op.kind], map(number, stored_range(call.result, op.activation))
    call.use("fixed")
    write_each(call, c, ComputeType.RAW, lambda v: f"({ctype})ew_round_even({steps(call, v)}, {low}, {high})")


def _quants(site: Site) -> list[tuple[np.float32, int]]:
    """Scale and zero point of a, b and the result."""
    return [(np.float32(quant.scale[0]), quant.zero[0]) for _, quant in _storages(site)]


def _mul_steps(call: CCall, v: Sequence[str]) -> str:
    (sa, za), (sb, zb), (sc, zc) = _quants(call)
    product = f"(float)(({v[0]} - {operand(za)}) * ({v[1]} - {operand(zb)}))"
    return f"{product} * {number(sa * sb / sc)} + {number(zc)}"


def _add_steps(call: CCall, v: Sequence[str]) -> str:
    """Two sums of a product, each rounded once."""
    (sa, za), (sb, zb), (sc, zc) = _quants(call)
    ra, rb = sa / sc, sb / sc
    rest = np.float32(zc) - np.float32(float(za) * float(ra) + float(np.float32(zb) * rb))
    return _fma(call, v[0], ra, _fma(call, v[1], rb, number(rest)))


def _fma(call: CCall, a: str, b: np.float32, rest: str) -> str:
    """a * b + rest, rounded once: by the instruction where there is one, else in double, which holds the product."""
    if call.target.has_fpu:
        call.use("math_functions")
        return f"fmaf((float){a}, {number(b)}, {rest})"
    return f"(float)((double){a} * {number(float(b), 'float64')} + (double){rest})"


_STEPS: dict[BinaryKind, Callable[[CCall, Sequence[str]], str]] = {
    BinaryKind.ADD: _add_steps,
    BinaryKind.MUL: _mul_steps,
}

PAIRS = Kernel("binary_pairs", (Binary,), where(suits_pairs), write_pairs, work=work_pairs)
BINARY = Kernel("binary_qlinear", (Binary,), where(suits_binary), write_binary)
