"""What code is made for: the family of kernels and the features of the core. `toolchain` says how it is compiled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ..errors import BoardError
from .board import Board
from .processor import Feature, Processor, ProcessorKind


class Family(Enum):
    """How weights are packed and which kernels are preferred. Every family compiles and runs on every machine."""

    PORTABLE = "portable"  # plain C, blocked for few registers: Cortex-M0+, RV32
    DSP = "dsp"  # pairs of 16-bit products (SMLAD): Cortex-M4, M7, M33
    HELIUM = "helium"  # M-profile vectors: Cortex-M55
    SIMD = "simd"  # the vectors of a host or an application processor: x86-64, aarch64


class Architecture(Enum):
    """The architecture, which determines the compiler."""

    HOST = "host"
    CORTEX_M = "cortex-m"
    RV32 = "rv32"
    AARCH64 = "aarch64"


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    family: Family
    has_fpu: bool  # float32 in hardware
    architecture: Architecture = Architecture.HOST
    cpu: str = ""  # the value of -mcpu= (Arm) or -march= (RISC-V)
    fpu: str = ""  # the value of -mfpu=; empty: none, or implied by the cpu
    has_dot: bool = False  # sums of four products of bytes (aarch64, optional)

    @property
    def is_portable(self) -> bool:
        """Whether it is plain C for a compiler that is not installed; it is tested on this machine."""
        return self.name == PORTABLE

    @property
    def is_microcontroller(self) -> bool:
        """Whether the code is for a chip without an operating system."""
        return self.is_portable or self.architecture in (Architecture.CORTEX_M, Architecture.RV32)


PORTABLE = "portable"
_M = Architecture.CORTEX_M

TARGETS = {
    target.name: target
    for target in (
        Target("host", Family.SIMD, True),
        Target(PORTABLE, Family.PORTABLE, True),
        Target("cortex-m0plus", Family.PORTABLE, False, _M, "cortex-m0plus"),
        Target("cortex-m4", Family.DSP, True, _M, "cortex-m4", "fpv4-sp-d16"),
        Target("cortex-m7", Family.DSP, True, _M, "cortex-m7", "fpv5-sp-d16"),
        Target("cortex-m33", Family.DSP, True, _M, "cortex-m33", "fpv5-sp-d16"),
        Target("cortex-m55", Family.HELIUM, True, _M, "cortex-m55"),
        Target("rv32imc", Family.PORTABLE, False, Architecture.RV32, "rv32imc"),
        Target("rv32gc", Family.PORTABLE, True, Architecture.RV32, "rv32imafdc"),
        Target("aarch64", Family.SIMD, True, Architecture.AARCH64, "generic"),
    )
}

_K = ProcessorKind
_OF_KIND = {
    _K.CORTEX_M0PLUS: "cortex-m0plus",
    _K.CORTEX_M3: "cortex-m0plus",
    _K.CORTEX_M4: "cortex-m4",
    _K.CORTEX_M4F: "cortex-m4",
    _K.CORTEX_M7: "cortex-m7",
    _K.CORTEX_M33: "cortex-m33",
    _K.CORTEX_M55: "cortex-m55",
    _K.CORTEX_M85: "cortex-m55",
    _K.CORTEX_A53: "aarch64",
    _K.CORTEX_A57: "aarch64",
    _K.CORTEX_A72: "aarch64",
    _K.CORTEX_A76: "aarch64",
    _K.CORTEX_A78AE: "aarch64",
    _K.DENVER2: "aarch64",
    _K.RV32IMC: "rv32imc",
    _K.RV32GC: "rv32gc",
    _K.X86_64: "host",
}

# Code for the key also runs on the values.
_ALSO_RUN_BY = {
    "cortex-m0plus": ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"),
    "cortex-m4": ("cortex-m7", "cortex-m33", "cortex-m55"),
    "cortex-m33": ("cortex-m55",),
    "rv32imc": ("rv32gc",),
}
_ANYWHERE = ("host", PORTABLE)  # they run a board's plan on this machine

# Application cores by compiler name.
_CORES = {kind: kind.value for kind in (_K.CORTEX_A53, _K.CORTEX_A57, _K.CORTEX_A72, _K.CORTEX_A76, _K.CORTEX_A78AE)}


def target_of(board: Board) -> Target:
    """The target of the board's first processor for which there is a compiler, with the features it names.

    Without one, the target is plain C for the board's own compiler.
    """
    known = (target_of_processor(processor) for processor in board.processors)
    if own := next(filter(None, known), None):
        return own
    for processor in board.processors:
        if processor.kind is not ProcessorKind.GPU:
            return replace(TARGETS[PORTABLE], has_fpu=Feature.FPU in processor.features)
    raise BoardError(f"board '{board.name}' has no processor but a GPU; name one that C is compiled for")


def target_of_processor(processor: Processor) -> Target | None:
    """The target of the processor; None if there is no compiler for it."""
    name = _OF_KIND.get(processor.kind)
    return _as_built(TARGETS[name], processor) if name else None


def chosen_target(board: Board | None, named: Target | str | None = None) -> Target | None:
    """The given target, or else the board's; an error if the board does not run its code."""
    target = TARGETS[named] if isinstance(named, str) else named
    if board is None or target is None:
        return target or (target_of(board) if board else None)
    own = target_of(board).name
    if target.name not in (own, *_ANYWHERE) and own not in _ALSO_RUN_BY.get(target.name, ()):
        kinds = ", ".join(sorted({processor.kind.value for processor in board.processors}))
        raise BoardError(
            f"board '{board.name}' ({kinds}) does not run code for {target.name}: "
            f"leave --target out for {own}, or leave --board out"
        )
    return target


def _as_built(target: Target, processor: Processor) -> Target:
    """The target for this core: with its own instructions, without options that the chip's maker left out."""
    if target.architecture is Architecture.AARCH64:
        has_dot = Feature.DOT in processor.features
        return replace(target, cpu=_CORES.get(processor.kind, target.cpu), has_dot=has_dot)
    if target.architecture is not Architecture.CORTEX_M:
        return target
    if processor.kind is ProcessorKind.CORTEX_M3:
        target = replace(target, cpu="cortex-m3")
    features = processor.features
    if target.family is Family.HELIUM and Feature.HELIUM not in features:
        target = replace(target, family=Family.DSP, cpu=f"{target.cpu}+nomve")
    if target.has_fpu and Feature.FPU not in features:
        target = replace(target, has_fpu=False, fpu="")
    if target.cpu == "cortex-m33" and Feature.DSP not in features:
        target = replace(target, family=Family.PORTABLE, cpu="cortex-m33+nodsp")
    return target
