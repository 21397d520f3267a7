"""Custom operators, by the reference that the user's file gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import ModelError
from ..operators import Custom
from ..region import Region
from ..tensor import Array, Tensor
from .operand import Operand


def custom(op: Custom, out: Region, operands: Sequence[Operand], result: Tensor) -> Array:
    """The region of the whole output; missing parts of inputs are zeros."""
    inputs = []
    for operand in operands:
        whole = operand.data
        if operand.region.shape != operand.shape:
            whole = np.zeros(operand.shape, operand.data.dtype)
            whole[operand.region.slices] = operand.data
        inputs.append(whole)
    try:
        computed = np.asarray(op.definition.compute(inputs))
    except Exception as error:  # any exception of the user's code
        raise ModelError(f"the reference of the custom operator '{op.name}' failed: {error}") from error
    if computed.shape != result.shape:
        raise ModelError(f"the reference of the custom operator '{op.name}' gives {computed.shape}, not {result.shape}")
    return computed[out.slices].astype(result.dtype.numpy, copy=False)
