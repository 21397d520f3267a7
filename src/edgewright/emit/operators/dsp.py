"""int8 convolutions and dense layers on cores with pairs of 16-bit products (Cortex-M4, M7, M33)."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def conv2d(site: Site, c: Source) -> bool:
    return False


def dense(site: Site, c: Source) -> bool:
    return False
