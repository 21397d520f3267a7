"""The user's choices about code: rounding, kernels, optimisation of the compiler."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ..platform.target import Target


class Rounding(Enum):
    """The runtime whose rounding int8 TFLite layers follow; the runtimes disagree."""

    REFERENCE = "reference"  # LiteRT's reference kernels (BUILTIN_REF): bit-exact
    TFLM = "tflm"  # TensorFlow Lite Micro and CMSIS-NN: fully connected layers round twice, as convolutions do


class Kernels(Enum):
    OWN = "edgewright"
    CMSIS_NN = "cmsis-nn"


class Optimise(Enum):
    SIZE = "size"
    SPEED = "speed"


@dataclass(frozen=True, slots=True)
class Options:
    rounding: Rounding = Rounding.REFERENCE
    fixed_point: bool | None = None  # ONNX scales as integers; None: where the target has no FPU
    kernels: Kernels = Kernels.OWN
    optimise: Optimise | None = None  # what the compiler is asked for; None: size on microcontrollers, else speed
    renamed: tuple[tuple[str, str], ...] = ()  # inputs and outputs, each with its name in C where it is not the file's

    @property
    def of_selection(self) -> Options:
        """The options that decide which kernels are selected; optimisation levels and names are not among them."""
        return replace(self, optimise=None, renamed=())

    def optimise_flag(self, target: Target) -> str:
        """The compiler's flag for the optimisation level."""
        is_chip = target.is_microcontroller
        wanted = self.optimise or (Optimise.SIZE if is_chip else Optimise.SPEED)
        return "-Os" if wanted is Optimise.SIZE else "-O2" if is_chip else "-O3"
