"""Choices about the code that the plan does not make."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Rounding(Enum):
    """Whose rounding int8 TFLite layers follow, where the runtimes disagree."""

    REFERENCE = "reference"  # LiteRT's reference kernels (BUILTIN_REF): bit-exact
    TFLM = "tflm"  # TensorFlow Lite Micro and CMSIS-NN: fully connected layers round twice, as convolutions do


class Kernels(Enum):
    OWN = "edgewright"
    CMSIS_NN = "cmsis-nn"


@dataclass(frozen=True, slots=True)
class Options:
    rounding: Rounding = Rounding.REFERENCE
    fixed_point: bool | None = None  # ONNX scales as integers; None: where the target has no FPU
    kernels: Kernels = Kernels.OWN
