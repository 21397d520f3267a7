"""Emitters for a host or an application processor, whose vectors the kernels use."""

from __future__ import annotations

from ..call import Call as Site
from ..printing.source import Source
from . import conv as simd_conv
from . import depthwise as simd_depthwise
from . import int8 as simd_int8
from .lines import activation, batch_norm, binary, reduce
from .pool import avg_pool2d, max_pool2d

__all__ = ["activation", "avg_pool2d", "batch_norm", "binary", "conv2d", "dense", "max_pool2d", "reduce"]


def conv2d(site: Site, c: Source) -> bool:
    return simd_depthwise.conv2d(site, c) or simd_conv.conv2d(site, c) or simd_int8.conv2d(site, c)


def dense(site: Site, c: Source) -> bool:
    return simd_conv.dense(site, c) or simd_int8.dense(site, c)
