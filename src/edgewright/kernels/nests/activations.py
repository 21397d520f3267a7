"""Functions of one real number as C: activations, alone or folded into another layer."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from ...network.operators import Activation, Clamp, Elu, HardSigmoid, LeakyRelu, Unary, UnaryKind
from ..call import CCall
from ..printing.constants import number

PLAIN, LIBRARY = "real", "math_functions"  # kernel files: the second needs the C library's mathematics

UNARY: Mapping[UnaryKind, tuple[str, str]] = {  # (C function of a float, kernel file that brings it)
    UnaryKind.ABS: ("ew_abs", PLAIN),
    UnaryKind.CEIL: ("ceilf", LIBRARY),
    UnaryKind.COS: ("cosf", LIBRARY),
    UnaryKind.ERF: ("erff", LIBRARY),
    UnaryKind.EXP: ("expf", LIBRARY),
    UnaryKind.FLOOR: ("floorf", LIBRARY),
    UnaryKind.GELU: ("ew_gelu", LIBRARY),
    UnaryKind.GELU_TANH: ("ew_gelu_tanh", LIBRARY),
    UnaryKind.HARD_SWISH: ("ew_hard_swish", PLAIN),
    UnaryKind.LOG: ("logf", LIBRARY),
    UnaryKind.MISH: ("ew_mish", LIBRARY),
    UnaryKind.NEG: ("ew_neg", PLAIN),
    UnaryKind.RECIPROCAL: ("ew_reciprocal", PLAIN),
    UnaryKind.ROUND: ("ew_round", LIBRARY),
    UnaryKind.RSQRT: ("ew_rsqrt", LIBRARY),
    UnaryKind.SIGMOID: ("ew_sigmoid", LIBRARY),
    UnaryKind.SIGN: ("ew_sign", PLAIN),
    UnaryKind.SILU: ("ew_silu", LIBRARY),
    UnaryKind.SIN: ("sinf", LIBRARY),
    UnaryKind.SOFTPLUS: ("ew_softplus", LIBRARY),
    UnaryKind.SOFTSIGN: ("ew_softsign", PLAIN),
    UnaryKind.SQRT: ("sqrtf", LIBRARY),
    UnaryKind.SQUARE: ("ew_square", PLAIN),
    UnaryKind.TANH: ("tanhf", LIBRARY),
}


def activated(call: CCall, activation: Activation | None, value: str) -> str:
    """The activation of a float expression, which is evaluated once; takes the kernel file it needs."""
    if activation is None:
        return value
    function, file, numbers = _call(activation)
    if not function:
        return value
    call.use(file)
    return f"{function}({', '.join([value, *map(number, numbers)])})"


def _call(activation: Activation) -> tuple[str, str, tuple[float, ...]]:
    """The C function, its kernel file, and the arguments behind the number itself."""
    match activation:
        case Clamp(low, high):
            return _clamp(low, high)
        case LeakyRelu(alpha):
            return "ew_leaky_relu", PLAIN, (alpha,)
        case Elu(alpha, gamma):
            return "ew_elu", LIBRARY, (alpha, gamma)
        case HardSigmoid(alpha, beta):
            return "ew_hard_sigmoid", PLAIN, (alpha, beta)
        case Unary(kind):
            return *UNARY[kind], ()


def _clamp(low: float, high: float) -> tuple[str, str, tuple[float, ...]]:
    if low == -inf:
        return ("", "", ()) if high == inf else ("ew_at_most", PLAIN, (high,))
    return ("ew_at_least", PLAIN, (low,)) if high == inf else ("ew_clamp_real", PLAIN, (low, high))
