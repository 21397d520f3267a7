"""The values that options may take, written down here so that `--help` loads nothing that knows what they mean.

A test compares each with the definition it repeats.
"""

TARGETS = (
    "host",
    "cortex-m0plus",
    "cortex-m4",
    "cortex-m7",
    "cortex-m33",
    "cortex-m55",
    "rv32imc",
    "rv32gc",
    "aarch64",
)
KERNELS = ("edgewright", "cmsis-nn")
ROUNDINGS = ("reference", "tflm")
OPTIMISE = ("size", "speed")
METHODS = ("joint", "paper")
APPLICATION_METHODS = ("joint", "paper", "exact")
