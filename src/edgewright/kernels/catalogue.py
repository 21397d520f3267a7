"""All kernels, fastest first. Of the kernels that make an offer at a site, the first whose scratch fits is selected.

A kernel is in the catalogue by being defined in one of these modules; a module defines its faster kernels first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import get_args

from ..network.operators import Op
from ..program.selection import CallKind
from . import cmsis
from .dsp import conv as dsp
from .dsp import depthwise_rows, single, transposed
from .dsp import partials as dsp_partials
from .dsp import windows as dsp_windows
from .helium import products as helium
from .kernel import Kernel
from .nests import (
    custom,
    dynamic,
    elementwise,
    float32,
    lines,
    lookup,
    means,
    moves,
    pads,
    partials,
    pools,
    products,
    qlinear,
    recurrent,
    reductions,
    resize,
    split_sums,
    tflite,
    tflite_images,
    tflite_lines,
    windows,
)
from .portable import additions, depthwise, depthwise_direct
from .portable import partials as portable_partials
from .portable import pools as portable_pools
from .portable import products as portable
from .simd import conv as simd
from .simd import depthwise as simd_depthwise
from .simd import int8 as simd_int8
from .simd import lines as simd_lines
from .simd import partials as simd_partials
from .simd import pool as simd_pool

_MODULES: Sequence[ModuleType] = (
    cmsis,  # an installed CMSIS-NN, where it is asked for
    # vectors of application processors
    *(simd_depthwise, simd, simd_int8, simd_pool, simd_lines, simd_partials),
    # bytes on microcontrollers
    *(helium, single, dsp, dsp_windows, transposed, depthwise_rows, dsp_partials),
    *(depthwise_direct, depthwise, portable, portable_pools, additions, portable_partials),
    # real numbers, and bytes that are quantised at run time
    *(float32, dynamic),
    # plain loops: windows and products, element by element, along an axis, moving elements, partial sums
    *(windows, products, pools),
    *(lookup, tflite, qlinear, elementwise, recurrent),
    *(tflite_lines, lines, reductions),
    *(tflite_images, moves, pads, resize),
    *(partials, means, split_sums),
    custom,
)

CATALOGUE: Sequence[Kernel] = tuple(
    kernel for module in _MODULES for kernel in vars(module).values() if isinstance(kernel, Kernel)
)
BY_NAME: Mapping[str, Kernel] = {kernel.name: kernel for kernel in CATALOGUE}


_KERNELS: Mapping[tuple[type, CallKind], tuple[Kernel, ...]] = {
    (operator, kind): tuple(k for k in CATALOGUE if operator in k.operators and k.kind is kind)
    for operator in get_args(Op)
    for kind in CallKind
}


def kernels_for(operator: type, kind: CallKind) -> tuple[Kernel, ...]:
    """The kernels for calls of an operator, fastest first."""
    return _KERNELS[operator, kind]
