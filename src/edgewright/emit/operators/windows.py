"""Windows and matrix products as plain loops: any type, any arithmetic, any region. The last resort of every family."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def conv2d(site: Site, c: Source) -> bool:
    return False


def conv_transpose2d(site: Site, c: Source) -> bool:
    return False


def max_pool2d(site: Site, c: Source) -> bool:
    return False


def avg_pool2d(site: Site, c: Source) -> bool:
    return False


def dense(site: Site, c: Source) -> bool:
    return False


def matmul(site: Site, c: Source) -> bool:
    return False
