"""int8 convolutions and dense layers in plain C, blocked for few registers (Cortex-M0+, RV32)."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def conv2d(site: Site, c: Source) -> bool:
    return False


def dense(site: Site, c: Source) -> bool:
    return False
