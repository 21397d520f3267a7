"""Convolutions, dense layers and pooling with the vectors of a host or an application processor."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def conv2d(site: Site, c: Source) -> bool:
    return False


def dense(site: Site, c: Source) -> bool:
    return False


def max_pool2d(site: Site, c: Source) -> bool:
    return False


def avg_pool2d(site: Site, c: Source) -> bool:
    return False


def reduce(site: Site, c: Source) -> bool:
    return False


def binary(site: Site, c: Source) -> bool:
    return False
