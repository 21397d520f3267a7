"""What follows the sums of the float32 vector kernels: limits and functions, or a second pass."""

from __future__ import annotations

from dataclasses import dataclass

from ...network.operators import Activation, Clamp, Elu, HardSigmoid, LeakyRelu, Unary, UnaryKind
from ..call import CCall
from ..nests.activations import activated
from ..printing.constants import number
from ..printing.nest import elements
from ..printing.source import CWriter, Fields

_KINDS = {
    UnaryKind.SIGMOID: "EW_SIMD_SIGMOID",
    UnaryKind.SILU: "EW_SIMD_SILU",
    UnaryKind.HARD_SWISH: "EW_SIMD_HARD_SWISH",
    UnaryKind.TANH: "EW_SIMD_TANH",
}


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What follows a sum: limits, or a function with two parameters, or what is left to a second pass."""

    low: str = "-INFINITY"
    high: str = "INFINITY"
    kind: str = "EW_SIMD_AS_IS"
    a: str = "0.0f"
    b: str = "0.0f"
    rest: Activation | None = None

    @property
    def fields(self) -> Fields:
        return {"low": self.low, "high": self.high, "kind": self.kind, "a": self.a, "b": self.b}

    @property
    def function(self) -> Fields:
        """Limits and function as one function, where there is no rest."""
        is_clamp = (self.low, self.high) != ("-INFINITY", "INFINITY")
        kind, a, b = ("EW_SIMD_CLAMP", self.low, self.high) if is_clamp else (self.kind, self.a, self.b)
        return {"kind": kind, "a": a, "b": b}


def epilogue_of(activation: Activation | None) -> Epilogue:
    match activation:
        case None:
            return Epilogue()
        case Clamp(low, high):
            return Epilogue(number(low), number(high))
        case LeakyRelu(alpha):
            return Epilogue(kind="EW_SIMD_LEAKY", a=number(alpha))
        case Elu(alpha, gamma):
            return Epilogue(kind="EW_SIMD_ELU", a=number(alpha), b=number(gamma))
        case HardSigmoid(alpha, beta):
            return Epilogue(kind="EW_SIMD_HARD_SIGMOID", a=number(alpha), b=number(beta))
        case Unary(kind) if kind in _KINDS:
            return Epilogue(kind=_KINDS[kind])
        case _:
            return Epilogue(rest=activation)


def write_second_pass(call: CCall, c: CWriter, end: Epilogue) -> None:
    """The second pass, over what has been written, for activations that the kernels do not know."""
    if end.rest is None:
        return
    with elements(c, call.region, [call.output]) as ((at,), _):
        y = f"{call.output.pointer}[{at}]"
        c.line(f"{y} = {activated(call, end.rest, y)};")
