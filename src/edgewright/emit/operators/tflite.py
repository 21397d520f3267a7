"""Quantised operators in TFLite's arithmetic, bit for bit as LiteRT's reference kernels."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def binary(site: Site, c: Source) -> bool:
    return False


def activation(site: Site, c: Source) -> bool:
    return False


def prelu(site: Site, c: Source) -> bool:
    return False


def quantize(site: Site, c: Source) -> bool:
    return False


def dequantize(site: Site, c: Source) -> bool:
    return False


def softmax(site: Site, c: Source) -> bool:
    return False


def log_softmax(site: Site, c: Source) -> bool:
    return False


def l2_normalize(site: Site, c: Source) -> bool:
    return False


def reduce(site: Site, c: Source) -> bool:
    return False


def concat(site: Site, c: Source) -> bool:
    return False


def pad(site: Site, c: Source) -> bool:
    return False


def resize(site: Site, c: Source) -> bool:
    return False
