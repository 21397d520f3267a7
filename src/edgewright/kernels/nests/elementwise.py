"""Element by element: real numbers, plain integers, and quantised ones in onnxruntime's arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from ...network import Arithmetic
from ...network.operators import Activation, BatchNorm, Binary, BinaryKind, Clamp, Unary, UnaryKind
from ..call import Call as Site
from ..printing.constants import number
from ..printing.source import Expr, Source
from ..requantise.pairs import PairRule, pair_rule
from .activations import activated
from .values import Stream, World, named, reader, stored_range, walk, world_of, writer

Formula = Callable[[Sequence[str]], str]  # C expressions of the inputs -> that of the output
_SIGNS: Mapping[BinaryKind, str] = {
    BinaryKind.ADD: "+",
    BinaryKind.SUB: "-",
    BinaryKind.MUL: "*",
    BinaryKind.DIV: "/",
}
_CALLS: Mapping[BinaryKind, tuple[str, str]] = {
    BinaryKind.MIN: ("ew_minimum", "real"),
    BinaryKind.MAX: ("ew_maximum", "real"),
    BinaryKind.POW: ("powf", "math_functions"),
    BinaryKind.SQUARED_DIFFERENCE: ("ew_squared_difference", "real"),
}
_WHOLE_UNARY: Mapping[UnaryKind, str | None] = {  # None: an integer stays what it is
    UnaryKind.ABS: "ew_whole_abs",
    UnaryKind.CEIL: None,
    UnaryKind.FLOOR: None,
    UnaryKind.NEG: "ew_whole_neg",
    UnaryKind.ROUND: None,
    UnaryKind.SIGN: "ew_whole_sign",
    UnaryKind.SQUARE: "ew_whole_square",
}


def activation(site: Site, c: Source) -> bool:
    op, world = site.op, world_of(site)
    assert isinstance(op, Activation)
    if world is None:
        return False
    if isinstance(op, Clamp) and site.is_quantised and _clamps_stored(site):
        return _clamp_stored(site, c, op)
    if world is World.WHOLE and not _is_whole(op):
        world = World.REAL
    return _each(site, c, world, lambda v: _folded(site, world, op, v[0]))


def prelu(site: Site, c: Source) -> bool:
    world = world_of(site)
    if world is None:
        return False
    site.use("real")
    return _each(site, c, World.REAL, lambda v: f"ew_leaky_relu({v[0]}, {v[1]})")


def batch_norm(site: Site, c: Source) -> bool:
    op, world = site.op, world_of(site)
    assert isinstance(op, BatchNorm)
    if world is None:
        return False
    return _computed(site, c, World.REAL, op.activation, lambda v: f"{v[0]} * {v[1]} + {v[2]}")


def binary(site: Site, c: Source) -> bool:
    op, world = site.op, world_of(site)
    assert isinstance(op, Binary)
    if world is None:
        return False
    if site.is_quantised and (rule := _rule(site, op)) is not None:
        return _by_rule(site, c, rule)
    if site.is_quantised and _has_integer_kernel(site):
        return _quantised(site, c, op)
    if world is World.WHOLE and op.activation and not _is_whole(op.activation):
        world = World.REAL
    return _computed(site, c, world, op.activation, lambda v: _combined(site, world, op.kind, v))


def cast(site: Site, c: Source) -> bool:
    """What is stored counts, not what it stands for."""
    is_real = site.result.dtype.is_float or site.inputs[0].tensor.dtype.is_float
    x, y = reader(site, 0, World.WHOLE), writer(site, World.WHOLE)
    if is_real:
        x, y = _bare(site, x), _bare(site, y)
    return _written(site, c, [x, y], lambda v: v[0])


def quantize(site: Site, c: Source) -> bool:
    return world_of(site) is not None and _each(site, c, World.REAL, lambda v: v[0])


dequantize = quantize


def _bare(site: Site, stream: Stream) -> Stream:
    """The stream as plain numbers, whatever its scale, computed in float."""
    place = replace(stream.place, tensor=replace(stream.tensor, quant=None))
    return Stream(site, World.REAL, (place,))


def _each(site: Site, c: Source, world: World, formula: Formula) -> bool:
    """The formula of every element, in the step's order."""
    streams = [*(reader(site, i, world) for i in range(len(site.inputs))), writer(site, world)]
    return _written(site, c, streams, formula)


def _written(site: Site, c: Source, streams: Sequence[Stream], formula: Formula) -> bool:
    with named(site, c, streams) as (*read, y), walk(site, c, site.region, [*read, y]) as offsets:
        y.store(c, formula([x.value(at) for x, at in zip(read, offsets, strict=False)]), offsets[-1])
    return True


def _computed(site: Site, c: Source, world: World, folded: Activation | None, formula: Formula) -> bool:
    """The formula, then the activation: a clamp of a quantised result is one of what is stored."""
    if isinstance(folded, Clamp) and site.result.quant is not None and not site.result.dtype.is_float:
        streams = [reader(site, i, world) for i in range(len(site.inputs))]
        return _written(site, c, [*streams, writer(site, world, folded)], formula)
    if world is World.WHOLE and folded is not None:  # what the type cannot hold wraps before the activation
        return _each(
            site, c, world, lambda v: _folded(site, world, folded, f"(int64_t)({site.output.ctype})({formula(v)})")
        )
    return _each(site, c, world, lambda v: _folded(site, world, folded, formula(v)))


def _folded(site: Site, world: World, op: Activation | None, value: str) -> str:
    if world is World.REAL or op is None:
        return activated(site, op, value)
    site.use("whole")
    if isinstance(op, Clamp):
        return _whole_clamp(site, op, value)
    assert isinstance(op, Unary)
    function = _WHOLE_UNARY[op.kind]
    return f"{function}({value})" if function else value


def _is_whole(op: Activation) -> bool:
    """Whether integers stay integers."""
    return isinstance(op, Clamp) or (isinstance(op, Unary) and op.kind in _WHOLE_UNARY)


def _whole_clamp(site: Site, op: Clamp, value: str) -> str:
    """Limits are cut towards zero, as numpy kernels cut them."""
    if op.low > -inf:
        value = f"ew_whole_max({value}, {number(max(int(op.low), -(2**63)), 'int64')})"
    if op.high < inf:
        value = f"ew_whole_min({value}, {number(min(int(op.high), 2**63 - 1), 'int64')})"
    return value


def _combined(site: Site, world: World, kind: BinaryKind, v: Sequence[str]) -> str:
    a, b = v
    if world is World.WHOLE:
        site.use("whole")
        return f"ew_whole_{kind.value}({a}, {b})"
    if kind in _SIGNS:
        return f"{a} {_SIGNS[kind]} {b}"
    function, file = _CALLS[kind]
    site.use(file)
    return f"{function}({a}, {b})"


def _is_plain(site: Site) -> bool:
    """Eight bits with one scale, all of them."""
    tensors = (site.result, *(place.tensor for place in site.inputs))
    return all(t.dtype.bytes == 1 and t.quant is not None and not t.quant.is_per_channel for t in tensors)


def _clamps_stored(site: Site) -> bool:
    return _is_plain(site) and site.inputs[0].tensor.quant == site.result.quant


def _clamp_stored(site: Site, c: Source, op: Clamp) -> bool:
    low, high = stored_range(site.result, op)
    streams = [reader(site, 0, World.RAW), writer(site, World.RAW)]
    return _written(site, c, streams, lambda v: f"({site.output.ctype})ew_between({low}, {v[0]}, {high})")


def _rule(site: Site, op: Binary) -> PairRule | None:
    """Integer arithmetic with the same answers, where operands and result are bytes."""
    if not _is_plain(site) or not isinstance(op.activation, Clamp | None):
        return None
    storages = []
    for tensor in (*(place.tensor for place in site.inputs), site.result):
        assert tensor.quant is not None
        storages.append((tensor.dtype, tensor.quant))
    return pair_rule(op, *storages, site.arithmetic)


def _by_rule(site: Site, c: Source, rule: PairRule) -> bool:
    def stored(v: Sequence[str]) -> str:
        if rule.second:
            value = f"{v[0]} * {rule.first} + {v[1]} * {_negative(rule.second)}"
        else:
            (_, za), (_, zb), _ = _quants(site)
            value = f"({v[0]} - {_negative(za)}) * ({v[1]} - {_negative(zb)})"
        if not rule.second and rule.first > 1:
            start = number(rule.start, "int64")
            steps = f"(int32_t)(((int64_t)({value}) * {rule.first} + {_negative(start)}) >> {rule.shift})"
        elif rule.to_even:
            site.use("fixed")
            steps = f"ew_shift_even({value} + {_negative(rule.start)}, {rule.shift}, {rule.odd})"
        else:
            steps = f"({value} + {_negative(rule.start)}) >> {rule.shift}"
        return f"({site.output.ctype})ew_between({rule.low}, {steps}, {rule.high})"

    streams = [reader(site, 0, World.RAW), reader(site, 1, World.RAW), writer(site, World.RAW)]
    return _written(site, c, streams, stored)


def _has_integer_kernel(site: Site) -> bool:
    """Whether the file asks for QLinearAdd or QLinearMul, which compute in steps of the scales."""
    op = site.op
    assert isinstance(op, Binary)
    if site.arithmetic is not Arithmetic.QLINEAR:
        return False
    is_bare = op.activation is None or isinstance(op.activation, Clamp)
    return is_bare and op.kind in (BinaryKind.ADD, BinaryKind.MUL) and _is_plain(site)


def _quantised(site: Site, c: Source, op: Binary) -> bool:
    """The zero point is part of the number that is rounded."""
    clamp = op.activation if isinstance(op.activation, Clamp) else None
    streams = [reader(site, 0, World.RAW), reader(site, 1, World.RAW), writer(site, World.RAW)]
    steps = _mul_steps if op.kind is BinaryKind.MUL else _add_steps
    low, high = (number(limit) for limit in stored_range(site.result, clamp))
    site.use("fixed")
    return _written(
        site, c, streams, lambda v: f"({site.output.ctype})ew_round_even({steps(site, v)}, {low}, {high})"
    )


def _quants(site: Site) -> list[tuple[np.float32, int]]:
    """Scale and zero point of a, b and the result."""
    found = []
    for tensor in (*(place.tensor for place in site.inputs), site.result):
        assert tensor.quant is not None
        found.append((np.float32(tensor.quant.scale[0]), tensor.quant.zero[0]))
    return found


def _mul_steps(site: Site, v: Sequence[str]) -> str:
    (sa, za), (sb, zb), (sc, zc) = _quants(site)
    product = f"(float)(({v[0]} - {_negative(za)}) * ({v[1]} - {_negative(zb)}))"
    return f"{product} * {number(sa * sb / sc)} + {number(zc)}"


def _add_steps(site: Site, v: Sequence[str]) -> str:
    """Two sums of a product, each rounded once."""
    (sa, za), (sb, zb), (sc, zc) = _quants(site)
    ra, rb = sa / sc, sb / sc
    rest = np.float32(zc) - np.float32(float(za) * float(ra) + float(np.float32(zb) * rb))
    return _fma(site, v[0], ra, _fma(site, v[1], rb, number(rest)))


def _fma(site: Site, a: str, b: np.float32, rest: str) -> str:
    """a * b + rest, rounded once: by the instruction where there is one, else in double, which holds the product."""
    if site.target.has_fpu:
        site.use("math_functions")
        return f"fmaf((float){a}, {number(b)}, {rest})"
    return f"(float)((double){a} * {number(float(b), 'float64')} + (double){rest})"


def _negative(value: Expr) -> str:
    return f"({value})" if str(value).startswith("-") else str(value)
