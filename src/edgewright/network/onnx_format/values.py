"""What a name of an ONNX graph may stand for while the graph is read."""

from __future__ import annotations

from dataclasses import dataclass

from ..tensor import Array, Quant


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """Values known now: an initializer, or what was worked out from constants."""

    name: str
    data: Array


@dataclass(frozen=True, slots=True, eq=False)
class Dequantized:
    """A quantised constant behind DequantizeLinear: real = scale * (data - zero), not worked out."""

    name: str
    data: Array
    quant: Quant


@dataclass(frozen=True, slots=True)
class Computed:
    """A tensor of the network: an input, or written by a layer."""

    tensor: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What stands in the way at one node."""

    operator: str
    node: str
    reason: str = ""  # none when the operator is not supported at all


@dataclass(frozen=True, slots=True)
class Absent:
    """A tensor that could not be had, since its node (or one before it) is not supported."""

    problem: Problem


Value = Constant | Dequantized | Computed | Absent
