"""Element by element: real numbers, plain integers, and quantised ones in onnxruntime's arithmetic."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def activation(site: Site, c: Source) -> bool:
    return False


def prelu(site: Site, c: Source) -> bool:
    return False


def binary(site: Site, c: Source) -> bool:
    return False


def batch_norm(site: Site, c: Source) -> bool:
    return False


def cast(site: Site, c: Source) -> bool:
    return False


def quantize(site: Site, c: Source) -> bool:
    return False


def dequantize(site: Site, c: Source) -> bool:
    return False
