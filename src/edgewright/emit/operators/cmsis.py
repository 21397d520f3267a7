"""Calls to an installed CMSIS-NN instead of our kernels."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def conv2d(site: Site, c: Source) -> bool:
    return False


def dense(site: Site, c: Source) -> bool:
    return False


def avg_pool2d(site: Site, c: Source) -> bool:
    return False


def max_pool2d(site: Site, c: Source) -> bool:
    return False


def binary(site: Site, c: Source) -> bool:
    return False


def softmax(site: Site, c: Source) -> bool:
    return False
