"""Processors: their kinds, and the features of each architecture."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from .schema import Entry, Hertz, Name, Whole


class ProcessorKind(Enum):
    """A closed list, so that code that depends on the kind can be checked for gaps."""

    CORTEX_M0PLUS = "cortex-m0plus"
    CORTEX_M3 = "cortex-m3"
    CORTEX_M4 = "cortex-m4"
    CORTEX_M4F = "cortex-m4f"
    CORTEX_M7 = "cortex-m7"
    CORTEX_M33 = "cortex-m33"
    CORTEX_M55 = "cortex-m55"
    CORTEX_M85 = "cortex-m85"
    CORTEX_A53 = "cortex-a53"
    CORTEX_A57 = "cortex-a57"
    CORTEX_A72 = "cortex-a72"
    CORTEX_A76 = "cortex-a76"
    CORTEX_A78AE = "cortex-a78ae"
    DENVER2 = "denver2"
    XTENSA_LX6 = "xtensa-lx6"
    XTENSA_LX7 = "xtensa-lx7"
    RV32IMC = "rv32imc"
    RV32GC = "rv32gc"
    X86_64 = "x86-64"
    GPU = "gpu"


class Feature(Enum):
    """A feature that kernels may be specialised for."""

    FPU = "fpu"  # float32 in hardware
    FPU64 = "fpu64"  # float64 in hardware
    DSP = "dsp"  # Arm's two 16-bit multiply-accumulates in one instruction
    HELIUM = "helium"  # M-profile vectors (MVE)
    NEON = "neon"  # A-profile vectors (Advanced SIMD)
    DOT = "dot"  # four int8 products summed per 32-bit lane (Armv8.2 dot product)
    PIE = "pie"  # Espressif's processor instruction extensions
    XPULP = "xpulp"  # PULP's hardware loops and packed SIMD
    AVX2 = "avx2"


# The features of every core of the kind. Options that a chip maker chooses (the FPU of a Cortex-M7 or M33, Helium)
# are named in the board file.
_INHERENT: dict[ProcessorKind, frozenset[Feature]] = {
    ProcessorKind.CORTEX_M4: frozenset({Feature.DSP}),
    ProcessorKind.CORTEX_M4F: frozenset({Feature.DSP, Feature.FPU}),
    ProcessorKind.CORTEX_M7: frozenset({Feature.DSP}),
    ProcessorKind.CORTEX_M55: frozenset({Feature.DSP}),
    ProcessorKind.CORTEX_M85: frozenset({Feature.DSP}),
    ProcessorKind.CORTEX_A53: frozenset({Feature.FPU, Feature.FPU64, Feature.NEON}),
    ProcessorKind.CORTEX_A57: frozenset({Feature.FPU, Feature.FPU64, Feature.NEON}),
    ProcessorKind.CORTEX_A72: frozenset({Feature.FPU, Feature.FPU64, Feature.NEON}),
    ProcessorKind.CORTEX_A76: frozenset({Feature.FPU, Feature.FPU64, Feature.NEON, Feature.DOT}),
    ProcessorKind.CORTEX_A78AE: frozenset({Feature.FPU, Feature.FPU64, Feature.NEON, Feature.DOT}),
    ProcessorKind.DENVER2: frozenset({Feature.FPU, Feature.FPU64, Feature.NEON}),
    ProcessorKind.RV32GC: frozenset({Feature.FPU, Feature.FPU64}),
    ProcessorKind.X86_64: frozenset({Feature.FPU, Feature.FPU64}),
    ProcessorKind.GPU: frozenset({Feature.FPU}),
}

_SIMD_BITS = {
    Feature.DSP: 32,
    Feature.XPULP: 32,
    Feature.NEON: 128,
    Feature.HELIUM: 128,
    Feature.PIE: 128,
    Feature.AVX2: 256,
}


class Processor(Entry):
    """One or several equal cores, or one GPU."""

    name: Name = Field(description="a name, unique among the processors")
    kind: ProcessorKind = Field(description="one of " + ", ".join(kind.value for kind in ProcessorKind))
    clock: Hertz = Field(description='the highest clock, such as "180 MHz"')
    count: Whole = Field(default=1, ge=1, le=4096, description="the number of equal cores, at least 1")
    lanes: Whole = Field(default=1, ge=1, le=2**20, description="the arithmetic cores inside one GPU, at least 1")
    options: tuple[Feature, ...] = Field(
        default=(),
        alias="features",
        description="a list of what the kind alone does not tell, out of "
        + ", ".join(feature.value for feature in Feature),
    )

    @property
    def features(self) -> frozenset[Feature]:
        """The features of the kind, and those in the board file."""
        return _INHERENT.get(self.kind, frozenset()) | frozenset(self.options)

    @property
    def simd_bits(self) -> int:
        """Bits of the widest vector instruction; 0 without vectors, or on a GPU."""
        return max((_SIMD_BITS.get(feature, 0) for feature in self.features), default=0)
