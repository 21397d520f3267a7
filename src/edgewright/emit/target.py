"""What code is made for: the family of kernels and what the core brings. How it is compiled is said by `toolchain`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Family(Enum):
    """How weights are packed and which kernels are preferred. Every family compiles and runs on every machine."""

    PORTABLE = "portable"  # plain C, blocked for few registers: Cortex-M0+, RV32
    DSP = "dsp"  # pairs of 16-bit products (SMLAD): Cortex-M4, M7, M33
    HELIUM = "helium"  # M-profile vectors: Cortex-M55
    SIMD = "simd"  # the vectors of a host or an application processor: x86-64, aarch64


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    family: Family
    has_fpu: bool  # float32 in hardware


TARGETS = {
    target.name: target
    for target in (
        Target("host", Family.SIMD, True),
        Target("cortex-m0plus", Family.PORTABLE, False),
        Target("cortex-m4", Family.DSP, True),
        Target("cortex-m7", Family.DSP, True),
        Target("cortex-m33", Family.DSP, True),
        Target("cortex-m55", Family.HELIUM, True),
        Target("rv32imc", Family.PORTABLE, False),
        Target("rv32gc", Family.PORTABLE, True),
        Target("aarch64", Family.SIMD, True),
    )
}
